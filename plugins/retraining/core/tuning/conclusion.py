"""What came of a study: the best trial, and which values the run trains with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from retraining.core.documents.plan import Plan
from retraining.core.documents.tuning import Trial, Tuning, TuningRequest
from retraining.core.spec.tuning import TuningParameter


def best_trial(trials: Iterable[Trial], goal: Literal["maximize", "minimize"]) -> Trial | None:
    """Return the trial with the best score; the earlier one of equals; None when none has a score."""
    scored = [trial for trial in trials if trial.value is not None]
    if not scored:
        return None
    sign = -1 if goal == "maximize" else 1
    return min(scored, key=lambda trial: sign * (trial.value or 0.0))


def conclude(
    plan: Plan,
    request: TuningRequest,
    trials: Sequence[Trial],
    *,
    searched: Sequence[TuningParameter] = (),
    jobs: Sequence[str] = (),
) -> Tuning:
    """Return what the run trains with.

    Args:
        plan: The run.
        request: What was decided.
        trials: Of both phases, in order; none when nothing was searched.
        searched: The space of the second phase.
        jobs: Names of the tuning jobs.
    """
    spec = plan.spec.tuning
    best = best_trial(trials, spec.goal) if spec else None
    hyperparameters, message = request.hyperparameters, request.words
    source: Literal["spec", "champion", "study"] = request.source
    if best is not None and spec is not None:  # the trials' own ground was the file, never the champion
        hyperparameters, source = {**plan.spec.training.hyperparameters, **best.hyperparameters}, "study"
        message = f"trial {best.trial_id} of {len(trials)} ({best.phase}) is the best: {spec.metric} {best.value:.4f}"
    elif trials:
        message = f"none of {len(trials)} trials has a score: the values of the {source} are used"
    elif source == "champion":
        message = f"{message}; the champion's values are used"
    return Tuning(
        model=plan.model,
        run_key=plan.run_key,
        as_of=plan.as_of,
        metric=spec.metric if spec else None,
        goal=spec.goal if spec else None,
        hyperparameters=hyperparameters,
        source=source,
        words=message,
        space=spec.parameters if spec else (),
        searched=tuple(searched),
        trials=tuple(trials),
        best=best.trial_id if best else None,
        jobs=tuple(jobs),
        seconds=round(sum(trial.seconds or 0.0 for trial in trials), 3),
    )
