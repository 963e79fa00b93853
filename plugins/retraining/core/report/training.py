"""How a training was set up, and what its report says against it: not over, or too short to learn anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from retraining.core.documents.plan import Plan
from retraining.core.documents.training import Report, TrainRequest
from retraining.core.documents.tuning import Tuning
from retraining.core.jobs.recipe import FIRST_STEPS, TREES
from retraining.core.spec.training import MEMBERS

FEW_STEPS = 200
"""Optimizer steps below which what was learnt is mostly what the seed made of the weights."""


def training_warnings(report: Report, model: str) -> Iterator[str]:
    """Yield a sentence per finding, each with the way out; none of a framework that takes no steps of its own.

    Args:
        report: Of the training.
        model: The architecture: trees take no steps, and a random forest never has one tree too many.
    """
    if report.framework.tensorflow == "none" or model == "random_forest":
        return
    if report.steps < FEW_STEPS and model not in TREES:
        yield (
            f"{report.steps} optimizer steps are few (expected at least {FEW_STEPS}): with another seed this could be "
            "another model. Remove training.epochs and training.batch_size, so that the recipe chooses them, or raise "
            "the one and lower the other"
        )
    can_tell = model in TREES or report.steps > FIRST_STEPS  # until then the newest is taken for the best
    if report.best_epoch == report.epochs_run and can_tell:
        yield (
            f"the best epoch is the last of {report.epochs_run}: the training was still getting better when it ended. "
            "Remove training.epochs, so that it goes on until nothing gets better, or raise it"
        )


def describe_beginning(request: TrainRequest | None, report: Report | None) -> str | None:
    """Return what the weights began as, where the spec asks for the champion's; None: it does not."""
    begun = report.initial if report else None
    if begun is None:
        reason = request.initial_skipped if request else None
        return f"The weights began as the seed drew them, and not as the champion's: {reason}" if reason else None
    who = f"version {begun.version_id} (run {begun.run_key})"
    anew = "; ".join(f"{variable} ({reason})" for variable, reason in sorted(begun.anew.items()))
    drawn = f"Drawn by the seed: {anew}" if anew else "Nothing was drawn by the seed"
    return f"The weights began as those of {who}, {len(begun.taken)} variables in this run's units. {drawn}"


def describe_members(report: Report | None) -> str | None:
    """Return how far the networks differ that answer together; None: one answers, or it was not measured."""
    if report is None or not report.members:
        return None
    parts = [
        f"{name} {min(values):.4f} to {max(values):.4f}"
        + (f" (together {report.metrics[name]:.4f})" if name in report.metrics else "")
        for name, values in sorted(report.members.items())
    ]
    count = len(next(iter(report.members.values())))
    return f"{count} networks answer together by their mean. Each by itself on the validation split: {', '.join(parts)}"


Source = Literal["file", "form", "search", "recipe", "default"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A number that a training went by, and whence it came."""

    name: str
    value: object
    source: Source


def training_settings(plan: Plan, request: TrainRequest, report: Report, tuning: Tuning | None) -> list[Setting]:
    """Return what a training went by: how long, how fast, and its hyperparameters, by name."""
    written, asked = plan.spec.training, request.training
    falls = asked.callbacks.reduce_lr
    settings = [
        _setting(plan, name, getattr(asked, name), is_written=getattr(written, name) is not None)
        for name in ("batch_size", "epochs", "early_stopping_patience")
    ]
    rate = f"x {falls.factor:g} after {falls.patience} epochs without a better loss" if falls else "never"
    is_written = written.callbacks.reduce_lr is not None or written.early_stopping_patience is not None
    settings.append(_setting(plan, "callbacks.reduce_lr", rate, is_written=is_written))
    searched = {trial_name for trial in tuning.trials for trial_name in trial.hyperparameters} if tuning else set()
    for name, value in sorted(report.hyperparameters.items()):
        if name in searched:
            settings.append(Setting(name=name, value=value, source="search"))
        elif name == MEMBERS and written.ensemble != "auto":
            settings.append(_setting(plan, "ensemble", value, is_written=True, shown=name))
        elif name in written.hyperparameters:
            settings.append(_setting(plan, f"hyperparameters.{name}", value, is_written=True, shown=name))
        else:
            source: Source = "recipe" if name in asked.hyperparameters else "default"
            settings.append(Setting(name=name, value=value, source=source))
    return settings


def _setting(plan: Plan, name: str, value: object, *, is_written: bool, shown: str | None = None) -> Setting:
    source: Source = "form" if f"training.{name}" in plan.overrides else "file" if is_written else "recipe"
    return Setting(name=shown or name, value=value, source=source)
