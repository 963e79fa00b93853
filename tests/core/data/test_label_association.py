"""How well one feature alone tells the label: against definitions, and where it may not speak."""

from __future__ import annotations

import math

import numpy as np
import pytest

from retraining.core.data import label_association as association
from retraining.core.spec.features import BinaryLabel, MulticlassLabel, RegressionLabel

NUMBER = RegressionLabel(name="y", kind="regression")
CLASSES = MulticlassLabel(name="y", kind="multiclass", classes=3)
BINARY = BinaryLabel(name="y", kind="binary")


def ranked(values, labels, bins=association.BINS, steps=association.LABEL_STEPS):
    """Return the row that the query's section `association` has of a regression."""
    bounds = np.quantile(values, np.linspace(0, 1, bins + 1))
    ranks = np.searchsorted(np.quantile(labels, np.linspace(0, 1, steps + 1)), labels, side="right")
    place = np.searchsorted(bounds, values, side="right")
    groups = [ranks[place == each] for each in np.unique(place)]
    within = sum(len(each) * each.var() for each in groups) / len(values)
    return {"row_count": len(values), "distinct_count": len(groups), "low": within, "high": ranks.var()}


@pytest.mark.parametrize("rows", [300, 20_000])
@pytest.mark.parametrize(
    ("feature", "tells"),
    [
        (lambda y, _noise: y, True),
        (lambda y, _noise: np.log(y), True),
        (lambda y, noise: -y + 0.01 * noise, True),
        (lambda y, noise: y * np.exp(0.3 * noise), False),
        (lambda _y, noise: noise, False),
    ],
    ids=["the label", "its logarithm", "turned round", "a good feature", "noise"],
)
def test_a_number_that_is_the_label_in_another_unit_is_found(rows, feature, tells):
    random = np.random.default_rng(1)
    labels, noise = np.exp(random.normal(size=rows)), random.normal(size=rows)
    found = association.number_tells_label(NUMBER, [ranked(feature(labels, noise), labels)])
    assert (found is not None) == tells


def test_a_parabola_is_found_too():
    """The label rises on both sides, so it has no correlation with the feature."""
    values = np.random.default_rng(2).uniform(-1, 1, 20_000)
    assert abs(np.corrcoef(values, values**2)[0, 1]) < 0.05
    assert association.number_tells_label(NUMBER, [ranked(values, values**2)])


def test_too_few_rows_say_nothing_of_a_number():
    values = np.arange(120.0)
    assert association.number_tells_label(NUMBER, [ranked(values, values)]) is None
    assert (
        association.number_tells_label(NUMBER, [{"row_count": 0, "distinct_count": 0, "low": None, "high": None}])
        is None
    )
    assert association.number_tells_label(NUMBER, []) is None


def by_class(*values):
    """Return the rows of the section of several classes."""
    steps = association.class_steps(CLASSES)
    return [
        {"value": place, "row_count": len(each), "quantiles": np.quantile(each, np.linspace(0, 1, steps + 1)).tolist()}
        for place, each in enumerate(values)
    ]


def test_a_number_that_tells_all_classes_is_found_in_whatever_order():
    low, middle, high = np.linspace(0, 1, 50), np.linspace(1.1, 2, 90), np.linspace(2.1, 3, 70)
    assert association.number_tells_label(CLASSES, by_class(low, high, middle)) == 1.0
    assert association.number_tells_label(CLASSES, by_class(low, middle + 0.5, high)) is None
    assert association.number_tells_label(CLASSES, by_class(low, low, high)) is None  # one class, as of irises


def test_a_class_of_few_rows_says_nothing():
    """By chance it has its values to itself."""
    few, rest = [5.0] * 9, np.linspace(0, 1, 50)
    assert association.number_tells_label(CLASSES, by_class(few, rest)) is None
    assert association.number_tells_label(CLASSES, by_class([*few, 5.0], rest)) == 1.0


@pytest.mark.parametrize(("classes", "steps"), [(2, 200), (10, 200), (40, 50), (100, 20), (100_000, 20)])
def test_many_classes_get_fewer_points_each(classes, steps):
    label = MulticlassLabel(name="y", kind="multiclass", classes=classes)
    assert association.class_steps(label) == steps
    assert association.association_of(label) == ("classes" if classes <= 100 else None)


def spread(*rows):
    """Return n ln n, summed."""
    return sum(row * math.log(row) for row in rows if row)


def test_the_share_of_entropy_is_theils():
    """Against its definition: of 1,000 rows with three equal classes 1 is elsewhere, then 40."""
    for wrong, tells in ((1, True), (40, False)):
        counts = np.array([[334 - wrong, wrong, 0], [0, 333, 0], [0, 0, 333]])
        joint = counts / counts.sum()
        of_class, of_category = joint.sum(axis=0), joint.sum(axis=1)
        known = joint[joint > 0]
        information = (known * np.log(known / np.outer(of_category, of_class)[joint > 0])).sum()
        expected = information / -(of_class * np.log(of_class)).sum()
        rows = [{"row_count": int(each.sum()), "mean": 0.0, "deviation": spread(*each)} for each in counts]
        found = association.categories_tell_label(CLASSES, rows, counts.sum(axis=0).tolist())
        assert found == (pytest.approx(expected) if tells else None)


def test_the_share_of_variance_of_categories_is_adjusted_for_their_number():
    exact = [{"row_count": 40, "mean": float(place), "deviation": 0.01} for place in range(5)]
    assert association.categories_tell_label(NUMBER, exact) == pytest.approx(0.99995, abs=1e-5)
    loose = [{**row, "deviation": 0.3} for row in exact]
    assert association.categories_tell_label(NUMBER, loose) is None
    alone = [{"row_count": 1, "mean": float(place), "deviation": 0.0} for place in range(50)]
    assert association.categories_tell_label(NUMBER, alone) is None


def test_what_is_no_number_says_nothing():
    rows = [{"row_count": 40, "mean": float("inf"), "deviation": float("nan")}]
    assert association.categories_tell_label(NUMBER, rows) is None
    assert association.categories_tell_label(BINARY, [{"row_count": 40, "mean": 0.5, "deviation": 0.5}]) is None
