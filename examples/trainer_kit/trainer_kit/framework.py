"""What a framework brings; the rest of a trainer is the same for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from trainer_kit.data import Array, Encoder

Model: TypeAlias = Any
"""A framework's own object."""


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """What is learnt from.

    Attributes:
        train: Matrix [rows, features] and labels [rows].
        validation: The same.
        encoder: Which columns of the matrix are what.
        label: Of the request.
        training: Section `training` of the request; an epoch is a round of boosting.
        seed: Of all that is random.
        weights: How much each row counts, by split (`train`, `validation`); empty: all the same.
    """

    train: tuple[Array, Array]
    validation: tuple[Array, Array]
    encoder: Encoder
    label: Mapping[str, Any]
    training: Mapping[str, Any]
    seed: int
    weights: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came of it.

    Attributes:
        model: As `predict` and `save` take it.
        history: `loss` and `val_loss` after each round.
        best: Round that the model stops at, from 1.
        parameters: A count of what was learnt: leaves of trees.
    """

    model: Model
    history: Mapping[str, list[float]]
    best: int
    parameters: int


class Framework(Protocol):
    """A framework's side.

    Attributes:
        packages: Versions by name.
        hyperparameters: Names that it takes, with their defaults.
    """

    packages: Mapping[str, str]
    hyperparameters: Mapping[str, int | float]

    def train(self, data: TrainingData) -> Trained:
        """Learn."""

    def save(self, model: Model, folder: Path) -> None:
        """Write files."""

    def load(self, folder: Path) -> Model:
        """Read them again."""

    def predict(self, model: Model, matrix: Array, classes: int | None) -> Array:
        """Answer. [rows, features] → [rows] of numbers, or probabilities [rows, classes]."""
