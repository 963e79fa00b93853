"""`gru`: layers of GRUs over sequences.

Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014, https://arxiv.org/abs/1406.1078
"""

from __future__ import annotations

import tf_keras

from trainer.models.features import InputShape
from trainer.models.recurrent import RecurrentHyperparameters, build_recurrent


def build(shape: InputShape, outputs: int, hyperparameters: RecurrentHyperparameters) -> tf_keras.Model:
    """Build the model. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    return build_recurrent(tf_keras.layers.GRU, "gru", shape, outputs, hyperparameters)
