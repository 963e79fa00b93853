"""Converts a SavedModel to TF Lite: `python -m trainer.evaluation.lite.convert FORM MODEL_FOLDER SAMPLES OUTPUT`.

A process of its own, because the converter and its calibration can end the process that they run in. Comes in: the
signature `lite` of a stored model, and some examples as a NumPy archive. Goes out: the file, tried on those examples.
https://www.tensorflow.org/lite/performance/post_training_quantization
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.evaluation.lite.interpreter import Arrays, LiteModel, known_deprecation
from trainer.saved_model.model import LITE, save_lite_graph

# Numbers stay as they are until a layer with weights reads them: in 8 bits a raw number loses its NaN, and most of its
# value before it is normalised (scores of a small model were wrong by 0.1 instead of 0.002).
_IN_FLOAT = (
    *("ADD", "CAST", "CONCATENATION", "DIV", "EXPAND_DIMS", "GATHER", "LOGISTIC", "MAXIMUM", "MUL", "PACK", "RESHAPE"),
    *("SELECT", "SELECT_V2", "SLICE", "SOFTMAX", "SPLIT", "STRIDED_SLICE", "SUB", "SUM", "TANH", "TRANSPOSE", "WHILE"),
)

WEIGHTS_ONLY = "int8_weights"
"""What int8 becomes where calibration fails: weights in 8 bits, activations in float32."""


def convert_model(form: str, folder: str, samples: Arrays) -> bytes:
    """Return the file's content, of TF Lite's own operations alone: TensorFlow's package cannot run others since 2.19.

    Args:
        form: `float16`, `int8` or `int8_weights`.
        samples: Examples by input. [n, …] each
    """
    with tempfile.TemporaryDirectory(prefix="trainer-lite-") as path:
        save_lite_graph(Path(folder), Path(path), folder)
        converter = tf.lite.TFLiteConverter.from_saved_model(path, signature_keys=[LITE])
        return _converted(converter, form, samples)


def _converted(converter: tf.lite.TFLiteConverter, form: str, samples: Arrays) -> bytes:
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if form == "int8":
        return _calibrated(converter, samples)
    if form == "float16":
        converter.target_spec.supported_types = [tf.float16]
    content: bytes = converter.convert()
    return content


def _calibrated(converter: tf.lite.TFLiteConverter, samples: Arrays) -> bytes:
    """Quantise layers only: https://www.tensorflow.org/lite/performance/quantization_debugger#selective_quantization."""
    converter.representative_dataset = lambda: _one_by_one(samples)
    with known_deprecation():
        debugger = tf.lite.experimental.QuantizationDebugger(
            converter=converter,
            debug_dataset=lambda: _one_by_one(samples),
            debug_options=tf.lite.experimental.QuantizationDebugOptions(denylisted_ops=list(_IN_FLOAT)),
        )
    content: bytes = debugger.get_nondebug_quantized_model()
    return content


def _one_by_one(samples: Arrays) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = len(next(iter(samples.values())))
    for row in range(rows):
        yield LITE, {name: values[row : row + 1] for name, values in samples.items()}


def main(form: str, folder: str, samples_path: str, output_path: str) -> int:
    """Convert; the last line of standard error says why not."""
    # Texts that no vocabulary has are objects; the archive was written by the process that started this one.
    samples = dict(np.load(samples_path, allow_pickle=True))
    try:
        content = convert_model(form, folder, samples)
        LiteModel(content).predict({name: values[:2] for name, values in samples.items()})
    except Exception as error:  # noqa: BLE001 - the edge of the process: whatever it is, the last line must say it
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        return 1
    Path(output_path).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
