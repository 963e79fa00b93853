"""How good the challenger is: metrics beside the champion's, the gain's interval, slices, curves of its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from retraining.core.documents import Evaluation, Report, Slice
from retraining.core.documents.evaluation import Difference, SliceDifference
from retraining.core.metrics import (
    HIGHER_IS_BETTER,
    METRICS,
    Kind,
    LabelShape,
    Metric,
    NumberMetrics,
    Quality,
    metrics_of,
)
from retraining.core.promotion.evidence import describe_shortage, is_short
from retraining.core.promotion.reference import LINES, why_not_judged
from retraining.core.promotion.slices import value_of
from retraining.core.report import charts
from retraining.core.report.run import Run
from retraining.core.spec.features import cost_matrix

SLICES_SHOWN = 12
INTERVAL_WIDTH = 480.0
BOUND_IN_SIGHT = 4.0  # times the interval's farthest end from 0
TRACK_WIDTH = 130.0
TOO_GOOD: Mapping[Metric, float] = {"auc": 0.999, "r2": 0.9999}
"""From which on a score on new rows is of a feature that tells the label, more often than of a good model."""


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One metric of the two models and of always predicting the base rate, of a number the mean.

    `gain` > 0: the challenger is better; `gains` is its interval.
    """

    metric: Metric
    message: str
    decides: bool
    higher_is_better: bool
    challenger: float | None
    champion: float | None
    baseline: float | None
    gain: float | None
    gains: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The gain over the champion with its interval, oriented so that right is better; x in SVG units.

    `x_bound` is None when the bound lies so far away that the interval would shrink to a point beside it.
    """

    mean: float
    low: float
    high: float
    confidence: float
    samples: int
    x_mean: float
    x_low: float
    x_high: float
    x_bound: float | None
    bound: float
    x_ticks: tuple[charts.Tick, ...]


@dataclass(frozen=True, kw_only=True)
class DayRow:
    """The gain over the rows of a test day, oriented so that more is better, or why it is not judged."""

    day: str
    rows: int
    gain: float | None
    gains: tuple[float, float] | None
    not_judged: str


@dataclass(frozen=True, kw_only=True)
class SliceRow:
    """One slice. `not_judged`: why not, else empty. `gains`: the gain's interval. x: places on the track."""

    column: str
    value: str
    rows: int
    not_judged: str
    challenger: float | None
    champion: float | None
    gain: float | None
    gains: tuple[float, float] | None
    x_challenger: float | None
    x_champion: float | None


@dataclass(frozen=True, kw_only=True)
class ReferenceRow:
    """One reference line, and the challenger's gain over it with its interval. `not_judged`: why not, else empty."""

    name: str
    message: str
    value: float | None
    gain: float | None
    gains: tuple[float, float] | None
    not_judged: str


def reference_rows(run: Run, evaluation: Evaluation) -> list[ReferenceRow]:
    """Return the rows of the table of reference lines; none where there was none to be trained."""
    metric = run.plan.spec.evaluation.metric
    ours = value_of(evaluation.challenger.metrics, metric)
    rows = []
    for line in evaluation.reference:
        theirs = value_of(line.metrics, metric) if line.metrics else None
        rows.append(
            ReferenceRow(
                name=LINES[line.name],
                message=f"{line.rows} rows, {line.features} features" if line.rows else "",
                value=theirs,
                gain=_gain(metric, ours, theirs),
                gains=_gains(line.difference),
                not_judged=why_not_judged(line) or "",
            )
        )
    return rows


def metric_rows(run: Run, evaluation: Evaluation) -> list[MetricRow]:
    """Return the rows of the metrics table, the metric that decides first."""
    decides = run.plan.spec.evaluation.metric
    kind: Kind = "multiclass" if evaluation.label_counts else "binary"
    if isinstance(evaluation.challenger.metrics, NumberMetrics):
        kind = "regression"
    measured = evaluation.challenger.metrics
    known = [
        name
        for name in metrics_of(kind)
        if (METRICS[name].always_shown or value_of(measured, name) is not None)
        and (name == decides or not METRICS[name].only_where_it_decides)
    ]
    theirs = evaluation.champion.metrics if evaluation.champion else None
    differences = {item.metric: item for item in evaluation.differences}
    rows = []
    for metric in sorted(known, key=lambda name: name != decides):
        ours = value_of(evaluation.challenger.metrics, metric)
        other = value_of(theirs, metric) if theirs else None
        rows.append(
            MetricRow(
                metric=metric,
                message=METRICS[metric].description[kind],
                decides=metric == decides,
                higher_is_better=metric in HIGHER_IS_BETTER,
                challenger=ours,
                champion=other,
                baseline=base_rate_value(metric, evaluation, cost_matrix(run.plan.spec.label)),
                gain=_gain(metric, ours, other),
                gains=_gains(differences.get(metric)),
            )
        )
    return rows


def quality_warnings(evaluation: Evaluation) -> Iterator[str]:
    """Yield a sentence, with the way out, for each score of the challenger that is too good to be true."""
    for metric, bound in TOO_GOOD.items():
        value = value_of(evaluation.challenger.metrics, metric)
        if value is not None and value >= bound:
            yield (
                f"{metric} {value:.5f} on rows that it was not trained on is too good to be true (expected below "
                f"{bound:g}): a feature may hold the label, or be known only after it. Leave out of features what is "
                "not known yet when the model is asked"
            )


def base_rate_value(metric: Metric, evaluation: Evaluation, costs: Sequence[Sequence[float]] = ()) -> float | None:
    """Return a metric of always predicting the base rate: it ranks nothing (AUC 0.5), and errs by the label's variance.

    With several classes the shares of all are predicted. Of a number it is the mean of the test labels.
    """
    if evaluation.baseline is None:
        return next((value_of(item.metrics, metric) for item in evaluation.baselines if item.name == "mean"), None)
    stored: float | None = getattr(evaluation.baseline, metric, None)
    if stored is not None:
        return stored
    rate, counts = evaluation.label_rate or 0.0, evaluation.label_weights or evaluation.label_counts
    shares = [count / sum(counts) for count in counts] if counts else [1 - rate, rate]
    shape = LabelShape(shares=shares, is_binary=not counts, costs=costs)
    return METRICS[metric].constant(shape)


def interval(run: Run, evaluation: Evaluation) -> Interval | None:
    """Return the gain's interval and its place on the axis; None without a champion."""
    difference = evaluation.difference
    if difference is None:
        return None
    mean, low, high = difference.mean, difference.low, difference.high
    if difference.metric not in HIGHER_IS_BETTER:
        mean, low, high = -mean, -high, -low
    bound = run.plan.spec.evaluation.promote.min_gain
    near = [low, high, mean, 0.0]
    shows_bound = in_sight(bound, near)
    start, end = charts.padded([*near, bound] if shows_bound else near, margin=0.12)
    x, x_ticks = charts.axis(start, end, 16, INTERVAL_WIDTH - 16)
    return Interval(
        mean=mean,
        low=low,
        high=high,
        confidence=difference.confidence,
        samples=difference.samples,
        x_mean=x(mean),
        x_low=x(low),
        x_high=x(high),
        x_bound=x(bound) if shows_bound else None,
        bound=bound,
        x_ticks=x_ticks,
    )


def not_judged(evaluation: Evaluation) -> str | None:
    """Return why the two models' difference has no interval; None: it has one, or there is no champion."""
    evidence = evaluation.difference_evidence
    return describe_shortage(evidence) if is_short(evidence) else None


def in_sight(bound: float, values: Sequence[float]) -> bool:
    """Return whether a bound is near enough to intervals to be drawn beside them."""
    return abs(bound) <= BOUND_IN_SIGHT * max(abs(value) for value in values)


def slice_rows(run: Run, evaluation: Evaluation) -> list[SliceRow]:
    """Return the slices, worst first: by the gain over the champion if there is one, else by the challenger's metric.

    Slices too small to be judged come last.
    """
    metric = run.plan.spec.evaluation.metric
    least = run.plan.spec.evaluation.promote.min_slice_examples
    theirs = {_identity(s): s.metrics for s in (evaluation.champion.slices if evaluation.champion else ())}
    pairs = [(s, theirs.get(_identity(s))) for s in evaluation.challenger.slices]
    known = [v for s, other in pairs for v in _values(metric, s.metrics, other) if v is not None]
    x = None
    if known:
        low, high = charts.padded(known)
        x = charts.Scale(low=low, high=high, start=6, end=TRACK_WIDTH - 6)
    compared = {_identity(item): item for item in evaluation.slice_differences}
    rows = [_compared(_slice_row(metric, least, s, other, x), compared.get(_identity(s))) for s, other in pairs]
    sign = 1 if metric in HIGHER_IS_BETTER else -1

    def badness(row: SliceRow) -> tuple[bool, bool, float, str, str]:
        rank = row.gain if evaluation.champion else _signed(row.challenger, sign)
        return (bool(row.not_judged), rank is None, rank or 0.0, row.column, row.value)

    return sorted(rows, key=badness)


def day_rows(evaluation: Evaluation) -> list[DayRow]:
    """Return the gain of each test day, the first day first."""
    rows = []
    for item in evaluation.day_differences:
        difference = item.difference
        mean = None if difference is None else difference.mean
        if difference is not None and difference.metric not in HIGHER_IS_BETTER:
            mean = -difference.mean
        short = describe_shortage(item.evidence) if is_short(item.evidence) else "not judged"
        reason = "" if difference else short
        rows.append(DayRow(day=str(item.value), rows=item.rows, gain=mean, gains=_gains(difference), not_judged=reason))
    return rows


def training_charts(report: Report) -> list[charts.LineChart]:
    """Return one chart per quantity that was followed on both splits or on one, the loss first."""
    bases = sorted({name.removeprefix("val_") for name in report.history}, key=lambda name: (name != "loss", name))
    drawn = []
    for base in bases:
        names = {"training": base, "validation": f"val_{base}"}
        series = {label: report.history[name] for label, name in names.items() if report.history.get(name)}
        if series:
            drawn.append(charts.line_chart(base.replace("_", " "), series, report.best_epoch))
    return drawn


def _slice_row(metric: Metric, least: int, ours: Slice, other: Quality | None, x: charts.Scale | None) -> SliceRow:
    mine, champions = _values(metric, ours.metrics, other)
    return SliceRow(
        column=ours.column,
        value="(none)" if ours.value in (None, "") else str(ours.value),
        rows=ours.rows,
        not_judged="" if ours.rows >= least else "too few to judge",
        challenger=mine,
        champion=champions,
        gain=_gain(metric, mine, champions),
        gains=None,
        x_challenger=x(mine) if x and mine is not None else None,
        x_champion=x(champions) if x and champions is not None else None,
    )


def _compared(row: SliceRow, item: SliceDifference | None) -> SliceRow:
    """Return the row with the gain's interval, or why there is none."""
    if item is None:
        return row
    if is_short(item.evidence) and not row.not_judged:
        return replace(row, not_judged=f"not judged: {describe_shortage(item.evidence)}")
    return replace(row, gains=_gains(item.difference))


def _values(metric: Metric, ours: Quality, other: Quality | None) -> Sequence[float | None]:
    return value_of(ours, metric), value_of(other, metric) if other else None


def _gain(metric: Metric, ours: float | None, theirs: float | None) -> float | None:
    if ours is None or theirs is None:
        return None
    return ours - theirs if metric in HIGHER_IS_BETTER else theirs - ours


def _gains(difference: Difference | None) -> tuple[float, float] | None:
    """Return a difference's interval, oriented so that more is better."""
    if difference is None:
        return None
    higher = difference.metric in HIGHER_IS_BETTER
    return (difference.low, difference.high) if higher else (-difference.high, -difference.low)


def _signed(value: float | None, sign: int) -> float | None:
    return None if value is None else sign * value


def _identity(item: Slice | SliceDifference) -> tuple[str, str]:
    return item.column, str(item.value)
