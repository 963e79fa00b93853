"""How well one feature alone tells the label: what the statistics query asks, and what its rows say.

In: rows of the training split about one feature. Out: a measure from 0 to 1 where it is so high that the feature gives
the label away, else None. What a measure may be off by, and how often it speaks by chance, is in docs/checks.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any

from retraining.core.data.label_statistics import finite
from retraining.core.spec.features import Label, class_count

Row = Mapping[str, Any]

LEAKING_CORRELATION = 0.999
"""Of a number with the label: what is so near is the label in other words."""
LEAKING_AUC = 0.999
"""Of one feature alone as the score of a binary label, either way round; of several classes, on average of pairs."""
LEAKING_R2 = 0.998
"""Of a regression by one feature alone: the square of `LEAKING_CORRELATION`."""
LEAKING_INFORMATION = 0.98
"""Share of the classes' entropy that one feature alone takes away: of ten equal classes one row in 400 may be wrong."""
LABEL_STEPS = 200
BINS = 100
_LEAST_FREE = 30
"""Rows more than groups, below which a share of explained variance is not judged."""
_LEAST_OF_CLASS = 10
_MOST_CLASSES = 100
_POINTS = 2000


def association_of(label: Label) -> str | None:
    """Return what the query asks of a number and this label: `ranks`, `classes`, or nothing.

    A binary label has its own, `by_label`; of more than 100 classes the quantiles of each would be too many.
    """
    if label.kind == "regression":
        return "ranks"
    return "classes" if label.kind == "multiclass" and class_count(label) <= _MOST_CLASSES else None


def class_steps(label: Label) -> int:
    """Return into how many steps a number's values in each class are summed up: 20 to 200, 2,000 points in all."""
    return max(20, min(LABEL_STEPS, _POINTS // class_count(label)))


def leaking_correlation(row: Row) -> float | None:
    """Return the correlation with the label of a number that gives it away; None: it does not."""
    correlation = finite(row.get("correlation"))
    return correlation if correlation is not None and abs(correlation) >= LEAKING_CORRELATION else None


def auc_of_number(row: Row) -> float | None:
    """Return the AUC of a number as the score of a binary label, where it gives the label away; else None."""
    values, middle = [float(value) for value in row.get("by_label") or ()], LABEL_STEPS + 1
    if len(values) != 2 * middle:
        return None  # one label only
    return _leaking_auc([(value, float(place < middle), float(place >= middle)) for place, value in enumerate(values)])


def auc_of_categories(rows: Sequence[Row]) -> float | None:
    """Return that of the share of label 1 in each category, a missing value being one."""
    shares = [(float(row["mean"]), int(row["row_count"])) for row in rows if row.get("mean") is not None]
    return _leaking_auc([(share, count * (1 - share), count * share) for share, count in shares if 0 <= share <= 1])


def number_tells_label(label: Label, rows: Sequence[Row]) -> float | None:
    """Return how well a number alone tells a label that is not binary, where it gives it away; else None.

    Of a regression it is the share of the variance of the label's rank between the number's 100 bins (H / (n - 1) of
    Kruskal and Wallis 1952, adjusted for the number of bins). Of several classes it is the mean AUC of their pairs,
    each by its rows (after Hand and Till 2001), of classes with ten rows or more.

    Args:
        label: The label.
        rows: Those of the section `association` about the feature.
    """
    if not rows:
        return None
    if label.kind == "regression":
        row = rows[0]
        within, total = finite(row["low"]), finite(row["high"])
        if within is None or total is None:
            return None
        return _leaking_share(within, total, int(row["row_count"]), int(row["distinct_count"]))
    return _separation(rows)


def categories_tell_label(label: Label, rows: Sequence[Row], counts: Sequence[int] = ()) -> float | None:
    """Return how well categories alone tell a label that is not binary, where they give it away; else None.

    Of a regression it is the share of the label's variance between the categories, adjusted for how many there are. Of
    several classes it is the share of their entropy that the category takes away (Theil's U, 1972).

    Args:
        label: The label.
        rows: One per category, a missing value being one: `row_count`, `mean`, and as `deviation` the label's standard
            deviation, or the sum of n ln n over its classes' rows.
        counts: Rows of each class in the split.
    """
    known = [row for row in rows if finite(row.get("mean")) is not None and finite(row.get("deviation")) is not None]
    if not known or label.kind == "binary":
        return None
    if label.kind == "multiclass":
        return _leaking_information(known, counts)
    groups = [(int(row["row_count"]), float(row["mean"]), float(row["deviation"])) for row in known]
    total = sum(each for each, _, _ in groups)
    mean = sum(each * own for each, own, _ in groups) / total
    within = sum(each * spread**2 for each, _, spread in groups) / total
    between = sum(each * (own - mean) ** 2 for each, own, _ in groups) / total
    return _leaking_share(within, within + between, total, len(groups))


def _leaking_information(rows: Sequence[Row], counts: Sequence[int]) -> float | None:
    """Return Theil's U of the classes by the categories, where these give the classes away; else None."""
    each = [int(row["row_count"]) for row in rows]
    before = _entropy(sum(counts), sum(map(_n_log_n, counts)))
    after = _entropy(
        sum(each),
        sum(float(row["deviation"]) - _n_log_n(own) for row, own in zip(rows, each, strict=True)) + _n_log_n(sum(each)),
    )
    if before <= 0:
        return None
    share = 1 - after / before
    return min(share, 1.0) if share >= LEAKING_INFORMATION else None


def _n_log_n(count: int) -> float:
    return count * math.log(count) if count else 0.0


def _entropy(rows: int, spread: float) -> float:
    """Return the entropy in nats of classes whose n ln n add up to `spread`."""
    return math.log(rows) - spread / rows if rows else 0.0


def _leaking_share(within: float, total: float, rows: int, groups: int) -> float | None:
    """Return the share of variance between groups, adjusted for their number, where it gives the label away."""
    if total <= 0 or rows - groups < _LEAST_FREE:
        return None
    share = 1 - within / total * (rows - 1) / (rows - groups)
    return share if share >= LEAKING_R2 else None


def _separation(rows: Sequence[Row]) -> float | None:
    """Return the mean AUC of the pairs of classes, where it gives the classes away; else None."""
    classes = [
        (int(row["row_count"]), [float(value) for value in row["quantiles"]])
        for row in rows
        if int(row["row_count"]) >= _LEAST_OF_CLASS and row["quantiles"]
    ]
    won = pairs = 0.0
    for (first, low), (second, high) in combinations(classes, 2):
        auc = _auc([(value, 1 / len(low), 0.0) for value in low] + [(value, 0.0, 1 / len(high)) for value in high])
        won += first * second * max(auc, 1 - auc)
        pairs += first * second
    mean = won / pairs if pairs else 0.0
    return min(mean, 1.0) if mean >= LEAKING_AUC else None


def _leaking_auc(weighted: Iterable[tuple[float, float, float]]) -> float | None:
    """Return the AUC of scores, each with its weight of 0 and of 1, where they give the label away; else None.

    Of 201 quantiles a side it is right to 0.005, and 1 only where the two do not overlap.
    """
    listed = list(weighted)
    if not sum(zero for _, zero, _ in listed) or not sum(one for _, _, one in listed):
        return None
    auc = _auc(listed)
    return auc if max(auc, 1 - auc) >= LEAKING_AUC else None


def _auc(weighted: Iterable[tuple[float, float, float]]) -> float:
    """Return the AUC of scores, each with its weight of 0 and of 1; equal scores count half."""
    below = won = ones = 0.0
    for _, group in groupby(sorted(weighted), key=lambda item: item[0]):
        equal = [(zero, one) for _, zero, one in group]
        zero, one = sum(each[0] for each in equal), sum(each[1] for each in equal)
        won += one * (below + zero / 2)
        below, ones = below + zero, ones + one
    return min(max(won / (below * ones), 0.0), 1.0)


def one_label_each(rows: Sequence[Row]) -> bool:
    """Return whether each category has one label in all its rows, and not all have the same."""
    ends = [(row["low"], row["high"]) for row in rows if row.get("low") is not None]
    return all(low == high for low, high in ends) and len({low for low, _ in ends}) > 1
