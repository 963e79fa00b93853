"""How good a regression's answers are: against answers without a model, by their residuals, by their size."""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents import Evaluation
from retraining.core.documents.evaluation import AnsweredBin
from retraining.core.promotion.slices import value_of
from retraining.core.report import charts
from retraining.core.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, Tick
from retraining.core.spec.metrics import HIGHER_IS_BETTER, Metric


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
    words: str


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """The histogram of label minus answer; `zero` is the x of no error, None outside the chart."""

    bars: tuple[Bar, ...]
    zero: float | None
    x_ticks: tuple[Tick, ...]


@dataclass(frozen=True, kw_only=True)
class Point:
    """Answers of about one size: their mean, the mean label, and where eight tenths of the labels lie."""

    x: float
    y: float
    low: float
    high: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Answers against labels; the diagonal from `start` to `end` is where both are equal."""

    points: tuple[Point, ...]
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
    """Return the histogram of the challenger's residuals; None: the label is no number."""
    answers = evaluation.challenger.answers
    if answers is None:
        return None
    edges, counts = answers.residuals.edges, answers.residuals.counts
    x = Scale(low=edges[0], high=edges[-1], start=LEFT, end=WIDTH - RIGHT)
    y = Scale(low=0, high=max(*counts, 1), start=HEIGHT - BOTTOM, end=TOP)
    values = charts.ticks(edges[0], edges[-1])
    bars = tuple(
        Bar(
            x=x(low),
            y=y(count),
            width=round(x(high) - x(low), 1),
            height=round(y(0) - y(count), 1),
            words=f"{low:.4g} to {high:.4g}: {count:,} rows",
        )
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    )
    return Residuals(
        bars=bars,
        zero=x(0) if edges[0] <= 0 <= edges[-1] else None,
        x_ticks=tuple(Tick(at=x(value), text=charts.number_text(value, values)) for value in values),
    )


def agreement(evaluation: Evaluation) -> Agreement | None:
    """Return the challenger's answers against the labels; None: the label is no number."""
    answers = evaluation.challenger.answers
    if answers is None:
        return None
    ends = [value for item in answers.bins for value in (item.answer, item.label, item.low, item.high)]
    low, high = charts.padded(ends)
    x = Scale(low=low, high=high, start=LEFT, end=WIDTH - RIGHT)
    y = Scale(low=low, high=high, start=HEIGHT - BOTTOM, end=TOP)
    values = charts.ticks(low, high)
    return Agreement(
        points=tuple(_point(item, x, y) for item in answers.bins),
        start=(x(low), y(low)),
        end=(x(high), y(high)),
        x_ticks=tuple(Tick(at=x(value), text=charts.number_text(value, values)) for value in values),
        y_ticks=tuple(Tick(at=y(value), text=charts.number_text(value, values)) for value in values),
    )


def _point(item: AnsweredBin, x: Scale, y: Scale) -> Point:
    words = (
        f"{item.rows:,} rows: answer {item.answer:.4g}, label {item.label:.4g}, "
        f"eight tenths from {item.low:.4g} to {item.high:.4g}"
    )
    return Point(x=x(item.answer), y=y(item.label), low=y(item.low), high=y(item.high), words=words)
