"""`lstm`: layers of LSTMs over sequences.

Hochreiter, Schmidhuber, Long Short-Term Memory, 1997, https://doi.org/10.1162/neco.1997.9.8.1735
"""

from __future__ import annotations

import tf_keras

from trainer.models.features import InputShape
from trainer.models.recurrent import RecurrentHyperparameters, build_recurrent


def build(shape: InputShape, outputs: int, hyperparameters: RecurrentHyperparameters) -> tf_keras.Model:
    """Build the model. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    return build_recurrent(tf_keras.layers.LSTM, "lstm", shape, outputs, hyperparameters)
