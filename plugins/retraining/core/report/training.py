"""What a training's report says against it: it may not have been over, or too short to learn anything."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.documents.training import Report

FEW_STEPS = 200
"""Optimizer steps below which what was learnt is mostly what the seed made of the weights."""


def training_warnings(report: Report) -> Iterator[str]:
    """Yield a sentence per finding, each with the way out; none of a framework that takes no steps of its own."""
    if report.framework.tensorflow == "none":
        return
    if report.steps < FEW_STEPS:
        yield (
            f"{report.steps} optimizer steps are few (expected at least {FEW_STEPS}): with another seed this could be "
            "another model. Raise training.epochs, or lower training.batch_size"
        )
    if report.best_epoch == report.epochs_run:
        yield (
            f"the best epoch is the last of {report.epochs_run}: the training was still getting better when it ended. "
            "Raise training.epochs; training.early_stopping_patience ends it when it has learnt"
        )
