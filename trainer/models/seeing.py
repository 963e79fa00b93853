"""What architectures that read images have in common."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.models.dense import DenseHyperparameters
from trainer.models.hyperparameters import limited


@dataclass(frozen=True, kw_only=True)
class SeeingHyperparameters(DenseHyperparameters):
    """Of architectures that read images: those of `dense`, and one of the training itself.

    Attributes:
        augmentation_strength: What `training.augmentation.strength` is multiplied by.
    """

    augmentation_strength: float = limited(1.0, "a number from 0 to 10", minimum=0, maximum=10)
