"""Distances by hand, and what must hold of any."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core import documents as d
from retraining.core.monitoring import baselines
from retraining.core.monitoring.distances import UNSEEN, between_bins, between_values, jensen_shannon, l_infinity

SHARES = st.lists(st.floats(0.001, 1), min_size=2, max_size=12)


def normal(weights):
    return [weight / sum(weights) for weight in weights]


def test_numbers_in_half_of_the_bins_have_the_divergence_of_the_formula():
    """Twenty even bins, of which ten are used: by hand 10 (½ 0.05 log2(2/3) + ½ 0.1 log2(4/3)) + 10 · ½ 0.05."""
    before, now = [0.05] * 20, [0.1] * 10 + [0.0] * 10
    by_hand = 10 * (0.05 * math.log2(2 / 3) + 0.1 * math.log2(4 / 3)) / 2 + 10 * 0.05 / 2
    assert jensen_shannon(before, now) == pytest.approx(by_hand)
    assert jensen_shannon(before, now) == pytest.approx(0.311278, abs=1e-6)


def test_two_bins_have_the_divergence_and_deviation_worked_out_by_hand():
    """P = (½, ½), Q = (¼, ¾): M = (3/8, 5/8).

    JSD = ½ [½ log2(4/3) + ½ log2(4/5)] + ½ [¼ log2(2/3) + ¾ log2(6/5)] = 0.048795. The slope of Q's first share is
    ½ log2(2/3), of its second ½ log2(6/5); their variance under Q by 100 examples gives the deviation.
    """
    found = between_bins([0.5, 0.5], [0.25, 0.75], (0, 100))
    assert found.value == pytest.approx(0.048795, abs=1e-6)
    slopes = (math.log2(2 / 3) / 2, math.log2(6 / 5) / 2)
    mean = 0.25 * slopes[0] + 0.75 * slopes[1]
    deviation = math.sqrt((0.25 * slopes[0] ** 2 + 0.75 * slopes[1] ** 2 - mean**2) / 100)
    assert found.high - found.value == pytest.approx(1.959964 * deviation)
    assert found.value - found.low == pytest.approx(1.959964 * deviation)


def test_the_interval_of_a_share_is_that_of_the_normal_distribution():
    """0.6 - 0.4 by 100 examples: the deviation is √(0.6 · 0.4 / 100) = 0.048990."""
    found = between_values({"UA": 0.4, "AA": 0.6}, {"UA": 0.6, "AA": 0.4}, (0, 100))
    assert found.measure == "l_infinity"
    assert found.value == pytest.approx(0.2)
    assert found.high == pytest.approx(0.2 + 1.959964 * 0.048990, abs=1e-6)


def test_more_examples_make_the_interval_narrow_and_leave_the_distance():
    """An effect size: what is small stays small, however many examples there are."""
    few, many = (between_bins([0.5, 0.5], [0.49, 0.51], (0, rows)) for rows in (1000, 10**9))
    assert few.value == many.value < 0.001
    assert many.high - many.low < few.high - few.low


def test_what_changed_most_is_said_without_naming_a_value():
    assert between_values({"UA": 1.0}, {"UA": 0.2, UNSEEN: 0.7, None: 0.1}, (9, 9)).most == ""
    assert between_values({"UA": 0.5, "AA": 0.5}, {"UA": 0.2, "AA": 0.2, UNSEEN: 0.6}, (9, 9)).most is UNSEEN
    assert between_values({"UA": 0.5, "AA": 0.5}, {"UA": 0.2, "AA": 0.2, None: 0.6}, (9, 9)).most is None
    assert between_bins([0.5, 0.5, 0.0], [0.1, 0.1, 0.8], (9, 9)).most is None
    assert between_bins([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], (9, 9)).most == ""


def test_equal_quantiles_are_one_bin_with_their_common_share():
    baseline = d.NumericStatistics(
        kind="numeric", nulls=20, min=0.0, max=2.0, mean=0.1, stddev=0.1, quantiles=(0.0,) * 18 + (1.0, 1.0, 2.0)
    )
    edges = baselines.bin_edges(baseline)
    assert edges == [0.0, 1.0, 2.0]
    # below, [0, 1), [1, 2), [2, ∞), missing; a fifth of the rows is missing.
    assert baselines.bin_shares(baseline, 100, edges) == pytest.approx([0, 0.72, 0.08, 0, 0.2])


def test_values_beyond_the_baselines_first_ones_are_expected_to_be_unseen():
    baseline = d.CategoricalStatistics(
        kind="categorical", nulls=10, distinct=5000, top=(d.ValueCount(value="UA", count=60),)
    )
    assert baselines.category_shares(baseline, 100) == {"UA": 0.6, None: 0.1, UNSEEN: pytest.approx(0.3)}


@given(SHARES, st.randoms())
def test_jensen_shannon_is_a_symmetric_distance_between_zero_and_one(weights, random):
    p = normal(weights)
    q = p.copy()
    random.shuffle(q)
    forward, backward = jensen_shannon(p, q), jensen_shannon(q, p)
    assert 0 <= forward <= 1
    assert forward == pytest.approx(backward)
    assert jensen_shannon(p, p) == pytest.approx(0)


@given(SHARES, SHARES, st.integers(1, 10**9))
def test_an_interval_holds_its_value(weights, others, rows):
    size = min(len(weights), len(others))
    p, q = normal(weights[:size]), normal(others[:size])
    found = between_bins(p, q, (rows, rows))
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(SHARES)
def test_distributions_without_a_common_bin_are_at_distance_one(weights):
    p = normal(weights)
    zeros = [0.0] * len(p)
    assert jensen_shannon(p + zeros, zeros + p) == pytest.approx(1)


@given(st.dictionaries(st.text(max_size=3), st.floats(0.01, 1), min_size=1, max_size=6), st.floats(0, 0.9))
def test_an_unseen_value_moves_l_infinity_by_at_least_its_share(weights, share):
    total = sum(weights.values())
    p = {key: weight / total for key, weight in weights.items()}
    q = {key: value * (1 - share) for key, value in p.items()} | {None: share}
    assert l_infinity(p, q) == pytest.approx(share, abs=1e-9)
    assert l_infinity(p, p) == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=21, max_size=21), st.integers(0, 100))
def test_a_baselines_shares_sum_to_one(quantiles, nulls):
    ordered = tuple(sorted(quantiles))
    baseline = d.NumericStatistics(
        kind="numeric", nulls=nulls, min=ordered[0], max=ordered[-1], mean=0.0, stddev=1.0, quantiles=ordered
    )
    edges = baselines.bin_edges(baseline)
    shares = baselines.bin_shares(baseline, 100, edges)
    assert len(shares) == len(edges) + 2
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
