"""Rules that end a trial early because it will not become the best.

Comes in: a study's spec, its trials, and one that runs. Goes out: whether it should stop. Values are turned so that
more is better; the place on a curve is the step, or the elapsed seconds when the spec says so.
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from google.cloud.aiplatform_v1.types import StudySpec, Trial

from localcloud.vertex.jobs.tuning.search.measurements import State, final_values, objective, place_of
from localcloud.vertex.wire.methods import raw

Curve = list[tuple[float, float]]
"""(place, value) of each measurement, in order."""
MIN_TRIALS = {"median_automated_stopping_spec": 3, "decay_curve_stopping_spec": 5}
"""Successful trials before a rule speaks; the service does not publish its own numbers."""
DEFAULT_MIN_MEASUREMENTS = 5  # of the convex rule, by its documentation
VERY_LOW_PROBABILITY = 0.01
_GRID = 8  # points at which curves are compared
_NOISE = 0.05  # share of the variance of what is predicted


def should_stop(spec: StudySpec, trials: Sequence[Trial], trial: Trial) -> bool:
    """Return whether the spec's rule would end this trial now; without a rule, or with no measurement yet, never."""
    rule = raw(spec).WhichOneof("automated_stopping_spec")
    if rule is None:
        return False
    settings = getattr(spec, rule)
    curve = curve_of(spec, trial, elapsed=settings.use_elapsed_duration)
    done = [other for other in trials if other.state == State.SUCCEEDED and other.id != trial.id]
    curves = [curve_of(spec, other, elapsed=settings.use_elapsed_duration) for other in done]
    finals = [values[0] if (values := final_values(spec, other)) else None for other in done]
    known = [(c, final) for c, final in zip(curves, finals, strict=True) if final is not None]
    if not curve or len(known) < MIN_TRIALS.get(rule, 0):
        return False
    if rule == "median_automated_stopping_spec":
        return _is_below_median(curve, [c for c, _ in known])
    if rule == "decay_curve_stopping_spec":
        return _cannot_decay_to_best(curve, known)
    return _cannot_climb_to_best(curve, known, settings)


def curve_of(spec: StudySpec, trial: Trial, *, elapsed: bool) -> Curve:
    """Return a trial's measurements of the first metric."""
    points = [(place_of(each, elapsed=elapsed), objective(spec, each)) for each in trial.measurements]
    return [(place, value) for place, value in points if value is not None]


def _is_below_median(curve: Curve, others: Sequence[Curve]) -> bool:
    """Return its best value is strictly below the median of the others' running averages up to its last measurement."""
    here = curve[-1][0]
    upto = [[value for place, value in other if place <= here] for other in others]
    averages = [statistics.fmean(values) for values in upto if values]
    return bool(averages) and max(value for _, value in curve) < statistics.median(averages)


def _cannot_climb_to_best(
    curve: Curve, known: Sequence[tuple[Curve, float]], settings: StudySpec.ConvexAutomatedStoppingSpec
) -> bool:
    """Even if it went on as steeply as now, it would end below the best: learning curves only flatten."""
    need = settings.min_measurement_count or DEFAULT_MIN_MEASUREMENTS
    end = settings.max_step_count or max((other[-1][0] for other, _ in known if other), default=0)
    start = settings.min_step_count if "min_step_count" in settings else end / 10
    if len(known) < need + 1 or len(curve) < need or curve[-1][0] <= start or curve[-1][0] >= end:
        return False
    recent = curve[-need:]
    (first, low), (last, high) = recent[0], recent[-1]
    if last == first or low == high:
        return False  # a flat curve decides nothing
    overestimate = high + max(0.0, (high - low) / (last - first)) * (end - last)
    return overestimate < max(final for _, final in known)


def _cannot_decay_to_best(curve: Curve, known: Sequence[tuple[Curve, float]]) -> bool:
    """Return whether a Gaussian process over curves gives the final value almost no chance to pass the best.

    It learns how much completed trials still gained from this place on, with curves of a like shape up to here counting
    most (Golovin et al., Google Vizier, KDD 2017, section 3.1.1).
    """
    here = curve[-1][0]
    longer = [(other, final) for other, final in known if len(other) > 1 and other[0][0] <= here < other[-1][0]]
    if len(curve) < 2 or len(longer) < MIN_TRIALS["decay_curve_stopping_spec"]:
        return False
    gains = [final - _value_at(other, here) for other, final in longer]
    mean, deviation = _predict([_shape(other, here) for other, _ in longer], gains, _shape(curve, here))
    best = max(final for _, final in known)
    short_of_best = best - (curve[-1][1] + mean)
    if deviation <= 0.0:
        return short_of_best > 0.0
    return 0.5 * math.erfc(short_of_best / (deviation * math.sqrt(2))) < VERY_LOW_PROBABILITY


def _shape(curve: Curve, end: float) -> list[float]:
    """Return a curve up to a place, at equal distances."""
    start = curve[0][0]
    return [_value_at(curve, start + (end - start) * i / (_GRID - 1)) for i in range(_GRID)]


def _value_at(curve: Curve, place: float) -> float:
    """Return a curve's value between its measurements, and beyond its ends the nearest one."""
    for (x0, y0), (x1, y1) in itertools.pairwise(curve):
        if place <= x0:
            return y0
        if place <= x1:
            return y0 + (y1 - y0) * (place - x0) / (x1 - x0) if x1 > x0 else y1
    return curve[-1][1]


def _predict(shapes: list[list[float]], gains: list[float], shape: list[float]) -> tuple[float, float]:
    """Return mean and standard deviation of one more curve's gain, by Gaussian process regression."""
    import numpy as np  # takes a tenth of a second, and most studies never come here

    x, y, new = np.asarray(shapes), np.asarray(gains), np.asarray([shape])
    prior, variance = y.mean(), y.var()
    if variance == 0.0:
        return float(prior), 0.0
    distances = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    length = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    kernel = variance * np.exp(-0.5 * distances / length) + _NOISE * variance * np.eye(len(y))
    across = variance * np.exp(-0.5 * ((x - new) ** 2).sum(-1) / length)
    weights = np.linalg.solve(kernel, np.stack([y - prior, across], axis=1))
    rest = variance * (1 + _NOISE) - float(across @ weights[:, 1])
    return float(prior + across @ weights[:, 0]), math.sqrt(max(rest, 0.0))
