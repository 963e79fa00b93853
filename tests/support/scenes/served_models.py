"""SavedModels that always say the same, made by the trainer's TensorFlow."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

PYTHON = Path(__file__).resolve().parents[3] / ".venv" / "trainer" / "bin" / "python"
CODE = """
import sys
import tensorflow as tf

class Model(tf.Module):
    def __init__(self, score):
        super().__init__()
        self.score = tf.Variable(score)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.float32)])
    def serve(self, carrier, distance):
        return {"score": tf.zeros_like(distance) + self.score}

for score in sys.argv[2:]:
    model = Model(float(score))
    tf.saved_model.save(model, f"{sys.argv[1]}/{score}", signatures={"serving_default": model.serve})
"""
# Serves a SavedModel that lies in its folder itself, without a number.
PREBUILT = {"image_uri": "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"}
INSTANCE = {"carrier": "UA", "distance": 1400.0}
INPUTS = {"carrier": "string", "distance": "float32"}


def save_models(path: Path, *scores: float) -> None:
    """Save a model per score in a folder, each in one named after what it says to every `INSTANCE`."""
    command = [PYTHON, "-c", CODE, str(path), *map(str, scores)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)


def upload_model(bucket: Any, folder: str, model_path: Path) -> None:
    """Store a saved model's files below a folder of a bucket."""
    for path in model_path.rglob("*"):
        if path.is_file():
            bucket.blob(f"{folder}/{path.relative_to(model_path)}").upload_from_filename(path)
