"""`module`: SavedModels from a path turn images or texts into vectors; fully connected layers learn from them.

Modules take what TensorFlow Hub's do: images as float32 [batch, height, width, 3] in [0, 1]
(https://www.tensorflow.org/hub/common_signatures/images), texts as strings [batch]
(https://www.tensorflow.org/hub/common_signatures/text).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.dense import deep, last, model_inputs
from trainer.models.features import InputShape
from trainer.models.pretrained import PretrainedHyperparameters, colors
from trainer.models.stored_module import StoredModule


@dataclass(frozen=True, kw_only=True)
class ModuleHyperparameters(PretrainedHyperparameters):
    """Of `module`: those of `dense`, for the layers after the modules, and those of the modules.

    Attributes:
        module: A SavedModel's folder on `gs://…` or a local path, which reads images. Needed where there are some.
        text_module: The same for texts.
    """

    module: str = ""
    text_module: str = ""


def build(shape: InputShape, outputs: int, hyperparameters: ModuleHyperparameters) -> tf_keras.Model:
    """Build the model. images [B, h, w, channels], texts [B], numeric [B, n], categorical [B, m] → logits [B, outputs].

    Raises:
        DataError: There is no such module, or it answers something else than vectors.
    """
    pixels = {image.key: tf_keras.Input(image.shape, dtype=tf.uint8, name=image.key) for image in shape.images}
    texts = {text.key: tf_keras.Input([], dtype=tf.string, name=text.key) for text in shape.texts}
    inputs: dict[str, Any] = {**model_inputs(shape), **pixels, **texts}
    seen = []
    if shape.images:
        module = _load_module("module", hyperparameters.module, hyperparameters)
        for image in shape.images:
            module.require_vectors(tf.TensorSpec([None, image.height, image.width, 3], tf.float32))
            seen.append(module(colors(pixels[image.key], image)))
    if shape.texts:
        module = _load_module("text_module", hyperparameters.text_module, hyperparameters)
        module.require_vectors(tf.TensorSpec([None], tf.string))
        seen += [module(texts[text.key]) for text in shape.texts]
    logits = last(deep(inputs, shape, hyperparameters, seen), outputs, hyperparameters)
    return tf_keras.Model(inputs, logits, name="module")


def _load_module(name: str, uri: str, hyperparameters: ModuleHyperparameters) -> StoredModule:
    return StoredModule(uri, name, fine_tuned=hyperparameters.fine_tune_from < 1)
