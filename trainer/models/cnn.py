"""`cnn`: convolutions over images, halved again and again; numbers and categories join before the last layers.

As small as the image allows: LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998, with today's
layers (3 x 3 filters and maximum pooling as in Simonyan, Zisserman 2014, https://arxiv.org/abs/1409.1556).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.dense import SeeingHyperparameters, deep, last, model_inputs
from trainer.models.features import Image, InputShape
from trainer.models.hyperparameters import whole, widths

_FIRST_FILTERS = 32
_MOST_FILTERS = 256
_LAST_SIDE = 3  # pixels at which halving ends


@dataclass(frozen=True, kw_only=True)
class CnnHyperparameters(SeeingHyperparameters):
    """Of `cnn`: those of `dense`, for the layers after the convolutions, and those of the convolutions.

    Attributes:
        filters: Of each block of one convolution and one halving. Default: by the image's size, from 32 on doubled
            with each block up to 256, until the shorter side has 3 pixels at most.
        kernel_size: Side of the filters, in pixels.
    """

    filters: tuple[int, ...] = widths((), most=4096, may_be_empty=True)
    kernel_size: int = whole(3, 1, 31)


def build(shape: InputShape, outputs: int, hyperparameters: CnnHyperparameters) -> tf_keras.Model:
    """Build the model. images [B, h, w, channels], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    pixels = {image.key: tf_keras.Input(image.shape, dtype=tf.uint8, name=image.key) for image in shape.images}
    inputs: dict[str, Any] = {**model_inputs(shape), **pixels}
    seen = [_convolutions(image, hyperparameters)(pixels[image.key]) for image in shape.images]
    logits = last(deep(inputs, shape, hyperparameters, seen), outputs, hyperparameters)
    return tf_keras.Model(inputs, logits, name="cnn")


def _convolutions(image: Image, hyperparameters: CnnHyperparameters) -> tf_keras.Sequential:
    """Stack an image's layers one on the other. uint8 [B, height, width, channels] → [B, n]."""
    stack = tf_keras.Sequential([tf_keras.layers.Rescaling(1 / 255, name="scale")], name=f"see_{image.name}")
    for index, filters in enumerate(hyperparameters.filters or default_filters(image)):
        stack.add(
            tf_keras.layers.Conv2D(
                filters,
                hyperparameters.kernel_size,
                padding="same",
                activation=hyperparameters.activation,
                name=f"conv_{index}",
            )
        )
        stack.add(tf_keras.layers.MaxPool2D(2, padding="same", name=f"halve_{index}"))
    stack.add(tf_keras.layers.Flatten(name="flatten"))
    return stack


def default_filters(image: Image) -> tuple[int, ...]:
    """Return the filters of each block for an image of this size; at least one block."""
    side, filters = min(image.height, image.width), [_FIRST_FILTERS]
    while (side := -(-side // 2)) > _LAST_SIDE:
        filters.append(min(2 * filters[-1], _MOST_FILTERS))
    return tuple(filters)
