"""Findings on features that are too good to be true.

A feature may be the label in other words, like a key of the rows, or known only some time after the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from retraining.core.checks.findings import finding
from retraining.core.data.statistics import KEY_ROWS, KEY_SHARE
from retraining.core.documents.checks import (
    CategoricalStatistics,
    Finding,
    NumericStatistics,
    SplitStatistics,
    Statistics,
)
from retraining.core.spec.features import Label
from retraining.core.spec.model import ModelSpec

_ROWS_PER_CATEGORY = 10
"""On average; of categories with fewer rows each may have one label by chance."""

_LEAST_DAYS = 14
"""Half of them are what the newest days are compared with."""
_FALL = 0.1
_FALL_OF_ONE_DAY = 0.5
"""How far the newest days' share of rows with a value is below each of the older days'; of a single day, more: a source
may be late once."""


def leak_findings(spec: ModelSpec, name: str, train: SplitStatistics) -> Iterator[Finding]:
    """Yield a feature that gives the label away: a model of it is worth nothing where the label is not known yet."""
    told = _how_it_tells(spec.label, name, train)
    if told is None:
        return
    found, why = told
    yield finding(
        spec,
        "label_leak",
        feature=name,
        found=found,
        expected="a feature that does not tell the label by itself",
        message=f"{why}: is it the label itself, or known only after it? Take it out of the query and of features",
    )


def _how_it_tells(label: Label, name: str, train: SplitStatistics) -> tuple[str, str] | None:
    """Return by what a feature gives the label away, short and as a sentence; None: it does not."""
    statistics = train.features[name]
    if isinstance(statistics, CategoricalStatistics):
        return _how_categories_tell(label, name, train, statistics)
    if not isinstance(statistics, NumericStatistics):
        return None
    if statistics.label_correlation is not None:
        found = f"a correlation of {statistics.label_correlation:.5f}"
        why = f"{name} and the label {label.name} have {found}"
    elif statistics.label_auc is not None:
        found = f"an AUC of {statistics.label_auc:.4f} of this feature alone"
        why = (
            f"{name} alone tells the rows of {label.name} 1 from those of 0, with an AUC of {statistics.label_auc:.4f}"
        )
    elif statistics.label_association is None:
        return None
    elif label.kind == "regression":
        found = f"{statistics.label_association:.5f} of the variance of the label's rank by this feature alone"
        why = f"{name} alone explains {statistics.label_association:.5f} of the variance of the rank of {label.name}"
    else:
        found = f"an AUC of {statistics.label_association:.4f} of this feature alone, on average of the classes' pairs"
        why = f"{name} alone tells the classes of {label.name} apart, with an AUC of {statistics.label_association:.4f}"
    return f"{found} in train", why


def _how_categories_tell(
    label: Label, name: str, train: SplitStatistics, statistics: CategoricalStatistics
) -> tuple[str, str] | None:
    if train.rows < _ROWS_PER_CATEGORY * statistics.distinct:
        return None  # by chance
    if statistics.label_by_category:
        found = f"{statistics.distinct} categories of one label each"
        why = f"each of the {statistics.distinct} categories of {name} has one {label.name} in all its rows"
    elif statistics.label_auc is not None:
        found = f"an AUC of {statistics.label_auc:.4f} of this feature alone"
        why = (
            f"{name} alone tells the rows of {label.name} 1 from those of 0, with an AUC of {statistics.label_auc:.4f}"
        )
    elif statistics.label_association is None:
        return None
    else:
        of = "variance" if label.kind == "regression" else "entropy"
        found = f"{statistics.label_association:.4f} of the label's {of} by this feature alone"
        why = f"{name} alone explains {statistics.label_association:.4f} of the {of} of {label.name}"
    return f"{found} in train", why


def key_findings(spec: ModelSpec, name: str, train: SplitStatistics) -> Iterator[Finding]:
    """Yield a feature with another value in nearly every row: what is learnt of one says nothing of the next."""
    statistics = train.features[name]
    if isinstance(statistics, CategoricalStatistics):
        rows = train.rows - statistics.nulls
        if rows < KEY_ROWS or statistics.distinct < KEY_SHARE * rows:
            return
        found, what = f"{statistics.distinct} values in {rows} rows of train", "another value in nearly every row"
        way_out = "take it out of features, or make groups of it in the query"
    elif isinstance(statistics, NumericStatistics) and statistics.row_number:
        found = (
            f"whole numbers from {statistics.min:g} to {statistics.max:g}, nearly all different, in {train.rows} rows"
        )
        what = "another whole number in nearly every row, nearly without gaps, as a row's own number has"
        way_out = "take it out of features; of a time take its parts, such as hour, weekday and month"
    else:
        return
    yield finding(
        spec,
        "key_like",
        feature=name,
        found=found,
        expected="values that several rows share, or measurements",
        message=f"{name} has {what}: a model learns the rows by heart by it. {way_out[0].upper()}{way_out[1:]}",
    )


def fill_findings(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield features that the newest days have more seldom than any of the older ones: their values may come later."""
    for name in spec.feature_names:
        shares = statistics.fills.get(name, ())
        days = days_without(shares)
        if not days:
            continue
        newest, usual = sum(shares[:days]) / days, median(_older(shares))
        of_days = f"{days} newest days" if days > 1 else "newest day"
        yield finding(
            spec,
            "filled_later",
            feature=name,
            found=f"{newest:.1%} of the rows of the {of_days} have it, of older days {usual:.1%}",
            expected="as many values in the newest days as in older ones",
            message=f"{name} is there in {newest:.1%} of the rows of the {of_days} and in {usual:.1%} of older days: "
            "is it known only some time after the event, or its source late? The model is asked at the event: take "
            "what is known then, or take it out of features",
        )


def days_without(shares: Sequence[float]) -> int:
    """Return how many of the newest days have a feature more seldom than each of the older half of the days.

    Args:
        shares: Of each day's rows that have it, the newest day first.

    Returns:
        0 where there are fewer than 14 days, or the newest day is like the others; half of the days at most.
    """
    if len(shares) < _LEAST_DAYS:
        return 0
    least = min(_older(shares))
    newest = shares[: len(shares) // 2]
    days = next((place for place, share in enumerate(newest) if share > least - _FALL), len(newest))
    return 0 if days == 1 and shares[0] > least - _FALL_OF_ONE_DAY else days


def _older(shares: Sequence[float]) -> Sequence[float]:
    return shares[len(shares) // 2 :]
