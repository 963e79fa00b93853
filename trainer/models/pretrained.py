"""What was trained elsewhere, as a layer: fetched from a path, frozen, or trained on later and more slowly.

Comes in: an address on storage or a local path. Goes out: a layer whose weights are part of the model, so that the
stored model is whole without that address. What stands under an address must not change: the run's key does not see it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
import tf_keras

from trainer.errors import DataError
from trainer.models.dense import SeeingHyperparameters
from trainer.models.features import Image
from trainer.models.hyperparameters import limited, share
from trainer.storage import Storage, path_below


@dataclass(frozen=True, kw_only=True)
class PretrainedHyperparameters(SeeingHyperparameters):
    """Of architectures with a layer that was trained elsewhere: those of `dense` for the layers after it, and these.

    Attributes:
        fine_tune_from: Share of the training's steps after which that layer is trained as well; 1: never.
        fine_tune_rate: What the learning rate is multiplied by for that layer.
    """

    fine_tune_from: float = share(1.0)
    fine_tune_rate: float = limited(0.1, "a number above 0, at most 1", above=0, maximum=1)


class Pretrained(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """A layer of that sort; the optimizer treats its variables differently (`trainer/training/model.py`).

    Args:
        fine_tuned: Whether it is ever trained.
    """

    def __init__(self, name: str, *, fine_tuned: bool) -> None:
        # Its inputs are float32 in any precision: what was trained elsewhere was trained so.
        super().__init__(name=name, trainable=fine_tuned, autocast=False)


def pretrained_variables(model: tf_keras.Model) -> list[tf.Variable]:
    """Return the trainable variables of such layers."""
    layers = [layer for layer in model.submodules if isinstance(layer, Pretrained)]
    return [variable for layer in layers for variable in layer.trainable_variables]


def colors(pixels: tf.Tensor, image: Image, most: float = 1) -> tf.Tensor:
    """Return three channels from 0 to `most`. uint8 [B, h, w, channels] → float32 [B, h, w, 3]."""
    scaled = tf_keras.layers.Rescaling(most / 255, name=f"scale_{image.name}", dtype="float32")(pixels)
    return tf.repeat(scaled, 3, axis=3) if image.channels == 1 else scaled


def fetch_file(uri: str) -> Path:
    """Return a local copy of a file, or the file itself where it is local.

    Raises:
        DataError: There is none.
    """
    if not uri.startswith("gs://"):
        if not Path(uri).is_file():
            raise _nothing(uri, "a file")
        return Path(uri)
    path = path_below(_place(uri), uri.rpartition("/")[2])
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not Storage().download(uri, path):
            raise _nothing(uri, "a file")
    return path


def fetch_folder(uri: str) -> Path:
    """Return a local copy of a folder, or the folder itself where it is local.

    Raises:
        DataError: There is none.
    """
    if not uri.startswith("gs://"):
        if not Path(uri).is_dir():
            raise _nothing(uri, "a folder")
        return Path(uri)
    path = _place(uri) / "folder"
    if not path.exists() and not Storage().download_folder(uri, path):
        raise _nothing(uri, "a folder")
    return path


def _nothing(uri: str, expected: str) -> DataError:
    return DataError(uri, "there is nothing", expected, "Correct the path in training.hyperparameters")


def _place(uri: str) -> Path:
    return _copies() / hashlib.sha256(uri.encode()).hexdigest()[:16]


@functools.cache
def _copies() -> Path:
    """Return a folder that lasts as long as the process: models are built more than once."""
    path = Path(tempfile.mkdtemp(prefix="trainer-pretrained-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
