"""Metrics of numbers in the label's unit, exact, in NumPy; each takes weights, so that a bootstrap resamples by counts.

Label y, answer p [n], weight w, ȳ the weighted mean:

| metric | formula | source |
|---|---|---|
| mae | Σ w abs(y - p) / Σ w |  |
| rmse | √(Σ w (y - p)² / Σ w) |  |
| r2 | 1 - Σ w (y - p)² / Σ w (y - ȳ)²; of equal labels not defined | Wright 1921, Journal of Agricultural Research 20 |
| medae | weighted median of abs(y - p); of an exact half the mean of the two beside it |  |
| smape | Σ w 2 abs(y - p) / (abs(y) + abs(p)) / Σ w, in [0, 2]; 0 where both are 0 | Makridakis 1993, IJF 9 |
| mape | Σ w abs(y - p) / abs(y) / Σ w over y ≠ 0; of none not defined |  |
| rmsle | √(Σ w (log(1 + max(p, 0)) - log(1 + y))² / Σ w); of a y < 0 not defined |  |
| pinball | mean over quantiles q of Σ w max(q (y - p_q), (q - 1) (y - p_q)) / Σ w | Koenker, Bassett 1978 |

Of answers with quantiles all but `pinball` take the median; one number stands for every quantile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trainer.contract.documents import (
    AnsweredBin,
    Histogram,
    Metric,
    NumberBaseline,
    NumberMetrics,
)
from trainer.contract.documents import Answers as AnswersDocument
from trainer.contract.metrics import OF_GROUPS, OF_KIND, OF_QUANTILES
from trainer.objective.metrics import Floats, Weighing

WeighNumbers = Callable[[Floats, Floats, Sequence[float]], Weighing]
"""From labels, scores and quantiles to the function from weights to a metric. [n], [n] or [n, quantiles]."""
MEDIAN = 0.5
_STEPS = np.linspace(0, 1, 21)
_RESIDUAL_BINS = 40
_ANSWER_BINS = 20


def point(scores: Floats, quantiles: Sequence[float]) -> Floats:
    """Return the one answer that is judged: of quantiles the median. [n] or [n, quantiles] → [n]."""
    if scores.ndim == 1:
        return scores
    return np.asarray(scores[:, list(quantiles).index(MEDIAN) if quantiles else 0], np.float64)


def absolute_errors(labels: Floats, answers: Floats) -> Floats:
    """Return each example's. [n], [n] → [n]."""
    return np.abs(labels - answers)


def symmetric_errors(labels: Floats, answers: Floats) -> Floats:
    """Return each example's error as a share of label and answer. [n], [n] → [n]."""
    size = np.abs(labels) + np.abs(answers)
    return 2 * np.abs(labels - answers) / np.where(size == 0, 1, size)


def pinball_losses(labels: Floats, scores: Floats, quantiles: Sequence[float]) -> Floats:
    """Return each example's loss, mean over quantiles. [n], [n] or [n, quantiles] → [n]."""
    levels = np.asarray(quantiles)
    errors = labels[:, np.newaxis] - (scores[:, np.newaxis] if scores.ndim == 1 else scores)
    return np.asarray(np.maximum(levels * errors, (levels - 1) * errors).mean(axis=1), np.float64)


def measure_numbers(
    labels: Floats, scores: Floats, quantiles: Sequence[float] = (), weights: Floats | None = None
) -> NumberMetrics:
    """Return all metrics of one model. [n], [n] or [n, quantiles], at least one example; no weights: all count 1."""
    every = np.ones(len(labels)) if weights is None else weights
    names = defined(OF_KIND["regression"], quantiles)
    values: dict[str, Any] = dict.fromkeys(OF_QUANTILES)
    values |= {name: weigh_numbers(name, labels, scores, quantiles)(every) for name in names}
    return NumberMetrics(**{**values, "smape": min(values["smape"], 2.0)})


def defined(names: Sequence[Metric], quantiles: Sequence[float]) -> tuple[Metric, ...]:
    """Return the metrics that a label with such quantiles has, without groups."""
    return tuple(name for name in names if name not in OF_GROUPS and (quantiles or name not in OF_QUANTILES))


def weigh_numbers(metric: Metric, labels: Floats, scores: Floats, quantiles: Sequence[float]) -> Weighing:
    """Return the function from weights to a metric; what does not depend on weights is done once."""
    return FUNCTIONS[metric](labels, scores, quantiles)


def _mean(values: Floats) -> Callable[[Floats], float]:
    return lambda weights: float(weights @ values / weights.sum())


def _root(squares: Floats) -> Callable[[Floats], float]:
    return lambda weights: float(np.sqrt(weights @ squares / weights.sum()))


def _relative(labels: Floats, answers: Floats) -> Weighing:
    there = labels != 0
    shares = np.divide(np.abs(labels - answers), np.abs(labels), out=np.zeros(len(labels)), where=there)

    def average(weights: Floats) -> float | None:
        total = weights @ there
        return float(weights @ shares / total) if total > 0 else None

    return average


def _logarithmic(labels: Floats, answers: Floats) -> Weighing:
    if (labels < 0).any():
        return lambda _: None
    return _root(np.square(np.log1p(np.maximum(answers, 0)) - np.log1p(labels)))


def _explained(labels: Floats, squares: Floats) -> Weighing:
    centred = labels - labels.mean()  # as large as what is subtracted below, so that little is lost
    squared = np.square(centred)
    constant = bool((labels == labels[0]).all())

    def explain(weights: Floats) -> float | None:
        drawn = labels[weights > 0]
        if constant or (drawn == drawn[0]).all():
            return None
        spread = weights @ squared - (weights @ centred) ** 2 / weights.sum()
        return float(1 - weights @ squares / spread)

    return explain


def _median(values: Floats) -> Callable[[Floats], float]:
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def middle(weights: Floats) -> float:
        """Return the value up to which half of the weight lies; of an exact half the mean with the next one."""
        places = np.cumsum(weights[order])
        half = places[-1] / 2
        low, high = np.searchsorted(places, half, side="left"), np.searchsorted(places, half, side="right")
        return float((ordered[low] + ordered[high]) / 2)

    return middle


def _of_point(weigh: Callable[[Floats, Floats], Weighing]) -> WeighNumbers:
    """Return the function of scores for one of the answers that are judged."""
    return lambda labels, scores, quantiles: weigh(labels, point(scores, quantiles))


FUNCTIONS: Mapping[Metric, WeighNumbers] = {
    "mae": _of_point(lambda labels, answers: _mean(absolute_errors(labels, answers))),
    "rmse": _of_point(lambda labels, answers: _root(np.square(labels - answers))),
    "r2": _of_point(lambda labels, answers: _explained(labels, np.square(labels - answers))),
    "medae": _of_point(lambda labels, answers: _median(absolute_errors(labels, answers))),
    "smape": _of_point(lambda labels, answers: _mean(symmetric_errors(labels, answers))),
    "mape": _of_point(_relative),
    "rmsle": _of_point(_logarithmic),
    "pinball": lambda labels, scores, quantiles: _mean(pinball_losses(labels, scores, quantiles)),
}


def measure_baselines(
    labels: Floats,
    challenger: Floats,
    columns: Mapping[str, tuple[str, Floats]],
    quantiles: Sequence[float],
    weights: Floats | None = None,
) -> tuple[NumberBaseline, ...]:
    """Measure answers that need no model.

    Args:
        labels: [n]
        challenger: Its scores. [n] or [n, quantiles]
        columns: Column and values by the baseline's name; NaN is a missing one. [n] each
        quantiles: Of the label.
        weights: None: all count the same. [n]
    """
    weights = np.ones(len(labels)) if weights is None else weights
    constants = {"mean": np.average(labels, weights=weights), "median": _median(labels)(weights)}
    answers: dict[str, tuple[str | None, Floats]] = {
        **{name: (None, np.full(len(labels), value)) for name, value in constants.items()},
        **columns,
    }
    measured = []
    for name, (column, values) in answers.items():
        there = np.isfinite(values)
        if not weights[there].any():
            continue
        metrics, ours = (
            measure_numbers(labels[there], scores[there], quantiles, weights[there]) for scores in (values, challenger)
        )
        rows = int(there.sum())
        measured.append(NumberBaseline(name=name, column=column, rows=rows, metrics=metrics, challenger=ours))
    return tuple(measured)


def describe_answers(labels: Floats, scores: Floats, quantiles: Sequence[float]) -> AnswersDocument:
    """Return what a page shows and what a monitor compares with. [n], [n] or [n, quantiles]."""
    answers = point(scores, quantiles)
    return AnswersDocument(
        quantiles=tuple(np.quantile(answers, _STEPS).tolist()),
        residuals=_histogram(labels - answers),
        bins=tuple(_bins(labels, answers)),
    )


def _histogram(residuals: Floats) -> Histogram:
    """Count between the 1 % and 99 % quantiles; what lies beyond is in the outermost counts."""
    low, high = np.quantile(residuals, [0.01, 0.99])
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _RESIDUAL_BINS + 1)
    counts, _ = np.histogram(np.clip(residuals, edges[0], edges[-1]), edges)
    return Histogram(edges=tuple(edges.tolist()), counts=tuple(counts.tolist()))


def _bins(labels: Floats, answers: Floats) -> list[AnsweredBin]:
    order = np.argsort(answers, kind="stable")
    parts = [part for part in np.array_split(order, _ANSWER_BINS) if len(part)]
    return [
        AnsweredBin(
            rows=len(part),
            answer=float(answers[part].mean()),
            label=float(labels[part].mean()),
            low=float(np.quantile(labels[part], 0.1)),
            high=float(np.quantile(labels[part], 0.9)),
            absolute_error=float(np.abs(labels[part] - answers[part]).mean()),
            squared_error=float(((labels[part] - answers[part]) ** 2).mean()),
        )
        for part in parts
    ]
