"""`transfer`: DenseNet121, trained elsewhere, looks at images; fully connected layers learn from what it sees.

Huang et al., Densely Connected Convolutional Networks, 2016, https://arxiv.org/abs/1608.06993; the weights are those of
https://keras.io/api/applications/densenet/ without the top, as a file of your own: nothing is downloaded from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.errors import DataError
from trainer.models.dense import deep, model_inputs
from trainer.models.features import Image, InputShape
from trainer.models.pretrained import Pretrained, PretrainedHyperparameters, colors, fetch_file

_LEAST_SIDE = 32  # DenseNet halves an image five times
# Of ImageNet's colours; what keras.applications.densenet.preprocess_input does ("torch").
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True, kw_only=True)
class TransferHyperparameters(PretrainedHyperparameters):
    """Of `transfer`: those of `dense`, for the layers after DenseNet121, and those of DenseNet121.

    Attributes:
        weights: Of DenseNet121 without its top: an HDF5 file on `gs://…` or a local path. Needed: its batch
            normalisation keeps the statistics that it came with, so from random numbers it would learn nothing.
    """

    weights: str = ""


def build(shape: InputShape, outputs: int, hyperparameters: TransferHyperparameters) -> tf_keras.Model:
    """Build the model. images [B, h, w, channels], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    pixels = {image.key: tf_keras.Input(image.shape, dtype=tf.uint8, name=image.key) for image in shape.images}
    inputs: dict[str, Any] = {**model_inputs(shape), **pixels}
    eyes = DenseNet(hyperparameters)
    seen = [eyes(_prepared(pixels[image.key], image)) for image in shape.images]
    logits = tf_keras.layers.Dense(outputs, name="logit")(deep(inputs, shape, hyperparameters, seen))
    return tf_keras.Model(inputs, logits, name="transfer")


class DenseNet(Pretrained):
    """DenseNet121 up to the mean over all places, the same for every image.

    Its batch normalisation keeps the statistics that it came with, in fine tuning too: those of small batches would
    undo what was learned (https://keras.io/guides/transfer_learning/).

    Args:
        hyperparameters: Where the weights are, and whether they change.

    Raises:
        DataError: There are no such weights, or they are of another network.
    """

    def __init__(self, hyperparameters: TransferHyperparameters) -> None:
        super().__init__("densenet121", fine_tuned=hyperparameters.fine_tune_from < 1)
        self._network = tf_keras.applications.DenseNet121(
            include_top=False, weights=None, input_shape=(None, None, 3), pooling="avg"
        )
        self._network.trainable = hyperparameters.fine_tune_from < 1
        self._load_weights(hyperparameters.weights)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Look. [B, h, w, 3] → [B, 1024]."""
        return self._network(inputs, training=False)

    def _load_weights(self, uri: str) -> None:
        try:
            self._network.load_weights(str(fetch_file(uri)))
        except (ValueError, OSError, KeyError) as error:
            raise DataError(
                uri,
                f"no weights of DenseNet121 ({' '.join(str(error).split())[:200]})",
                "an HDF5 file of its weights without the top layer",
                "Correct the hyperparameter weights",
            ) from error


def _prepared(pixels: tf.Tensor, image: Image) -> tf.Tensor:
    """Give colours as DenseNet121 was trained on. uint8 [B, h, w, channels] → [B, ≥ 32, ≥ 32, 3]."""
    x = colors(pixels, image)
    height, width = max(image.height, _LEAST_SIDE), max(image.width, _LEAST_SIDE)
    if (height, width) != (image.height, image.width):
        x = tf_keras.layers.Resizing(height, width, name=f"enlarge_{image.name}", dtype="float32")(x)
    return (x - tf.constant(_MEAN)) / tf.constant(_DEVIATION)
