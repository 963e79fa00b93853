"""What trials report, and how it compares.

Comes in: measurements, and the spec that says what is better. Goes out: objective values, in which more is always
better, the measurement that counts in the end, and the trials that none surpasses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from google.cloud.aiplatform_v1.types import Measurement, StudySpec, Trial

from localcloud.vertex.wire.methods import Message, raw

State = Trial.State
ENDED = (State.SUCCEEDED, State.INFEASIBLE)


def objective(spec: StudySpec, measurement: Measurement, index: int = 0) -> float | None:
    """Return a metric's value, turned so that more is better; None when it was not measured, or is no finite number."""
    metric_spec = spec.metrics[index]
    for metric in raw(measurement).metrics:
        if metric.metric_id == metric_spec.metric_id and math.isfinite(metric.value):
            minimize = metric_spec.goal == StudySpec.MetricSpec.GoalType.MINIMIZE
            return float(-metric.value if minimize else metric.value)
    return None


def is_whole(spec: StudySpec, measurement: Measurement) -> bool:
    """Return whether it holds every metric of the study."""
    return all(objective(spec, measurement, index) is not None for index in range(len(spec.metrics)))


def select_final(spec: StudySpec, measurements: Iterable[Measurement]) -> Measurement | None:
    """Return the measurement that a trial is judged by, its last or its best by the first metric; None without one."""
    whole = [measurement for measurement in measurements if is_whole(spec, measurement)]
    if not whole:
        return None
    if spec.measurement_selection_type == StudySpec.MeasurementSelectionType.BEST_MEASUREMENT:
        return max(whole, key=lambda measurement: objective(spec, measurement) or 0.0)  # the earliest of equals
    return whole[-1]


def place_of(measurement: Measurement, *, elapsed: bool) -> float:
    """Return where a measurement stands in its trial: its step, or the seconds since the trial's start."""
    inner = raw(measurement)
    return inner.elapsed_duration.ToNanoseconds() / 1e9 if elapsed else float(inner.step_count)


def sort_key(measurement: Message) -> tuple[int, int]:
    """Measurements of a trial are ordered by step, then by time."""
    inner = raw(measurement)
    return int(inner.step_count), int(inner.elapsed_duration.ToNanoseconds())


def final_values(spec: StudySpec, trial: Trial) -> tuple[float, ...] | None:
    """Return a successful trial's final value of each metric, more is better; None of any other trial."""
    if trial.state != State.SUCCEEDED:
        return None
    values = [objective(spec, trial.final_measurement, index) for index in range(len(spec.metrics))]
    known = [value for value in values if value is not None]
    return tuple(known) if len(known) == len(values) else None


def optimal_trials(spec: StudySpec, trials: Sequence[Trial]) -> list[Trial]:
    """Return the best trial; with several metrics, all that no other surpasses in every respect (the Pareto front)."""
    scored = [(values, trial) for trial in trials if (values := final_values(spec, trial)) is not None]
    if len(spec.metrics) == 1:
        return [max(scored, key=lambda item: item[0])[1]] if scored else []
    return [trial for values, trial in scored if not any(_surpasses(other, values) for other, _ in scored)]


def _surpasses(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))
