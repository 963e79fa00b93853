"""A SavedModel from a path as a layer: what TensorFlow Hub calls a module.

https://www.tensorflow.org/hub/reusable_saved_models; TensorFlow Hub itself is not needed, and nothing is downloaded
but from that path.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer.errors import DataError
from trainer.models.pretrained import Pretrained, fetch_folder

_SIGNATURES = ("default", "serving_default")


class StoredModule(Pretrained):
    """Calls a SavedModel; its variables become the layer's.

    Args:
        uri: A folder on `gs://…` or a local path.
        fine_tuned: Whether its variables are ever trained.

    Raises:
        DataError: There is none, or it cannot be called.
    """

    def __init__(self, uri: str, name: str, *, fine_tuned: bool) -> None:
        super().__init__(name, fine_tuned=fine_tuned)
        self._uri = uri
        try:
            self.module = tf.saved_model.load(str(fetch_folder(uri)))
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise DataError(uri, f"no SavedModel ({' '.join(str(error).split())[:200]})", "a SavedModel") from error
        trained = {variable.ref() for variable in getattr(self.module, "trainable_variables", ())}
        variables = [*getattr(self.module, "variables", ())]
        if fine_tuned and not trained:
            raise DataError(
                uri, "has no trainable variables", "some, to be fine tuned", "Set fine_tune_from to 1: never"
            )
        for variable in variables:
            (self._trainable_weights if variable.ref() in trained else self._non_trainable_weights).append(variable)

    def require_vectors(self, inputs: tf.TensorSpec) -> None:
        """Check that it answers with a vector per example; nothing is computed for that.

        Raises:
            DataError: It cannot be called with such inputs, or answers something else.
        """
        try:
            answer = tf.function(self.call, autograph=False).get_concrete_function(inputs).structured_outputs
        except (ValueError, TypeError, LookupError, tf.errors.OpError) as error:
            raise DataError(
                self._uri,
                f"cannot be called with {inputs.dtype.name} {inputs.shape} ({' '.join(str(error).split())[:200]})",
                "a function or a signature 'default' or 'serving_default' that takes one such tensor",
            ) from error
        shape = getattr(answer, "shape", None)
        if shape is None or shape.rank != 2:
            raise DataError(
                self._uri, f"answers {type(answer).__name__ if shape is None else shape}", "[batch, n], a vector each"
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Call it as it is served: its batch normalisation and dropout stay still. → [B, n]."""
        answer = self.module(inputs) if callable(self.module) else self._signature(inputs)
        return next(iter(answer.values())) if isinstance(answer, dict) and len(answer) == 1 else answer

    def _signature(self, inputs: tf.Tensor) -> Any:  # noqa: ANN401 - whatever it answers
        name = next((name for name in _SIGNATURES if name in self.module.signatures), "none")
        signature = self.module.signatures[name]
        (argument,) = signature.structured_input_signature[1]
        return signature(**{argument: inputs})
