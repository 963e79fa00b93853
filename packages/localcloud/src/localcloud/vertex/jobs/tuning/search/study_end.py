"""When a study asks to end by itself: budgets of trials and time, and a score that no longer rises.

Comes in: `StudySpec.study_stopping_config` and the trials so far. Goes out: whether to suggest no more. The conditions
are looked at in the order of the message, so that the minimums come before what they hold back.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from google.cloud.aiplatform_v1.types import StudySpec, StudyTimeConstraint, Trial

from localcloud.vertex.jobs.tuning.search.measurements import ENDED, final_values


def is_over(spec: StudySpec, created: datetime.datetime, trials: Sequence[Trial], now: datetime.datetime) -> bool:
    """Return whether a study's own conditions end it.

    Args:
        created: When the study was, in UTC.
        trials: All of them, in order.
        now: The time, in UTC.
    """
    if "study_stopping_config" not in spec:
        return False
    config = spec.study_stopping_config
    ended = [trial for trial in trials if trial.state in ENDED]
    if "minimum_runtime_constraint" in config and not _has_passed(config.minimum_runtime_constraint, created, now):
        return False
    if config.min_num_trials is not None and len(ended) < config.min_num_trials:
        return False
    if "maximum_runtime_constraint" in config and _has_passed(config.maximum_runtime_constraint, created, now):
        return True
    if config.max_num_trials is not None and len(trials) >= config.max_num_trials:
        return True
    return len(spec.metrics) == 1 and _makes_no_progress(spec, config, ended, now)


def _has_passed(constraint: StudyTimeConstraint, created: datetime.datetime, now: datetime.datetime) -> bool:
    if "max_duration" in constraint:
        return bool(now - created >= constraint.max_duration)
    return bool(now >= constraint.end_time)


def _makes_no_progress(
    spec: StudySpec, config: StudySpec.StudyStoppingConfig, ended: Sequence[Trial], now: datetime.datetime
) -> bool:
    """Return whether the best score has stood for too many trials, or for too long."""
    by_end = sorted(ended, key=lambda trial: trial.end_time)
    best: float | None = None
    since, standing_trials = None, 0
    for trial in by_end:
        values = final_values(spec, trial)
        standing_trials += 1
        if values is not None and (best is None or values[0] > best):
            best, since, standing_trials = values[0], trial.end_time, 0
    limit = config.max_num_trials_no_progress
    if limit is not None and standing_trials >= limit:
        return True
    duration = config.max_duration_no_progress
    return bool(duration and since is not None and now - since >= duration)
