"""Networks of `tf_keras.applications` by name, up to the mean over all places; weights come from a file of your own.

Comes in: a name. Goes out: the network without weights, and what turns colours into what it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import tensorflow as tf
import tf_keras

LEAST_SIDE = 32  # all of them halve an image five times


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A network that was trained on ImageNet.

    Attributes:
        title: Its class in `tf_keras.applications`.
        module: Where there its `preprocess_input` is; of some it does nothing, as the network scales by itself.
        arrays: Of weights in its file, by which a file is told from that of another.
    """

    title: str
    module: str
    arrays: int

    def build_network(self) -> tf_keras.Model:
        """Build it with random weights. float32 [B, h, w, 3] → [B, n]."""
        build: Callable[..., Any] = getattr(tf_keras.applications, self.title)
        return build(include_top=False, weights=None, input_shape=(None, None, 3), pooling="avg")

    def prepare(self, colors: tf.Tensor) -> tf.Tensor:
        """Return colours as it was trained on. [B, h, w, 3] in [0, 255] → [B, h, w, 3]."""
        return getattr(tf_keras.applications, self.module).preprocess_input(colors, data_format="channels_last")


BACKBONES = {
    "densenet121": Backbone(title="DenseNet121", module="densenet", arrays=604),
    "resnet50": Backbone(title="ResNet50", module="resnet", arrays=318),
    "efficientnetv2_b0": Backbone(title="EfficientNetV2B0", module="efficientnet_v2", arrays=359),
    "mobilenetv3_small": Backbone(title="MobileNetV3Small", module="mobilenet_v3", arrays=206),
    "mobilenetv3_large": Backbone(title="MobileNetV3Large", module="mobilenet_v3", arrays=262),
}


def recognize_weights(path: Path) -> str | None:
    """Return whose weights a file has, by the number of arrays; None if no network here has so many.

    Raises:
        OSError: It is no HDF5 file.
    """
    found = 0

    def count(_: str, item: object) -> None:
        nonlocal found
        found += isinstance(item, h5py.Dataset)

    with h5py.File(path, "r") as file:
        file.visititems(count)
    return next((name for name, known in BACKBONES.items() if known.arrays == found), None)
