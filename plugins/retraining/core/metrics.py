"""What quality is measured by: the one table of metrics, and the values of all of them as documents store them.

What is said of a metric stands here: which labels have it, what is better, what answers without a model reach, who
shows it and in which words. Its function is the trainer's (`trainer/objective/class_metrics.py`, `number_metrics.py`),
which gets what it needs of the table by `make contracts`, as the docs do. Over answers with labels the monitor has it
if `package_data/templates/performance.sql.j2` has an expression of its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from retraining.core.values import Amount, Number, Share, Value

Kind = Literal["binary", "multiclass", "regression"]
Metric = Literal[
    "auc",
    "accuracy",
    "log_loss",
    "brier",
    "pr_auc",
    "calibration_error",
    "f1",
    "f2",
    "f0_5",
    "mcc",
    "cost",
    "balanced_accuracy",
    "macro_f1",
    "top2_accuracy",
    "top3_accuracy",
    "top5_accuracy",
    "top10_accuracy",
    "mae",
    "rmse",
    "r2",
    "medae",
    "smape",
    "mape",
    "rmsle",
    "pinball",
    "ndcg",
    "ndcg10",
]
LEADING: Mapping[Kind, Metric] = {"binary": "auc", "multiclass": "accuracy", "regression": "mae"}
"""What is shown first of a kind of label."""


class Metrics(Value):
    """Quality over some rows; of `log_loss`, `brier` and `calibration_error` lower is better.

    Null is what the label's kind does not have, and what an earlier release did not measure.
    """

    auc: Share | None
    """Area under the ROC curve, exact; null where only one class is present.

    With several classes the mean over classes of one against the rest.
    """
    log_loss: Amount
    accuracy: Share
    """Of the most likely class; with two classes at threshold 0.5."""
    brier: Annotated[float, Field(allow_inf_nan=False, ge=0, le=2)]
    """Mean squared error of the score; with several classes summed over them, so up to 2."""
    pr_auc: Share | None = None
    """Of a binary label: area under the precision-recall curve (average precision); null: no positives."""
    calibration_error: Share | None = None
    """Of a binary label: expected difference of score and share of positives, over 15 equal bins of the score."""
    f1: Share | None = None
    """Of a binary label: harmonic mean of precision and recall at 0.5; null: no positives."""
    f2: Share | None = None
    """F1 where recall counts twice as much as precision."""
    f0_5: Share | None = None
    """F1 where precision counts twice as much as recall."""
    mcc: Annotated[float, Field(allow_inf_nan=False, ge=-1, le=1)] | None = None
    """Matthews' correlation of label and answer; 0 where one of them is always the same."""
    cost: Amount | None = None
    """Of a label with `costs`: mean cost of the answers that the scores make the cheapest."""
    ndcg: Share | None = None
    """Of a binary label with `evaluation.group`: normalised discounted cumulative gain, mean over groups whose labels
    are not all equal; null: there are none."""
    ndcg10: Share | None = None
    """The same of the ten best of each group."""
    balanced_accuracy: Share | None = None
    """Of several classes: mean recall over the classes that are there."""
    macro_f1: Share | None = None
    """Of several classes: mean F1 over the classes that are there or answered."""
    top2_accuracy: Share | None = None
    """Of more than two classes: of the two likeliest."""
    top3_accuracy: Share | None = None
    """Of more than three classes: of the three likeliest."""
    top5_accuracy: Share | None = None
    """Of more than five classes: of the five likeliest."""
    top10_accuracy: Share | None = None
    """Of more than ten classes: of the ten likeliest."""


class NumberMetrics(Value):
    """Quality of a regression over some rows, in the label's unit. `r2`: higher is better; the others: lower is."""

    mae: Amount
    """Mean absolute error."""
    rmse: Amount
    """Root of the mean squared error."""
    r2: Number | None
    """Share of the label's variance that is explained, at most 1; null where all labels are equal."""
    medae: Amount
    """Median absolute error."""
    smape: Annotated[float, Field(allow_inf_nan=False, ge=0, le=2)]
    """Mean of 2 |answer - label| / (|answer| + |label|); 0 where both are 0."""
    mape: Amount | None = None
    """Mean of |answer - label| / |label| over examples whose label is not 0; null: there are none."""
    rmsle: Amount | None = None
    """RMSE of log(1 + value), an answer below 0 taken as 0; null where a label is below 0."""
    ndcg: Share | None = None
    """With `evaluation.group`: normalised discounted cumulative gain, the label as gain, mean over groups whose labels
    are not all equal; null: there are none, or a label is below 0."""
    ndcg10: Share | None = None
    """The same of the ten best of each group."""
    pinball: Amount | None
    """Pinball loss, mean over the label's quantiles; null: it has none."""


Quality = Metrics | NumberMetrics
"""By the label's kind."""


@dataclass(frozen=True, kw_only=True)
class LabelShape:
    """What is known of labels: the share of each class, of a binary label of the negatives and the positives.

    Of numbers there are no shares; `stddev` is their deviation, where it is known. `costs` has what each answer costs,
    by the right class: [classes, classes].
    """

    shares: Sequence[float] = ()
    is_binary: bool = False
    stddev: float | None = None
    costs: Sequence[Sequence[float]] = ()


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A row of the table.

    Attributes:
        words: What it is, by the kinds of label that have it.
        higher_is_better: Else lower is.
        constant: What answers reach that are the same for every example, the shares of the classes or the mean; None:
            the labels' shape does not tell.
        unit: Of its own, in which no amount is large or small by itself; empty: it has none.
        decides: Whether models can be compared by it.
        likeliest: Of how many likeliest classes it is, which a label must have more of.
        of_quantiles: Whether only labels with quantiles have it.
        of_each_class: Whether of several classes each has the same say, however rare it is.
        of_amounts: Whether only labels that are never below 0 have it.
        of_costs: Whether only labels with costs have it.
        of_groups: Whether it is of the order within a group, so that only an evaluation with groups has it.
        best: Of how many best of each group it is; 0: of all.
        is_loss: Whether each epoch reports it as the loss.
        of_epoch: Kinds of label of which each epoch reports it; of the others a trial does that is judged by it.
        watched: Kinds of label of which the monitor shows it, whatever metric decides.
        always_shown: Whether a run's page has its row even where it is not defined.
        only_where_it_decides: Whether a run's page leaves it out where another metric decides.
        vertex_field: Of Vertex AI's model evaluation; empty: there is none.
        note: What the docs add to the words.
    """

    description: Mapping[Kind, str]
    higher_is_better: bool
    constant: Callable[[LabelShape], float | None] = field(default=lambda _: None)
    unit: str = ""
    decides: bool = True
    likeliest: int = 0
    of_quantiles: bool = False
    of_each_class: bool = False
    of_amounts: bool = False
    of_costs: bool = False
    of_groups: bool = False
    best: int = 0
    is_loss: bool = False
    of_epoch: tuple[Kind, ...] = ()
    watched: tuple[Kind, ...] = ()
    always_shown: bool = False
    only_where_it_decides: bool = False
    vertex_field: str = ""
    note: str = ""


def _among(likeliest: int, description: str) -> MetricSpec:
    return MetricSpec(
        description={"multiclass": f"share of examples whose right class is among the {description} likeliest"},
        higher_is_better=True,
        constant=lambda labels: sum(sorted(labels.shares)[-likeliest:]),
        likeliest=likeliest,
        note=f"with more than {description} classes",
    )


def _constant_macro_f1(labels: LabelShape) -> float:
    likeliest = max(labels.shares)
    return 2 * likeliest / (1 + likeliest) / _present(labels)


def _f_measure(beta: float, description: str, *, shown: bool = False) -> MetricSpec:
    """Of constant answers the best one says yes to all: its precision is the share of positives, its recall is 1."""
    return MetricSpec(
        description={"binary": description},
        higher_is_better=True,
        constant=lambda labels: (1 + beta**2) * labels.shares[-1] / (beta**2 * labels.shares[-1] + 1),
        only_where_it_decides=not shown,
        note="at 0.5; not defined without positives (van Rijsbergen 1979)",
    )


def _ranking(best: int, words: str) -> MetricSpec:
    gain = f"normalised discounted cumulative gain of {words}, mean over groups"
    return MetricSpec(
        description={"binary": gain, "regression": f"{gain}; the label is the gain"},
        higher_is_better=True,
        of_amounts=True,
        of_groups=True,
        only_where_it_decides=True,
        best=best,
        note="only with `evaluation.group`; groups whose labels are all equal are left out, equal answers share their "
        "places (Järvelin, Kekäläinen 2002)",
    )


def _present(labels: LabelShape) -> int:
    return sum(share > 0 for share in labels.shares)


def _cheapest_answer(labels: LabelShape) -> float | None:
    """Return what the one answer costs that is cheapest where all examples get it; None: nothing is known of costs."""
    if not labels.costs:
        return None
    answers = range(len(labels.costs))
    expected = [sum(share * row[at] for share, row in zip(labels.shares, labels.costs, strict=True)) for at in answers]
    return min(expected)


_LABELS_UNIT = "the label's unit"
METRICS: Mapping[Metric, MetricSpec] = {
    "auc": MetricSpec(
        description={
            "binary": "area under the ROC curve",
            "multiclass": "area under the ROC curve, each class against the rest, mean over classes",
        },
        higher_is_better=True,
        constant=lambda _: 0.5,  # of equal scores
        of_each_class=True,
        of_epoch=("binary", "multiclass"),
        watched=("binary",),
        always_shown=True,
        vertex_field="auRoc",
        note="not defined where only one class is present",
    ),
    "log_loss": MetricSpec(
        description={
            "binary": "mean negative log likelihood",
            "multiclass": "mean negative log likelihood of the right class",
        },
        higher_is_better=False,
        constant=lambda labels: -sum(share * math.log(share) for share in labels.shares if share > 0),
        is_loss=True,
        watched=("binary", "multiclass"),
        vertex_field="logLoss",
    ),
    "accuracy": MetricSpec(
        description={
            "binary": "share of right answers at 0.5",
            "multiclass": "share of examples whose likeliest class is right",
        },
        higher_is_better=True,
        constant=lambda labels: max(labels.shares),
        of_epoch=("multiclass",),
        watched=("binary", "multiclass"),
    ),
    "brier": MetricSpec(
        description={
            "binary": "mean squared error of the probability",
            "multiclass": "squared error of the probabilities, summed over classes",
        },
        higher_is_better=False,
        # Of a binary label the squared error of the one probability, of several classes the sum over them.
        constant=lambda labels: sum(share * (1 - share) for share in labels.shares) / (2 if labels.is_binary else 1),
        watched=("binary", "multiclass"),
        note="at most 1; of several classes at most 2 (Brier 1950)",
    ),
    "pr_auc": MetricSpec(
        description={"binary": "area under the precision-recall curve"},
        higher_is_better=True,
        constant=lambda labels: labels.shares[-1],
        watched=("binary",),
        vertex_field="auPrc",
        note="average precision: of equal scores one threshold; not defined without positives",
    ),
    "calibration_error": MetricSpec(
        description={"binary": "expected difference of probability and share of positives, over 15 bins"},
        higher_is_better=False,
        constant=lambda _: 0.0,
        decides=False,
        note="shown, and cannot decide: predicting the base rate has none",
    ),
    "f1": _f_measure(1, "harmonic mean of precision and recall", shown=True),
    "f2": _f_measure(2, "F1 where recall counts twice as much as precision"),
    "f0_5": _f_measure(0.5, "F1 where precision counts twice as much as recall"),
    "mcc": MetricSpec(
        description={
            "binary": "Matthews' correlation of label and answer at 0.5",
            "multiclass": "Matthews' correlation of label and likeliest class",
        },
        higher_is_better=True,
        constant=lambda _: 0.0,
        note="between -1 and 1; 0 where one of them is always the same (Matthews 1975, Gorodkin 2004)",
    ),
    "cost": MetricSpec(
        description={
            "binary": "mean cost of the answers, yes where that is the cheaper one by the probability",
            "multiclass": "mean cost of the answers, of each example the class that is cheapest by the probabilities",
        },
        higher_is_better=False,
        constant=_cheapest_answer,
        unit="the unit of label.costs",
        watched=("binary", "multiclass"),
        of_costs=True,
        note="only with `label.costs` (Elkan 2001)",
    ),
    "balanced_accuracy": MetricSpec(
        description={"multiclass": "recall of each class, mean over classes"},
        higher_is_better=True,
        constant=lambda labels: 1 / _present(labels),
        of_each_class=True,
        watched=("multiclass",),
        note="classes without an example are left out",
    ),
    "macro_f1": MetricSpec(
        description={"multiclass": "harmonic mean of precision and recall of each class, mean over classes"},
        higher_is_better=True,
        constant=_constant_macro_f1,
        of_each_class=True,
        watched=("multiclass",),
        note="classes that are neither there nor answered are left out",
    ),
    "top2_accuracy": _among(2, "two"),
    "top3_accuracy": _among(3, "three"),
    "top5_accuracy": _among(5, "five"),
    "top10_accuracy": _among(10, "ten"),
    "mae": MetricSpec(
        description={"regression": "mean absolute error"},
        higher_is_better=False,
        unit=_LABELS_UNIT,
        of_epoch=("regression",),
        watched=("regression",),
        vertex_field="meanAbsoluteError",
    ),
    "rmse": MetricSpec(
        description={"regression": "root of the mean squared error"},
        higher_is_better=False,
        constant=lambda labels: labels.stddev,
        unit=_LABELS_UNIT,
        of_epoch=("regression",),
        watched=("regression",),
        vertex_field="rootMeanSquaredError",
    ),
    "r2": MetricSpec(
        description={"regression": "share of the label's variance that is explained"},
        higher_is_better=True,
        constant=lambda _: 0.0,  # the mean of the labels explains nothing of their variance
        of_epoch=("regression",),
        watched=("regression",),
        always_shown=True,
        vertex_field="rSquared",
        note="not defined where all labels are equal",
    ),
    "medae": MetricSpec(description={"regression": "median absolute error"}, higher_is_better=False, unit=_LABELS_UNIT),
    "smape": MetricSpec(
        description={"regression": "mean of 2 |answer - label| / (|answer| + |label|)"},
        higher_is_better=False,
        watched=("regression",),
        note="between 0 and 2; 0 where both are 0",
    ),
    "mape": MetricSpec(
        description={"regression": "mean of |answer - label| / |label|"},
        higher_is_better=False,
        only_where_it_decides=True,
        note="over examples whose label is not 0",
    ),
    "rmsle": MetricSpec(
        description={"regression": "root of the mean squared error of log(1 + value)"},
        higher_is_better=False,
        only_where_it_decides=True,
        of_amounts=True,
        note="of labels that are never below 0; an answer below 0 counts as 0",
    ),
    "pinball": MetricSpec(
        description={"regression": "pinball loss, mean over the quantiles"},
        higher_is_better=False,
        unit=_LABELS_UNIT,
        of_quantiles=True,
        note="only with `quantiles`",
    ),
    "ndcg": _ranking(0, "each group"),
    "ndcg10": _ranking(10, "the ten best of each group"),
}
"""In the order in which people see them."""
HIGHER_IS_BETTER: frozenset[str] = frozenset(name for name, row in METRICS.items() if row.higher_is_better)
IN_UNIT: frozenset[str] = frozenset(name for name, row in METRICS.items() if row.unit)
"""Metrics in a unit of their own: no amount of them is large or small by itself."""


def metrics_of(kind: Kind) -> tuple[Metric, ...]:
    """Return the metrics of a kind of label, of any number of classes and with quantiles."""
    return tuple(name for name, row in METRICS.items() if kind in row.description)


def of_epoch(kind: Kind) -> tuple[Metric, ...]:
    """Return those that each epoch reports beside the loss, the leading one first."""
    return _leading_first(kind, (name for name in metrics_of(kind) if kind in METRICS[name].of_epoch))


def watched_metrics(kind: Kind) -> tuple[Metric, ...]:
    """Return those that the monitor shows, the leading one first."""
    return _leading_first(kind, (name for name in metrics_of(kind) if kind in METRICS[name].watched))


def _leading_first(kind: Kind, names: Iterable[Metric]) -> tuple[Metric, ...]:
    return tuple(sorted(names, key=lambda name: name != LEADING[kind]))


def tops_of(classes: int) -> dict[Metric, int]:
    """Return the metrics of some likeliest classes, fewer than there are, each with their number."""
    return {name: row.likeliest for name, row in METRICS.items() if 0 < row.likeliest < classes}
