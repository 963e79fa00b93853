"""Smoke requests: a few examples as an endpoint is asked for them, and what the stored model answers.

The deployment asks the endpoint the same and compares. Comes in: the stored model and raw examples. Goes out: JSON
values, an image as a PNG in base64, a sequence as a list filled up with null or "". A model that takes a key is asked
with one that no example has, so that nobody finds a label for it.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.contract.documents import EncodedBytes, Golden, InstanceValue
from trainer.features.images import as_files
from trainer.features.values import MISSING_TIME
from trainer.objective.metrics import Mask
from trainer.saved_model.model import StoredModel

MAX_REQUESTS = 5
MAX_IMAGE_BYTES = 1_000_000
"""Of all images together, but for the first example's: an endpoint takes requests of 1.5 MB."""

_ROWS_AT_ONCE = 256  # small files give small batches

_Value = np.float32 | np.int64 | bytes | np.ndarray[Any, Any]
_Arrays = Mapping[str, np.ndarray[Any, Any]]


def smoke_requests(stored: StoredModel, raw: tf.data.Dataset) -> tuple[Golden, ...]:
    """Return the first examples without a missing value, and what the stored model answers.

    Args:
        raw: Batches of examples as a prediction request would hold them, but for images, which are pixels.
    """
    for batch in raw.rebatch(_ROWS_AT_ONCE):
        complete = np.all([_present(tensor.numpy()) for tensor in batch.values()], axis=0)
        chosen = np.flatnonzero(complete)[:MAX_REQUESTS]
        if len(chosen):
            images = {name for name, tensor in batch.items() if tensor.dtype == tf.uint8}
            rows = {name: tf.gather(tensor, chosen) for name, tensor in batch.items()}
            sent = {name: as_files(tensor, small=True) if name in images else tensor for name, tensor in rows.items()}
            scores = stored.predict(sent).tolist()
            arrays = {name: tensor.numpy() for name, tensor in sent.items()}
            return tuple(
                Golden(
                    instance={
                        **{name: _json_value(array[row], name in images) for name, array in arrays.items()},
                        **_key(stored, row),
                    },
                    prediction=tuple(scores[row]) if isinstance(scores[row], list) else scores[row],
                )
                for row in range(_fitting({name: arrays[name] for name in images}, len(scores)))
            )
    return ()


def _key(stored: StoredModel, row: int) -> dict[str, InstanceValue]:
    """Return the key that a request is sent with; none to a model that takes none."""
    if (key := stored.key) is None:
        return {}
    return {key.name: -1 - row if key.dtype == tf.int64 else f"smoke-request-{row}"}


def _present(array: np.ndarray[Any, Any]) -> Mask:
    """Return which values are there; an image without one is black. [n], [n, length] or [n, h, w, channels] → [n]."""
    present: Mask
    if array.dtype == np.uint8:
        present = array.reshape(len(array), -1).max(axis=1) > 0
    elif array.dtype == np.float32:
        present = np.isfinite(array)
    elif array.dtype == np.int64:
        present = array > MISSING_TIME
    else:
        present = np.not_equal(array, b"")
    if present.ndim > 1:
        present = np.any(present, axis=1)
    return present


def _fitting(images: _Arrays, rows: int) -> int:
    """Count the first rows whose images one request can hold; one at least."""
    sizes = itertools.accumulate(sum(len(array[row]) for array in images.values()) * 4 // 3 for row in range(rows))
    return max(1, sum(size <= MAX_IMAGE_BYTES for size in sizes))


def _json_value(value: _Value, image: bool) -> EncodedBytes | InstanceValue | tuple[InstanceValue, ...]:
    if isinstance(value, np.ndarray):
        # JSON has no NaN, and every list of a request must be as long as the others: null, which the sender fills in.
        return tuple(item.decode() if isinstance(item, bytes) else _finite(item) for item in value.tolist())
    if isinstance(value, bytes):
        return EncodedBytes(b64=base64.b64encode(value).decode()) if image else value.decode()
    return int(value) if isinstance(value, np.int64) else float(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
