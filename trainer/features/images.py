"""Images inside the model: from a request's PNG or JPEG to the pixels that the export would have stored.

Comes in: a string per image, as a prediction request has it, "" for a missing one (all zeros, as in training). Goes
out: uint8 [B, height, width, channels]. The export resizes with Pillow, this with TensorFlow, by the same rules:
bilinear with antialiasing, rounded; grey by ITU-R 601-2; alpha dropped. What remains different, measured: nothing for
an image that has the size already, at most 1 of 255 for other PNGs; JPEGs of more than twice the size differ by more,
as Pillow decodes them at a lower resolution (`tests/trainer/features/test_images.py` has the figures).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import tensorflow as tf

from trainer.contract.documents import ImageFeature

# Of 65536, as Pillow has them: https://pillow.readthedocs.io/en/stable/reference/Image.html#PIL.Image.Image.convert
_RED, _GREEN, _BLUE, _HALF = 19595, 38470, 7471, 32768


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image feature's place in the model.

    Attributes:
        name: Of the feature.
        height: Pixels.
        width: Pixels.
        channels: 1 is grey, 3 are RGB.
    """

    name: str
    height: int
    width: int
    channels: int

    @classmethod
    def of(cls, feature: ImageFeature) -> Image:
        """Return a feature's image."""
        return cls(name=feature.name, height=feature.height, width=feature.width, channels=feature.channels)

    @property
    def key(self) -> str:
        """Name of its pixels among the model's inputs."""
        return f"image_{self.name}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.height, self.width, self.channels

    def pixels(self, values: tf.Tensor) -> tf.Tensor:
        """Decode and resize; pixels stay as they are. [B] or [B, height, width, channels] → the latter."""
        if values.dtype == tf.uint8:
            return values
        spec = tf.TensorSpec(self.shape, tf.uint8)
        return tf.map_fn(self._one, values, fn_output_signature=spec)

    def _one(self, content: tf.Tensor) -> tf.Tensor:
        decoded = tf.cond(tf.equal(content, ""), lambda: tf.zeros(self.shape, tf.uint8), lambda: self._decoded(content))
        decoded.set_shape([None, None, self.channels])
        here = tf.shape(decoded)[:2]
        right = tf.reduce_all(tf.equal(here, [self.height, self.width]))
        return tf.ensure_shape(tf.cond(right, lambda: decoded, lambda: self._resized(decoded)), self.shape)

    def _decoded(self, content: tf.Tensor) -> tf.Tensor:
        """Decode a file of any size. [] → [h, w, channels]."""
        jpeg = functools.partial(tf.io.decode_jpeg, content, channels=self.channels, dct_method="INTEGER_ACCURATE")
        return tf.cond(tf.io.is_jpeg(content), jpeg, lambda: self._png(content))

    def _png(self, content: tf.Tensor) -> tf.Tensor:
        color = tf.io.decode_png(content, channels=3)
        if self.channels == 3:
            return color
        wide = tf.cast(color, tf.int32)
        # TensorFlow's own grey weighs the colours otherwise than Pillow's.
        grey = (wide[..., 0] * _RED + wide[..., 1] * _GREEN + wide[..., 2] * _BLUE + _HALF) // 65536
        return tf.cast(grey[..., tf.newaxis], tf.uint8)

    def _resized(self, decoded: tf.Tensor) -> tf.Tensor:
        values = tf.image.resize(decoded, [self.height, self.width], "bilinear", antialias=True)
        return tf.cast(tf.clip_by_value(tf.floor(values + 0.5), 0.0, 255.0), tf.uint8)


def as_files(pixels: tf.Tensor, *, small: bool = False) -> tf.Tensor:
    """Return PNGs, as a prediction request would hold them; nothing is lost.

    Args:
        pixels: uint8 [B, height, width, channels].
        small: Compress them; not worth it for what is decoded again at once.

    Returns:
        [B]
    """
    encode = functools.partial(tf.io.encode_png, compression=-1 if small else 0)
    return tf.map_fn(encode, pixels, fn_output_signature=tf.TensorSpec([], tf.string))
