"""Images in a column of bytes → pixels.

Comes in: what the export stored, raw pixels, PNG or JPEG, each of one size. Goes out: [B, height, width, channels].
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from trainer.contract.documents import ImageColumn
from trainer.input.source import Tensor


class ImageFeature(NamedTuple):
    """Asks a reader for a column of images, as `tf.io.FixedLenFeature` asks for one of scalars.

    A missing image is all zeros.

    Attributes:
        height: Pixels.
        width: Pixels.
        channels: 1 is grey, 3 are RGB.
        encoding: How it is stored: `raw` (uint8, row-major), `png` or `jpeg`.
        dtype: `tf.uint8` gives 0 to 255, `tf.float32` 0 to 1.
    """

    height: int
    width: int
    channels: int
    encoding: str = "raw"
    dtype: tf.DType = tf.uint8

    @classmethod
    def of(cls, column: ImageColumn, dtype: tf.DType = tf.uint8) -> ImageFeature:
        """Ask for an image as a manifest describes it."""
        return cls(column.height, column.width, column.channels, column.encoding, dtype)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.height, self.width, self.channels

    def decode(self, stored: Tensor) -> Tensor:
        """Return the pixels. [B] → [B, height, width, channels]."""
        pixels = self._raw(stored) if self.encoding == "raw" else self._compressed(stored)
        return pixels if self.dtype == tf.uint8 else tf.cast(pixels, self.dtype) / 255.0

    def _raw(self, stored: Tensor) -> Tensor:
        size = self.height * self.width * self.channels
        sizes = tf.strings.length(stored)
        right = tf.debugging.Assert(
            tf.reduce_all((sizes == size) | (sizes == 0)),
            [
                f"an image does not have the {size} bytes of {self.height} x {self.width} x {self.channels}; sizes",
                sizes,
            ],
        )
        with tf.control_dependencies([right] if right is not None else []):
            flat = tf.io.decode_raw(stored, tf.uint8, fixed_length=size)  # pads what is missing with zeros
        return tf.reshape(flat, [-1, *self.shape])

    def _compressed(self, stored: Tensor) -> Tensor:
        decode = tf.io.decode_png if self.encoding == "png" else tf.io.decode_jpeg

        def one(content: Tensor) -> Tensor:
            image = tf.cond(
                content == "",
                lambda: tf.zeros(self.shape, tf.uint8),
                lambda: decode(content, channels=self.channels),
            )
            return tf.ensure_shape(image, self.shape)

        return tf.map_fn(one, stored, fn_output_signature=tf.TensorSpec(self.shape, tf.uint8))
