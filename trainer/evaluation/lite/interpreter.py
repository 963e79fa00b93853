"""A TF Lite model that scores examples, with the operations that TensorFlow's own package brings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.objective.metrics import Floats
from trainer.saved_model.model import LITE

Arrays = Mapping[str, npt.NDArray[Any]]
"""Examples by input. [n, …] each"""


class LiteModel:
    """A converted model, loaded."""

    def __init__(self, content: bytes) -> None:
        self._interpreter = tf.lite.Interpreter(model_content=content, num_threads=os.cpu_count())
        self._run = self._interpreter.get_signature_runner(LITE)

    def predict(self, raw: Arrays) -> Floats:
        """Score. [n, …] each → [n] or [n, classes]."""
        (scores,) = self._run(**raw).values()
        return np.asarray(scores, np.float64)


def needs_select_ops(content: bytes) -> bool:
    """Tell whether an app must bring TensorFlow's own operations; they stand as `Flex…` in the file."""
    return b"Flex" in content
