"""What is expected: shares per value or bin, by the champion's training statistics and its answers on its test days.

In: documents of the champion's run. Out: edges and shares that counted requests are held against.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retraining.core.documents.answers import AnswerCounts
from retraining.core.documents.checks import CategoricalStatistics, NumericStatistics, SplitStatistics
from retraining.core.documents.evaluation import Evaluation, Scores
from retraining.core.monitoring.distances import UNSEEN, Bucket
from retraining.core.spec.features import MEDIAN, AuxiliaryLabel, Label
from retraining.core.spec.model import ModelSpec

EQUAL_BINS = 15
"""Of a binary label's scores, where the evaluation did not count them: those of the calibration curve."""


@dataclass(frozen=True, kw_only=True)
class AnswerBaseline:
    """How the answers to a label are counted, and their shares on the champion's test days (none: not known).

    Numbers are counted between `edges`, classes by their number; `place` is where a list has the number that counts.
    `shares` are those of the bins from below the first edge on, or of the classes.
    """

    name: str
    output: str
    is_main: bool = True
    classes: int = 0
    edges: tuple[float, ...] = ()
    place: int = 0
    shares: tuple[float, ...] = ()
    rows: int = 0

    @property
    def measure(self) -> str:
        """The distance that fits."""
        return "l_infinity" if self.classes else "jensen_shannon"


def answer_baselines(
    spec: ModelSpec, train: SplitStatistics, evaluation: Evaluation | None
) -> tuple[AnswerBaseline, ...]:
    """Return how the answers are counted; nothing of a regression whose evaluation is not there.

    Args:
        spec: The model.
        train: Statistics of what the champion was trained on.
        evaluation: Of the champion's run; None: there is none.
    """
    scores, rows = (evaluation.challenger, evaluation.rows) if evaluation else (None, 0)
    main = (
        _of_counts(spec.label, scores.counted) if scores and scores.counted else _of_earlier(spec, train, scores, rows)
    )
    counted = {name: of.counted for name, of in scores.auxiliary.items() if of.counted} if scores else {}
    others = [_of_counts(label, counted[label.name]) for label in spec.auxiliary_labels if label.name in counted]
    return (*((main,) if main else ()), *(replace(other, output=other.name, is_main=False) for other in others))


def bin_edges(baseline: NumericStatistics) -> list[float]:
    """Return distinct quantiles: bin i (from 1) is `[edge i, edge i+1)`, the last one is open, bin 0 lies below all."""
    return sorted(set(baseline.quantiles))


def bin_shares(baseline: NumericStatistics, rows: int, edges: Sequence[float]) -> list[float]:
    """Return the baseline's share per bin: below, between the edges, above; last the missing values."""
    missing = baseline.nulls / rows
    return [*(share * (1 - missing) for share in quantile_shares(baseline.quantiles, edges)), missing]


def quantile_shares(quantiles: Sequence[float], edges: Sequence[float]) -> list[float]:
    """Return the share of numbers per bin, below the first edge at first, by quantiles in equal steps.

    Where several quantiles are equal their steps fall to the bin that begins there; the error of a share is at most
    one step (5 %).
    """
    ordered = sorted(quantiles)
    steps = len(ordered) - 1
    below = [ordered.index(edge) / steps if steps else 0.0 for edge in edges] + [1.0]
    return [0.0, *(high - low for low, high in itertools.pairwise(below))]


def category_shares(baseline: CategoricalStatistics, rows: int) -> dict[Bucket, float]:
    """Return the baseline's share per value; None is the missing ones. Values beyond the first 1000 count as unseen."""
    shares: dict[Bucket, float] = {item.value: item.count / rows for item in baseline.top}
    shares[None] = baseline.nulls / rows
    shares[UNSEEN] = max(0.0, 1.0 - sum(shares.values()))
    return shares


def _of_counts(label: Label | AuxiliaryLabel, counted: AnswerCounts) -> AnswerBaseline:
    """Return the answers that the evaluation counted, of any kind of label."""
    total = sum(counted.counts)
    levels = label.quantiles if label.kind == "regression" else ()
    outputs = {"binary": "score", "multiclass": "scores", "regression": "quantiles" if levels else "prediction"}
    return AnswerBaseline(
        name=label.name,
        output=outputs[label.kind],
        classes=0 if counted.edges else len(counted.counts),
        edges=counted.edges,
        place=levels.index(MEDIAN) if levels else 0,
        shares=tuple(count / total for count in counted.counts) if total else (),
        rows=total,
    )


def _of_earlier(spec: ModelSpec, train: SplitStatistics, scores: Scores | None, rows: int) -> AnswerBaseline | None:
    """Return what an evaluation of an earlier release tells, or none does."""
    if spec.label.kind == "multiclass":
        return _of_classes(spec, train, scores)
    return _of_numbers(spec, scores, rows) if spec.label.kind == "regression" else _of_scores(spec, scores)


def _of_classes(spec: ModelSpec, train: SplitStatistics, scores: Scores | None) -> AnswerBaseline:
    """Return the likeliest classes of the test days; of over 100 classes, which have no confusion, the labels'."""
    confusion = scores.confusion if scores else None
    counts = [sum(column) for column in zip(*confusion, strict=True)] if confusion else list(train.label.counts or ())
    total = sum(counts)
    return AnswerBaseline(
        name=spec.label.name,
        output="scores",
        classes=len(train.label.counts or ()) or len(counts),
        shares=tuple(count / total for count in counts) if total else (),
        rows=total,
    )


def _of_numbers(spec: ModelSpec, scores: Scores | None, rows: int) -> AnswerBaseline | None:
    if spec.label.kind != "regression" or scores is None or scores.answers is None:
        return None
    levels = spec.label.quantiles
    edges = sorted(set(scores.answers.quantiles))
    return AnswerBaseline(
        name=spec.label.name,
        output="quantiles" if levels else "prediction",
        edges=tuple(edges),
        place=levels.index(MEDIAN) if levels else 0,
        shares=tuple(quantile_shares(scores.answers.quantiles, edges)),
        rows=rows,
    )


def _of_scores(spec: ModelSpec, scores: Scores | None) -> AnswerBaseline:
    calibration = scores.curves.calibration if scores and scores.curves else ()
    edges = tuple(index / EQUAL_BINS for index in range(EQUAL_BINS))
    counts = [0] * (EQUAL_BINS + 1)
    for item in calibration:
        counts[min(int(item.score * EQUAL_BINS), EQUAL_BINS - 1) + 1] += item.rows
    total = sum(counts)
    return AnswerBaseline(
        name=spec.label.name,
        output="score",
        edges=edges,
        shares=tuple(count / total for count in counts) if total else (),
        rows=total,
    )
