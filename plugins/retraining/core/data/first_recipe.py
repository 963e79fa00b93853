"""How long a first model is trained: epochs and batches by the rows, so that there are steps enough to learn something.

In: rows. Out: `training.epochs`, `batch_size` and `early_stopping_patience`. A rule of thumb: 0.001, the learning rate
of Adam, needs some thousand steps whatever the rows are; early stopping ends what has learnt before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

STEPS = 3000
"""Optimizer steps that a training may take, if its rows are few."""
LEAST_STEPS = 300
"""Before it may stop early."""
MAX_EPOCHS = 300
_SMALLEST_BATCH, _LARGEST_BATCH = 16, 512
_BATCHES_PER_EPOCH = 20


@dataclass(frozen=True, kw_only=True)
class FirstRecipe:
    """Epochs at most, rows per step, and the epochs without progress after which the training ends."""

    epochs: int
    batch_size: int
    patience: int
    steps_per_epoch: int


def guess_recipe(train_rows: float) -> FirstRecipe:
    """Return a recipe for so many training rows: some thousand steps, at least some hundred before it stops early."""
    rows = max(1, math.floor(train_rows))
    power = 2 ** round(math.log2(max(1, rows / _BATCHES_PER_EPOCH)))
    batch = min(_LARGEST_BATCH, max(_SMALLEST_BATCH, power))
    steps = math.ceil(rows / batch)
    epochs = min(MAX_EPOCHS, max(5, math.ceil(STEPS / steps)))
    patience = min(epochs, max(3, math.ceil(epochs / 10), math.ceil(LEAST_STEPS / steps)))
    return FirstRecipe(epochs=epochs, batch_size=batch, patience=patience, steps_per_epoch=steps)
