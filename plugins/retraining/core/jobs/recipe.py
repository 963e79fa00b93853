"""The recipe of a training: how long, how fast and how wide, from how much there is to learn from.

In: the rows of a training, and what the spec has written. Out: every number that a train request needs and the spec
leaves open. docs/models.md has the rule as a table. Its sources:

- Gorishniy et al., Revisiting Deep Learning Models for Tabular Data, 2021, https://arxiv.org/abs/2106.11959: AdamW,
  early stopping with a patience in epochs, batches that grow with the data (128 to 1024).
- Holzmüller et al., Better by Default: Strong Pre-Tuned MLPs and Boosted Trees on Tabular Data, 2024,
  https://arxiv.org/abs/2407.04491: at most 256 epochs and the weights of the best one, dropout 0.15 and weight decay
  at every size, a rate that falls.
- Kadra et al., Well-tuned Simple Nets Excel on Tabular Datasets, 2021, https://arxiv.org/abs/2106.11189: on small data
  regularisation decides.
- Smith et al., Don't Decay the Learning Rate, Increase the Batch Size, 2018, https://arxiv.org/abs/1711.00489: the
  noise of a step goes by learning rate x rows / batch size, so few rows get small batches, and many steps of them.
- Gorishniy et al., TabM, 2024, https://arxiv.org/abs/2410.24210: networks side by side answer better than one.

Nothing but the standard library: the benchmark and the trainer's tests import it where Airflow is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from retraining.core.untyped import JsonObject

TABULAR = ("dense", "wide_deep", "deep_cross")
"""Architectures of which the recipe knows the layers; of others it only says how long they are trained."""
MIN_STEPS, MAX_STEPS = 600, 12_000
"""Optimizer steps before a training may stop early, and after which it ends, where epochs are short."""
FIRST_STEPS = 100
"""Optimizer steps before which the trainer takes no epoch for the best one, as of few validation rows the first could
be that by chance; not where weights were taken over. `trainer/training/epochs.py` has it too."""
MIN_EPOCHS, MAX_EPOCHS = 10, 300
SMALLEST_BATCH, LARGEST_BATCH = 16, 512
_BATCHES_PER_EPOCH = 20
_LEAST_PATIENCE, _MOST_PATIENCE, _PATIENT_STEPS = 3, 8, 8000
"""Epochs, and the steps from which on they need not be the most; where epochs are short, `MIN_STEPS` make more."""
_RATE_FACTOR = 0.3
_LINEAR_RATE = 0.01
"""Of `linear`, whose weights begin at 0 and have one best value each."""
_BINNED_ROWS = 1000
"""From so many on a twentieth of the rows is enough to learn an answer in each interval of a number."""
TREES = ("boosted_trees", "random_forest")
"""Architectures whose trees are grown: an epoch is a tree for each logit, or for all of them, on all rows."""
_MOST_TREES, _TREES_PATIENCE, _FOREST_TREES = 2000, 100, 300
_LEAST_IN_LEAF, _ROWS_PER_LEAF = 5, 20_000
"""Of a random forest, rows by each of a leaf: a tree has some 20,000 leaves at most, and a stored forest 300 MB."""
_MEMBERS = ((10_000, 8), (100_000, 4), (1_000_000, 2))
"""Up to how many rows there are how many networks; beyond them one: more rows leave less to chance, and cost more."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a training gets where the spec says nothing.

    Attributes:
        epochs: At most.
        batch_size: Rows per step and replica.
        patience: Epochs without a better validation loss after which it ends.
        rate_patience: Epochs without one after which the learning rate falls; None: it never does.
        rate_factor: What it is multiplied by then.
        hyperparameters: Those that the recipe has of the architecture.
    """

    epochs: int
    batch_size: int
    patience: int
    rate_patience: int | None
    rate_factor: float
    hyperparameters: Mapping[str, float | tuple[int, ...]]

    def as_training(self) -> JsonObject:
        """Return it as the section `training` of a train request has it."""
        return {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "early_stopping_patience": self.patience,
            "callbacks": {"reduce_lr": self.falling_rate},
            "hyperparameters": dict(self.hyperparameters),
        }

    @property
    def falling_rate(self) -> JsonObject | None:
        """When the learning rate falls, and how far."""
        if self.rate_patience is None:
            return None
        return {"patience": self.rate_patience, "factor": self.rate_factor}


def recipe_of(
    model: str, rows: int, *, batch_size: int | None = None, epochs: int | None = None, batches_per_step: int = 1
) -> Recipe:
    """Return an architecture's recipe for so many rows.

    Args:
        model: The architecture; of one that is not known here, it says how long it is trained.
        rows: Of the training split.
        batch_size: As `make_recipe` has it, and so what follows.
        epochs: At most; of trees iterations.
        batches_per_step: Of what is trained by steps.
    """
    if model in TREES:
        make = make_forest_recipe if model == "random_forest" else make_tree_recipe
        return make(rows, epochs=epochs)
    recipe = make_recipe(rows, batch_size=batch_size, epochs=epochs, batches_per_step=batches_per_step)
    if model in TABULAR:
        return recipe
    return replace(recipe, hyperparameters={"learning_rate": _LINEAR_RATE} if model == "linear" else {})


def make_recipe(
    rows: int, *, batch_size: int | None = None, epochs: int | None = None, batches_per_step: int = 1
) -> Recipe:
    """Return the recipe for so many rows.

    Args:
        rows: Of the training split.
        batch_size: That the spec has written; None: by the recipe.
        epochs: The same, at most.
        batches_per_step: Batches that make one step: replicas in lockstep, times accumulated parts.
    """
    rows = max(1, rows)
    batch = batch_size or _batch_size(rows)
    steps = math.ceil(rows / (batch * batches_per_step))
    longest = epochs or min(MAX_EPOCHS, max(MIN_EPOCHS, math.ceil(MAX_STEPS / steps)))
    patient = min(_MOST_PATIENCE, max(_LEAST_PATIENCE, math.ceil(_PATIENT_STEPS / steps)))
    patience = min(longest, max(patient, math.ceil(MIN_STEPS / steps)))
    return Recipe(
        epochs=longest,
        batch_size=batch,
        patience=patience,
        rate_patience=max(1, patience // 3),
        rate_factor=_RATE_FACTOR,
        hyperparameters=_hyperparameters(rows),
    )


def make_tree_recipe(rows: int, *, epochs: int | None = None) -> Recipe:
    """Return the recipe of boosted trees for so many rows: as many trees as help, however many there could be.

    Each tree sees a part of the rows, and each split a part of the columns: Friedman, Stochastic Gradient Boosting,
    2002, https://doi.org/10.1016/S0167-9473(01)00065-2; Chen, Guestrin, XGBoost, 2016,
    https://arxiv.org/abs/1603.02754.

    Args:
        rows: Of the training split.
        epochs: Trees for each logit that the spec has written, at most; None: by the recipe.
    """
    longest = epochs or _MOST_TREES
    return Recipe(
        epochs=longest,
        batch_size=max(1, rows),
        patience=min(longest, _TREES_PATIENCE),
        rate_patience=None,
        rate_factor=1.0,
        hyperparameters={
            "learning_rate": 0.05,
            "max_leaves": 31,
            "min_examples": 20,
            "subsample": 0.8,
            "column_share": 0.5,
        },
    )


def make_forest_recipe(rows: int, *, epochs: int | None = None) -> Recipe:
    """Return the recipe of a random forest for so many rows: no tree is one too many, so it never stops early.

    Args:
        rows: Of the training split, from which each tree draws its own.
        epochs: Trees that the spec has written; None: by the recipe.
    """
    return Recipe(
        epochs=epochs or _FOREST_TREES,
        batch_size=max(1, rows),
        patience=0,
        rate_patience=None,
        rate_factor=1.0,
        hyperparameters={"min_examples": max(_LEAST_IN_LEAF, rows // _ROWS_PER_LEAF)},
    )


def _batch_size(rows: int) -> int:
    """Return a power of two: some twenty batches an epoch, within the limits."""
    power = 1 << round(math.log2(max(1, rows / _BATCHES_PER_EPOCH)))
    return min(LARGEST_BATCH, max(SMALLEST_BATCH, power))


def _hyperparameters(rows: int) -> dict[str, float | tuple[int, ...]]:
    return {
        "hidden_units": (128, 128),
        "learning_rate": 0.003,
        "dropout": 0.1,
        "weight_decay": 0.01,
        "numeric_bins": 16 if rows >= _BINNED_ROWS else 0,
        "members": next((members for most, members in _MEMBERS if rows <= most), 1),
    }
