"""How good a regression's answers are: against answers without a model, by their residuals, by their size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from retraining.core.documents import Evaluation
from retraining.core.documents.answers import AnsweredBin, Answers, Histogram
from retraining.core.metrics import HIGHER_IS_BETTER, Metric
from retraining.core.promotion.slices import value_of
from retraining.core.report import charts
from retraining.core.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, Tick


@dataclass(frozen=True, kw_only=True)
class BaselineRow:
    """One answer without a model, and the challenger on the same rows; `gain` > 0: the challenger is better."""

    name: str
    column: str | None
    rows: int
    value: float | None
    challenger: float | None
    gain: float | None


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar of the residuals, in SVG units, and what it says."""

    x: float
    y: float
    width: float
    height: float
    message: str


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """The histogram of label minus answer; `zero` is the x of no error, None outside the chart.

    `theirs` is the outline of the champion's, as an SVG `points` attribute; None without one.
    """

    bars: tuple[Bar, ...]
    theirs: str | None
    zero: float | None
    x_ticks: tuple[Tick, ...]


@dataclass(frozen=True, kw_only=True)
class Point:
    """Answers of about one size: their mean, the mean label, and where eight tenths of the labels lie."""

    x: float
    y: float
    low: float
    high: float
    message: str


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Answers against labels; the diagonal from `start` to `end` is where both are equal."""

    points: tuple[Point, ...]
    theirs: tuple[Point, ...]
    start: tuple[float, float]
    end: tuple[float, float]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def baseline_rows(metric: Metric, evaluation: Evaluation) -> list[BaselineRow]:
    """Return the rows of the table of baselines, the best of them first."""
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    rows = []
    for item in evaluation.baselines:
        value, ours = value_of(item.metrics, metric), value_of(item.challenger, metric)
        gain = None if value is None or ours is None else sign * (value - ours)
        rows.append(
            BaselineRow(name=item.name, column=item.column, rows=item.rows, value=value, challenger=ours, gain=gain)
        )
    return sorted(rows, key=lambda row: (row.value is None, sign * (row.value or 0.0)))


def residuals(evaluation: Evaluation) -> Residuals | None:
    """Return the histogram of the residuals, as rows by unit of the label; None: the label is no number."""
    ours, theirs = _answers(evaluation)
    if ours is None:
        return None
    drawn = [answers.residuals for answers in (ours, theirs) if answers]
    low, high = min(each.edges[0] for each in drawn), max(each.edges[-1] for each in drawn)
    x, x_ticks = charts.axis(low, high, LEFT, WIDTH - RIGHT)
    tallest = max(height for each in drawn for height in _heights(each))
    y = Scale(low=0, high=tallest or 1, start=HEIGHT - BOTTOM, end=TOP)
    bars = tuple(
        Bar(
            x=x(start),
            y=y(height),
            width=round(x(end) - x(start), 1),
            height=round(y(0) - y(height), 1),
            message=f"{start:.4g} to {end:.4g}: {count:,} rows",
        )
        for (start, end), count, height in zip(
            pairwise(ours.residuals.edges), ours.residuals.counts, _heights(ours.residuals), strict=True
        )
    )
    return Residuals(
        bars=bars,
        theirs=_outline(theirs.residuals, x, y) if theirs else None,
        zero=x(0) if low <= 0 <= high else None,
        x_ticks=x_ticks,
    )


def agreement(evaluation: Evaluation) -> Agreement | None:
    """Return both models' answers against the labels; None: the label is no number."""
    ours, theirs = _answers(evaluation)
    if ours is None:
        return None
    bins = [*ours.bins, *(theirs.bins if theirs else ())]
    low, high = charts.padded(value for item in bins for value in (item.answer, item.label, item.low, item.high))
    x, x_ticks = charts.axis(low, high, LEFT, WIDTH - RIGHT)
    y, y_ticks = charts.axis(low, high, HEIGHT - BOTTOM, TOP)
    return Agreement(
        points=tuple(_point(item, x, y) for item in ours.bins),
        theirs=tuple(_point(item, x, y) for item in theirs.bins) if theirs else (),
        start=(x(low), y(low)),
        end=(x(high), y(high)),
        x_ticks=x_ticks,
        y_ticks=y_ticks,
    )


def _answers(evaluation: Evaluation) -> tuple[Answers | None, Answers | None]:
    return evaluation.challenger.answers, evaluation.champion.answers if evaluation.champion else None


def _heights(histogram: Histogram) -> list[float]:
    """Return rows by unit of the label, so that bars of other widths have the same area for the same rows."""
    ends = pairwise(histogram.edges)
    return [
        rows / (end - start) if end > start else 0 for rows, (start, end) in zip(histogram.counts, ends, strict=True)
    ]


def _outline(histogram: Histogram, x: Scale, y: Scale) -> str:
    edges, floor = histogram.edges, y(0)
    steps = [
        (x(edge), y(height)) for ends, height in zip(pairwise(edges), _heights(histogram), strict=True) for edge in ends
    ]
    return charts.points([(x(edges[0]), floor), *steps, (x(edges[-1]), floor)])


def _point(item: AnsweredBin, x: Scale, y: Scale) -> Point:
    message = (
        f"{item.rows:,} rows: answer {item.answer:.4g}, label {item.label:.4g}, "
        f"eight tenths from {item.low:.4g} to {item.high:.4g}"
    )
    return Point(x=x(item.answer), y=y(item.label), low=y(item.low), high=y(item.high), message=message)
