"""Asks stored models as TensorFlow Serving does, in an environment of its TensorFlow that has no Keras of ours.

Comes in: a folder with a folder per model: `model`, and `rows.npz` with a request's inputs by name. Goes out: beside
them `answers.npz`, the outputs by name, and on standard output the version of TensorFlow.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

for folder in sorted(Path(sys.argv[1]).iterdir()):
    signature = tf.saved_model.load(str(folder / "model")).signatures["serving_default"]
    with np.load(folder / "rows.npz", allow_pickle=True) as rows:
        inputs = {name: tf.constant(rows[name]) for name in rows.files}
    outputs = {name: answer.numpy() for name, answer in signature(**inputs).items()}
    np.savez(folder / "answers.npz", **outputs)
print(tf.__version__)
