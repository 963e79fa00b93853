"""A stored model as an endpoint has it.

TensorFlow Serving and the pre-built containers of Vertex AI do not go through `tf.saved_model.load`: they run the graph
of the tag `serve` in a session, and find tensors by the names in the file's signature. What they answer may differ from
what Python's loader says, so it is asked the same way before it is promoted.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.contract.documents import EvaluateRequest, Label
from trainer.objective.answers import CLASS
from trainer.objective.labels import labels_of
from trainer.objective.metrics import Floats
from trainer.saved_model.model import SIGNATURE, input_spec, key_input

Specs = Mapping[str, tf.TensorSpec]
RequestColumns = Mapping[str, np.ndarray[Any, Any]]
"""A request by columns: [B], or [B, any] of a sequence."""

LOAD_ERRORS = (OSError, KeyError, ValueError, RuntimeError, tf.errors.OpError)
"""What a folder that is no model, or one without variables or operations, raises."""


class ServedModel:
    """A SavedModel in a session; a context that ends it. The folder may go once it is loaded.

    Args:
        folder_path: Its local folder.

    Raises:
        LOAD_ERRORS: It cannot be loaded, or has no serving signature.
    """

    def __init__(self, folder_path: Path) -> None:
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default(), _without_deprecation():
            tags = [tf.saved_model.SERVING]
            signatures = tf.compat.v1.saved_model.load(self._session, tags, str(folder_path)).signature_def
        if SIGNATURE not in signatures:
            raise KeyError(f"no signature {SIGNATURE!r}, only {sorted(signatures)}")
        signature = signatures[SIGNATURE]
        self.inputs: Specs = {name: _spec(info) for name, info in signature.inputs.items()}
        self.outputs: Specs = {name: _spec(info) for name, info in signature.outputs.items()}
        self._fed = {name: info.name for name, info in signature.inputs.items()}
        self._fetched = {name: info.name for name, info in signature.outputs.items()}
        self.key = key_input(self._fed, self._fetched)

    def __enter__(self) -> ServedModel:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the session."""
        self._session.close()

    def answer(self, columns: RequestColumns) -> dict[str, Floats]:
        """Return every output, by name; columns that the model does not read are ignored.

        A key that it takes and that is not among the columns is empty, and does not come back.

        Raises:
            OpError: It does not take these values.
        """
        fetched = self._fetched
        if self.key is not None and self.key not in columns:
            rows = len(next(iter(columns.values())))
            blank = b"" if self.inputs[self.key].dtype == tf.string else 0
            columns = {**columns, self.key: np.full([rows], blank, object if blank == b"" else np.int64)}
            fetched = {name: tensor for name, tensor in fetched.items() if name != self.key}
        found: dict[str, Floats] = self._session.run(
            fetched, {tensor: columns[name] for name, tensor in self._fed.items()}
        )
        return found


def signature_differences(
    model: ServedModel, request: EvaluateRequest, key: tf.TensorSpec | None = None
) -> tuple[str, ...]:
    """Say how a model's serving signature differs from that of a model of the request's features, labels and key."""
    inputs = {feature.name: input_spec(feature) for feature in request.features}
    outputs = {labels_of(request.label).answers.output: _output_spec(request.label)}
    outputs |= {label.name: _output_spec(label) for label in request.auxiliary_labels}
    if labels_of(request.label).answers.names:
        outputs[CLASS] = tf.TensorSpec([None], tf.string)
    if key is not None:
        inputs[key.name] = outputs[key.name] = key
    sides = (("input", inputs, model.inputs), ("output", outputs, model.outputs))
    return tuple(line for side, expected, found in sides for line in _differences(side, expected, found))


def _output_spec(label: Label) -> tf.TensorSpec:
    answers = labels_of(label).answers
    size = answers.classes or len(answers.quantiles)
    return tf.TensorSpec([None, size] if size else [None], tf.float32)


def _differences(side: str, expected: Specs, found: Specs) -> Iterator[str]:
    for name, spec in expected.items():
        if name not in found:
            yield f"no {side} {name!r}"
        elif found[name].dtype != spec.dtype or not found[name].shape.is_compatible_with(spec.shape):
            yield f"{side} {name!r} is {_words(found[name])} and not {_words(spec)}"
    yield from (f"{side} {name!r}, which the spec does not have" for name in sorted(set(found) - set(expected)))


def _words(spec: tf.TensorSpec) -> str:
    sizes = "of any shape" if spec.shape.rank is None else str([size or "any" for size in spec.shape]).replace("'", "")
    return f"{spec.dtype.name} {sizes}"


def _spec(info: tf.compat.v1.TensorInfo) -> tf.TensorSpec:
    return tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype))


@contextlib.contextmanager
def _without_deprecation() -> Iterator[None]:
    """Keep TensorFlow from calling its own loader deprecated in the job's log."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
