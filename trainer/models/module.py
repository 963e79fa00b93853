"""`module`: a SavedModel from a path turns images into vectors; fully connected layers learn from them.

The module takes images as TensorFlow Hub's do (https://www.tensorflow.org/hub/common_signatures/images): float32
[batch, height, width, 3] in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.errors import RequestError
from trainer.models.dense import deep, model_inputs
from trainer.models.features import InputShape
from trainer.models.pretrained import PretrainedHyperparameters, colors
from trainer.models.stored_module import StoredModule


@dataclass(frozen=True, kw_only=True)
class ModuleHyperparameters(PretrainedHyperparameters):
    """Of `module`: those of `dense`, for the layers after the module, and those of the module.

    Attributes:
        module: A SavedModel's folder on `gs://…` or a local path. Needed.
    """

    module: str = ""


def build(shape: InputShape, outputs: int, hyperparameters: ModuleHyperparameters) -> tf_keras.Model:
    """Build the model. images [B, h, w, channels], numeric [B, n], categorical [B, m] → logits [B, outputs].

    Raises:
        RequestError: No module is named.
    """
    if not hyperparameters.module:
        raise RequestError(
            "hyperparameters",
            "module is missing",
            "the folder of a SavedModel, gs://… or a local path",
            "Set training.hyperparameters.module",
        )
    pixels = {image.key: tf_keras.Input(image.shape, dtype=tf.uint8, name=image.key) for image in shape.images}
    inputs: dict[str, Any] = {**model_inputs(shape), **pixels}
    module = StoredModule(hyperparameters.module, "module", fine_tuned=hyperparameters.fine_tune_from < 1)
    for image in shape.images:
        module.require_vectors(tf.TensorSpec([None, image.height, image.width, 3], tf.float32))
    seen = [module(colors(pixels[image.key], image)) for image in shape.images]
    logits = tf_keras.layers.Dense(outputs, name="logit")(deep(inputs, shape, hyperparameters, seen))
    return tf_keras.Model(inputs, logits, name="module")
