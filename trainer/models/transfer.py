"""`transfer`: a network that was trained elsewhere looks at images; fully connected layers learn from what it sees.

The networks are those of `backbones.py`; their weights are those of https://keras.io/api/applications/ without the top,
as a file of your own: nothing is downloaded from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.errors import DataError
from trainer.models.backbones import BACKBONES, LEAST_SIDE, Backbone, recognize_weights
from trainer.models.dense import deep, last, model_inputs
from trainer.models.features import Image, InputShape
from trainer.models.hyperparameters import limited
from trainer.models.pretrained import Pretrained, PretrainedHyperparameters, colors, fetch_file


@dataclass(frozen=True, kw_only=True)
class TransferHyperparameters(PretrainedHyperparameters):
    """Of `transfer`: those of `dense`, for the layers after the backbone, and those of the backbone.

    Attributes:
        backbone: The network that looks, by its name in `backbones.py`.
        weights: Of the backbone without its top: an HDF5 file on `gs://…` or a local path. Needed: its batch
            normalisation keeps the statistics that it came with, so from random numbers it would learn nothing.
    """

    backbone: str = limited("densenet121", f"one of: {', '.join(BACKBONES)}", one_of=tuple(BACKBONES))
    weights: str = ""


def build(shape: InputShape, outputs: int, hyperparameters: TransferHyperparameters) -> tf_keras.Model:
    """Build the model. images [B, h, w, channels], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    pixels = {image.key: tf_keras.Input(image.shape, dtype=tf.uint8, name=image.key) for image in shape.images}
    inputs: dict[str, Any] = {**model_inputs(shape), **pixels}
    backbone = BACKBONES[hyperparameters.backbone]
    eyes = Eyes(hyperparameters)
    seen = [eyes(backbone.prepare(_enlarged(pixels[image.key], image))) for image in shape.images]
    logits = last(deep(inputs, shape, hyperparameters, seen), outputs, hyperparameters)
    return tf_keras.Model(inputs, logits, name="transfer")


class Eyes(Pretrained):
    """A backbone up to the mean over all places, the same for every image.

    Its batch normalisation keeps the statistics that it came with, in fine tuning too: those of small batches would
    undo what was learned (https://keras.io/guides/transfer_learning/).

    Args:
        hyperparameters: Which it is, where the weights are, and whether they change.

    Raises:
        DataError: There are no such weights, or they are of another network.
    """

    def __init__(self, hyperparameters: TransferHyperparameters) -> None:
        super().__init__(hyperparameters.backbone, fine_tuned=hyperparameters.fine_tune_from < 1)
        backbone = BACKBONES[hyperparameters.backbone]
        self._network = backbone.build_network()
        self._network.trainable = hyperparameters.fine_tune_from < 1
        _load_weights(self._network, backbone, hyperparameters.weights)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Look. [B, h, w, 3] → [B, n]."""
        return self._network(inputs, training=False)


def _load_weights(network: tf_keras.Model, backbone: Backbone, uri: str) -> None:
    path = fetch_file(uri)
    try:
        other = recognize_weights(path)
        if other and BACKBONES[other] != backbone:
            raise DataError(
                uri,
                f"weights of {BACKBONES[other].title}",
                f"those of {backbone.title}, the backbone of this model",
                f"Set the hyperparameter backbone to {other}, or correct weights",
            )
        network.load_weights(str(path))
    except (ValueError, OSError, KeyError) as error:
        raise DataError(
            uri,
            f"no weights of {backbone.title} ({' '.join(str(error).split())[:200]})",
            "an HDF5 file of its weights without the top layer",
            "Correct the hyperparameter weights",
        ) from error


def _enlarged(pixels: tf.Tensor, image: Image) -> tf.Tensor:
    """Return colors of the least size backbones take. uint8 [B, h, w, channels] → [B, ≥ 32, ≥ 32, 3] up to 255."""
    x = colors(pixels, image, most=255)
    height, width = max(image.height, LEAST_SIDE), max(image.width, LEAST_SIDE)
    if (height, width) == (image.height, image.width):
        return x
    return tf_keras.layers.Resizing(height, width, name=f"enlarge_{image.name}", dtype="float32")(x)
