"""What this TensorFlow stores is loaded and answered alike by that of the serving image, which is older."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.trainer.models.test_architectures import LIGHT, built, learn_once, raw, scored_after_reload
from trainer.models.registry import ARCHITECTURES

ROOT = Path(__file__).parents[3]
SERVING_PYTHON = ROOT / ".venv" / "tfjs" / "bin" / "python"
"""The environment of the converter to TensorFlow.js, whose TensorFlow is the serving image's."""
PROGRAM = Path(__file__).parent / "serving" / "ask_models.py"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not SERVING_PYTHON.exists() and sys.version_info >= (3, 13), reason="TensorFlow 2.19 has no Python 3.13"
    ),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Every light architecture after a step, stored; what each says here of some rows, NULLs and new words too."""
    folder, expected = tmp_path_factory.mktemp("stored"), {}
    for name in LIGHT:
        (folder / name).mkdir()
        recipe, preprocessing, model = built(name)
        learn_once(recipe, preprocessing, model)
        expected[name], _ = scored_after_reload(recipe, preprocessing, model, folder / name)
        rows = {key: value.numpy() for key, value in raw(ARCHITECTURES[name].reads).items()}
        texts = {key: value.astype("U") for key, value in rows.items() if key in ("carrier", "pages")}
        np.savez(folder / name / "rows.npz", **{**rows, **texts})
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([str(SERVING_PYTHON), str(PROGRAM), str(folder)], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    answers = {name: np.load(folder / name / "answers.npz") for name in LIGHT}
    return {"version": done.stdout.strip(), "expected": expected, "answers": answers}


def test_the_environment_has_the_serving_images_tensorflow(stored) -> None:
    """Of its minor version: the setting's default names the image."""
    settings = (ROOT / "plugins" / "retraining" / "core" / "settings.py").read_text(encoding="utf-8")
    (serving,) = re.findall(r'^SERVING_VERSION = "(\d+\.\d+)\.\d+"', settings, re.MULTILINE)
    assert stored["version"].startswith(f"{serving}.")


@pytest.mark.parametrize("name", LIGHT)
def test_it_answers_as_here(stored, name: str) -> None:
    (answer,) = (stored["answers"][name][key] for key in stored["answers"][name].files)
    np.testing.assert_allclose(answer, stored["expected"][name], rtol=0, atol=1e-5)
