"""ROC, precision-recall and calibration curves of both models, in one frame each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retraining.core.documents import Evaluation
from retraining.core.documents.answers import Curves
from retraining.core.report import charts

SIDE = 260.0
SMALLEST_DOT, LARGEST_DOT = 1.5, 6.0

X, X_TICKS = charts.axis(0, 1, charts.LEFT, SIDE - charts.RIGHT, about=5)
Y, Y_TICKS = charts.axis(0, 1, SIDE - charts.BOTTOM, charts.TOP, about=5)
DIAGONAL = (X(0), Y(0), X(1), Y(1))


@dataclass(frozen=True, kw_only=True)
class Dot:
    """Scores of one bin, in SVG units: a larger dot has more rows."""

    x: float
    y: float
    radius: float
    message: str


@dataclass(frozen=True, kw_only=True)
class RoleCurve:
    """One model's curve, as an SVG `points` attribute; `role` is `ours` or `theirs`."""

    role: str
    points: str
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CurveChart:
    """Curves over [0, 1] x [0, 1], the challenger's above; `rest` is the dashed line."""

    name: str
    message: str
    curves: tuple[RoleCurve, ...]
    rest: tuple[float, float, float, float]
    side: float = SIDE
    x_ticks: tuple[charts.Tick, ...] = X_TICKS
    y_ticks: tuple[charts.Tick, ...] = Y_TICKS


def curve_charts(evaluation: Evaluation) -> list[CurveChart]:
    """Return the charts that there are points for; none of a number, or of an evaluation of an earlier release."""
    sides = {"theirs": evaluation.champion, "ours": evaluation.challenger}
    curves = {role: side.curves for role, side in sides.items() if side and side.curves}
    rate = Y(evaluation.label_rate or 0.0)
    likeliest = evaluation.label_counts is not None
    score, positive = ("probability of the likeliest class", "right") if likeliest else ("score", "positive")
    made = [
        CurveChart(
            name="ROC",
            message="share of positives found (up) by share of negatives taken for positives; dashed: guessing",
            curves=tuple(
                _curve(role, each.roc.false_positive_rate, each.roc.true_positive_rate)
                for role, each in curves.items()
                if each.roc
            ),
            rest=DIAGONAL,
        ),
        CurveChart(
            name="Precision and recall",
            message="share of answers that are right (up) by share of positives found; dashed: guessing",
            curves=tuple(
                _curve(role, each.precision_recall.recall, each.precision_recall.precision)
                for role, each in curves.items()
                if each.precision_recall
            ),
            rest=(X(0), rate, X(1), rate),
        ),
        CurveChart(
            name="Calibration",
            message=f"share that is {positive} (up) by mean {score}, in 15 bins, larger: more rows; dashed: both equal",
            curves=tuple(_calibration(role, each) for role, each in curves.items()),
            rest=DIAGONAL,
        ),
    ]
    return [chart for chart in made if chart.curves]


def _curve(role: str, x: Sequence[float], y: Sequence[float]) -> RoleCurve:
    places = zip(map(X, x), map(Y, y), strict=True)
    return RoleCurve(role=role, points=charts.points(places))


def _calibration(role: str, curves: Curves) -> RoleCurve:
    bins, most = curves.calibration, max(part.rows for part in curves.calibration)
    line = _curve(role, [part.score for part in bins], [part.positive for part in bins])
    dots = tuple(
        Dot(
            x=X(part.score),
            y=Y(part.positive),
            radius=round(max(SMALLEST_DOT, LARGEST_DOT * math.sqrt(part.rows / most)), 1),
            message=f"{part.rows:,} rows: mean score {part.score:.3f}, share {part.positive:.3f}",
        )
        for part in bins
    )
    return replace(line, dots=dots)
