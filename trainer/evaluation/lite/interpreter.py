"""A TF Lite model that scores examples."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.features.vocabulary import Vocabulary
from trainer.objective.answers import OUTPUTS
from trainer.objective.metrics import Floats
from trainer.saved_model.model import LITE

Arrays = Mapping[str, npt.NDArray[Any]]
"""Examples by input. [n, …] each"""


@contextlib.contextmanager
def known_deprecation() -> Iterator[None]:
    """Let TensorFlow not say inside the block that its interpreter moves to another package: this version has it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\s*Warning: tf.lite.Interpreter is deprecated", UserWarning)
        yield


class LiteModel:
    """A converted model, loaded.

    Args:
        vocabulary: Ids of its categories; default: they come as ids.
    """

    def __init__(self, content: bytes, vocabulary: Vocabulary | None = None) -> None:
        self._vocabulary = vocabulary or Vocabulary(codes={})
        with known_deprecation():
            self._interpreter = tf.lite.Interpreter(model_content=content, num_threads=os.cpu_count())
        self._run = self._interpreter.get_signature_runner(LITE)
        self._takes_one = all(item["shape_signature"][0] == 1 for item in self._run.get_input_details().values())

    def predict(self, raw: Arrays) -> Floats:
        """Score: give the label's answers. [n, …] each → [n] or [n, classes]."""
        encoded = self._vocabulary.encode(raw)
        rows = len(next(iter(encoded.values())))
        step = 1 if self._takes_one else max(rows, 1)
        found = [
            self._score({name: values[start : start + step] for name, values in encoded.items()})
            for start in range(0, rows, step)
        ]
        return np.concatenate(found)

    def _score(self, encoded: Arrays) -> Floats:
        answered = self._run(**encoded)
        return np.asarray(next(answered[name] for name in OUTPUTS if name in answered), np.float64)
