"""Random changes of a training's images: mirrored, turned, zoomed, cropped, brighter, with other contrast, noisy.

Comes in: batches of model inputs. Goes out: the same, with other pixels. In two steps, so that replicas in lockstep
change only their own rows and yet as one device would: `draw` adds random numbers to each row of a whole batch, which
follow from seed, epoch and step alone, and `apply` changes a row by its numbers. So a resumed training sees the same
pictures.

All that moves pixels is one affine map, so that an image is resampled once. A missing image stays black.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from trainer.contract.documents import Augmentation
from trainer.features.images import Image
from trainer.input.source import Tensor, Tensors
from trainer.input.tracing import traced_plainly

_KEY = "augmentation"
"""Of the random numbers, beside the model's inputs."""
_DRAWS = ("flip_x", "flip_y", "rotate", "zoom", "crop", "crop_x", "crop_y", "brightness", "contrast", "noise")
_MOST = 0.5
_NOISE_SEEDS = 1 << 23  # what a float32 in [0, 1) tells apart
_PARALLEL = 16
_WHITE = 255.0


@dataclass(frozen=True, kw_only=True)
class ImageAugmentation:
    """How the images of a training are changed.

    Attributes:
        amounts: The most of each, times the strength.
        images: Which ones.
        place: Of this process among those that read different rows; their numbers differ.
    """

    amounts: Augmentation
    images: tuple[Image, ...]
    place: int = 0

    @classmethod
    def of(cls, amounts: Augmentation | None, images: Sequence[Image], strength: float) -> ImageAugmentation | None:
        """Return a training's; None: no image is changed.

        Args:
            strength: What the section's own is multiplied by.
        """
        if amounts is None or not images or amounts.strength * strength == 0:
            return None
        return cls(amounts=_scaled(amounts, amounts.strength * strength), images=tuple(images))

    def draw(self, batch: tuple[Any, ...], seed: Tensor) -> tuple[Any, ...]:
        """Add random numbers to a batch's inputs.

        Args:
            batch: (inputs, labels).
            seed: Of the epoch, and the step in it. int64 [2]
        """
        inputs, *others = batch
        rows = tf.shape(others[0])[0]
        shape = [rows, len(self.images), len(_DRAWS)]
        seed = seed + tf.constant([self.place, 0], tf.int64) * (1 << 48)
        drawn = tf.random.stateless_uniform(shape, seed, alg="philox")
        return ({**inputs, _KEY: drawn}, *others)

    def apply(self, *batch: Tensors) -> tuple[Any, ...]:
        """Change the images of a batch by its random numbers, and take these away."""
        inputs, *others = batch
        drawn = inputs[_KEY]
        changed = {
            image.key: self.change(inputs[image.key], drawn[:, index]) for index, image in enumerate(self.images)
        }
        return ({name: changed.get(name, values) for name, values in inputs.items() if name != _KEY}, *others)

    @traced_plainly
    def over(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Apply to each batch, several at a time."""
        return batches.map(self.apply, num_parallel_calls=_PARALLEL, deterministic=True).prefetch(2)

    def change(self, pixels: Tensor, drawn: Tensor) -> Tensor:
        """Change images. uint8 [B, h, w, channels], numbers in [0, 1) [B, draws] → uint8 [B, h, w, channels]."""
        by_name = dict(zip(_DRAWS, tf.unstack(drawn, axis=1), strict=True))
        x = tf.cast(pixels, tf.float32)
        x = self._recoloured(self._moved(x, by_name), by_name)
        changed = tf.cast(tf.round(tf.clip_by_value(x, 0.0, _WHITE)), tf.uint8)
        there = tf.reduce_any(pixels > 0, axis=[1, 2, 3], keepdims=True)
        return tf.ensure_shape(tf.where(there, changed, pixels), pixels.shape)

    def _moved(self, x: Tensor, drawn: Tensors) -> Tensor:
        most = self.amounts
        if most.flip == "none" and not (most.rotate or most.zoom or most.crop):
            return x
        height, width = int(x.shape[1]), int(x.shape[2])
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=x,
            transforms=self._transforms(drawn, height, width),
            output_shape=[height, width],
            fill_value=0.0,
            interpolation="BILINEAR",
            fill_mode="REFLECT",
        )

    def _transforms(self, drawn: Tensors, height: int, width: int) -> Tensor:
        """Return the maps from places of the result to places of the image. → [B, 8]."""
        most, chance = self.amounts, 0.5 * min(1.0, self.amounts.strength)
        angle = _either_way(drawn["rotate"]) * (2 * math.pi * most.rotate)
        cut = drawn["crop"] * most.crop
        scale = (1.0 + _either_way(drawn["zoom"]) * most.zoom) * (1.0 - cut)
        flips = [
            tf.where(drawn[name] < chance, -1.0, 1.0) if most.flip in (direction, "both") else 1.0
            for name, direction in (("flip_x", "horizontal"), ("flip_y", "vertical"))
        ]
        cos, sin = tf.cos(angle) * scale, tf.sin(angle) * scale
        a0, a1, b0, b1 = flips[0] * cos, -flips[0] * sin, flips[1] * sin, flips[1] * cos
        x_middle, y_middle = (width - 1) / 2, (height - 1) / 2
        x_shift = x_middle + (drawn["crop_x"] - 0.5) * cut * width
        y_shift = y_middle + (drawn["crop_y"] - 0.5) * cut * height
        a2 = x_shift - a0 * x_middle - a1 * y_middle
        b2 = y_shift - b0 * x_middle - b1 * y_middle
        none = tf.zeros_like(a2)
        return tf.stack([a0, a1, a2, b0, b1, b2, none, none], axis=1)

    def _recoloured(self, x: Tensor, drawn: Tensors) -> Tensor:
        most = self.amounts
        if most.contrast:
            mean = tf.reduce_mean(x, axis=[1, 2], keepdims=True)
            x = (x - mean) * _per_image(1.0 + _either_way(drawn["contrast"]) * most.contrast) + mean
        if most.brightness:
            x += _per_image(_either_way(drawn["brightness"]) * (most.brightness * _WHITE))
        if most.noise:
            x += _noise(drawn["noise"], x) * (most.noise * _WHITE)
        return x


def _scaled(amounts: Augmentation, strength: float) -> Augmentation:
    names = ("rotate", "zoom", "crop", "brightness", "contrast", "noise")
    most = {name: min(_MOST, getattr(amounts, name) * strength) for name in names}
    return replace(amounts, strength=strength, **most)


def _either_way(drawn: Tensor) -> Tensor:
    """[0, 1) → [-1, 1)."""
    return 2.0 * drawn - 1.0


def _per_image(values: Tensor) -> Tensor:
    """[B] → [B, 1, 1, 1]."""
    return values[:, tf.newaxis, tf.newaxis, tf.newaxis]


def _noise(drawn: Tensor, like: Tensor) -> Tensor:
    """Return normal values for each image by its own seed, whatever others are in the batch. [B] → [B, h, w, c]."""
    shape = like.shape[1:]
    seeds = tf.cast(drawn * _NOISE_SEEDS, tf.int32)

    def one(seed: Tensor) -> Tensor:
        return tf.random.stateless_normal(shape, tf.stack([seed, 0]), alg="philox")

    return tf.map_fn(one, seeds, fn_output_signature=tf.TensorSpec(shape, tf.float32))
