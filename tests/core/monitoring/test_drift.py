"""Distances between requests and training data."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core import documents as d
from retraining.core.monitoring import drift
from tests.support.small_model import AS_OF, make_plan, make_spec, make_statistics

TABLE = "my-project.retraining.requests_late"
SHARES = st.lists(st.floats(0.001, 1), min_size=2, max_size=12)


def normal(weights):
    return [weight / sum(weights) for weight in weights]


def measure(rows, spec=None, **changes):
    the_plan = make_plan(spec)
    return drift.measure(
        the_plan.spec,
        as_of=AS_OF,
        endpoint_name="projects/p/locations/r/endpoints/late",
        log_table=TABLE,
        champion=d.DriftChampion(version_id="1", run_key=the_plan.run_key),
        baseline_uri="gs://b/late/runs/x/statistics.json",
        statistics=make_statistics(the_plan, **changes),
        rows=rows,
    )


def rows(carriers, bins):
    total = sum(carriers.values())
    return [
        row("", None, total),
        *(row("carrier", value, count) for value, count in carriers.items() if value != "ZZ"),
        *(row("carrier", None, count, unseen=True) for value, count in carriers.items() if value == "ZZ"),
        *(row("distance", index, count) for index, count in bins.items()),
    ]


def row(feature, bucket, instances, *, unseen=False):
    """A row of the query. The training data has UA and AA, and no ZZ."""
    return {"feature": feature, "bucket": bucket, "unseen": unseen, "instances": instances}


SAME = {str(index): 5 for index in range(1, 21)}


def values(found):
    return {feature.name: feature.value for feature in found.features}


def test_requests_like_the_training_data_have_no_distance():
    found = measure(rows({"UA": 75, "AA": 25}, SAME))
    assert found.rows == 100
    assert values(found) == {"carrier": pytest.approx(0), "distance": pytest.approx(0)}
    assert not any(feature.drifted for feature in found.features)
    assert d.Drift.parse(found.to_bytes()) == found


def test_an_unseen_category_counts_with_its_whole_share():
    found = values(measure(rows({"UA": 45, "AA": 15, "ZZ": 40}, SAME)))
    assert found["carrier"] == pytest.approx(0.4)


def test_values_beyond_the_baselines_first_ones_are_expected_to_be_unseen():
    baseline = d.CategoricalStatistics(
        kind="categorical", nulls=10, distinct=5000, top=(d.ValueCount(value="UA", count=60),)
    )
    assert drift.category_shares(baseline, 100) == {"UA": 0.6, None: 0.1, drift.UNSEEN: pytest.approx(0.3)}


def test_missing_categories_count_as_a_value():
    assert values(measure(rows({"UA": 45, "AA": 15, None: 40}, SAME)))["carrier"] == pytest.approx(0.4)


def test_numbers_that_moved_out_of_every_bin_are_as_far_as_can_be():
    assert values(measure(rows({"UA": 75, "AA": 25}, {"0": 100})))["distance"] == pytest.approx(1)
    assert values(measure(rows({"UA": 75, "AA": 25}, {None: 100})))["distance"] == pytest.approx(1)


def test_numbers_in_half_of_the_bins_have_the_divergence_of_the_formula():
    half = {str(index): 10 for index in range(1, 11)}
    found = values(measure(rows({"UA": 75, "AA": 25}, half)))["distance"]
    p, q, m = 0.05, 0.1, 0.075
    expected = 10 * (p * math.log2(p / m) + q * math.log2(q / m)) / 2 + 10 * p * math.log2(p / (p / 2)) / 2
    assert found == pytest.approx(expected)


def test_only_strictly_more_than_the_threshold_is_drift():
    at = measure(rows({"UA": 60, "AA": 20, "ZZ": 20}, SAME), with_threshold(0.2))
    carrier = next(feature for feature in at.features if feature.name == "carrier")
    assert carrier.value == pytest.approx(0.2)
    exact = measure(rows({"UA": 3, "AA": 1, "ZZ": 4}, SAME), with_threshold(0.5))
    assert [feature.drifted for feature in exact.features if feature.name == "carrier"] == [False]
    over = measure(rows({"UA": 3, "AA": 1, "ZZ": 4}, SAME), with_threshold(0.49))
    assert [feature.drifted for feature in over.features if feature.name == "carrier"] == [True]


def test_a_feature_may_have_its_own_threshold():
    spec = make_spec(monitoring={"drift": {"threshold": 0.1, "features": {"carrier": 1.0}}})
    found = measure(rows({"ZZ": 100}, {"0": 100}), spec)
    assert {feature.name: (feature.threshold, feature.drifted) for feature in found.features} == {
        "carrier": (1.0, False),
        "distance": (0.1, True),
    }


def with_threshold(threshold):
    return make_spec(monitoring={"drift": {"threshold": threshold}})


def test_no_request_measures_nothing():
    found = measure([])
    assert (found.rows, found.features) == (0, ())


def test_a_feature_the_champion_did_not_know_is_left_out():
    the_plan = make_plan()
    statistics = make_statistics(the_plan)
    train = statistics.splits["train"]
    known = {"carrier": train.features["carrier"]}
    cut = statistics.model_copy(
        update={"splits": {**statistics.splits, "train": train.model_copy(update={"features": known})}}
    )
    query = drift.render_requests_sql(the_plan.spec, TABLE, cut, AS_OF)
    assert "'distance'" not in query.sql
    assert [parameter.name for parameter in query.parameters] == ["window_start", "window_end", "values_0"]


def test_the_query_counts_in_the_window_with_the_baselines_edges():
    the_plan = make_plan()
    query = drift.render_requests_sql(the_plan.spec, TABLE, make_statistics(the_plan), AS_OF)
    parameters = {parameter.name: parameter.value for parameter in query.parameters}
    assert parameters["window_start"] == "2013-11-19T03:00:00Z"
    assert parameters["window_end"] == "2013-11-20T03:00:00Z"
    assert parameters["edges_1"] == tuple(float(edge) for edge in range(21))
    assert "@edges_1" in query.sql
    assert parameters["values_0"] == ("UA", "AA")
    assert "JSON_VALUE(logged_instance, '$.carrier')" in query.sql
    assert f"`{TABLE}`" in query.sql


def test_equal_quantiles_are_one_bin_with_their_common_share():
    baseline = d.NumericStatistics(
        kind="numeric", nulls=20, min=0.0, max=2.0, mean=0.1, stddev=0.1, quantiles=(0.0,) * 18 + (1.0, 1.0, 2.0)
    )
    edges = drift.bin_edges(baseline)
    assert edges == [0.0, 1.0, 2.0]
    # below, [0, 1), [1, 2), [2, ∞), missing; a fifth of the rows is missing.
    assert drift.bin_shares(baseline, 100, edges) == pytest.approx([0, 0.72, 0.08, 0, 0.2])


@given(SHARES, st.randoms())
def test_jensen_shannon_is_a_symmetric_distance_between_zero_and_one(weights, random):
    p = normal(weights)
    q = p.copy()
    random.shuffle(q)
    forward, backward = drift.jensen_shannon(p, q), drift.jensen_shannon(q, p)
    assert 0 <= forward <= 1
    assert forward == pytest.approx(backward)
    assert drift.jensen_shannon(p, p) == pytest.approx(0)


@given(SHARES)
def test_distributions_without_a_common_bin_are_at_distance_one(weights):
    p = normal(weights)
    zeros = [0.0] * len(p)
    assert drift.jensen_shannon(p + zeros, zeros + p) == pytest.approx(1)


@given(st.dictionaries(st.text(max_size=3), st.floats(0.01, 1), min_size=1, max_size=6), st.floats(0, 0.9))
def test_an_unseen_value_moves_l_infinity_by_at_least_its_share(weights, share):
    total = sum(weights.values())
    p = {key: weight / total for key, weight in weights.items()}
    q = {key: value * (1 - share) for key, value in p.items()} | {None: share}
    assert drift.l_infinity(p, q) == pytest.approx(share, abs=1e-9)
    assert drift.l_infinity(p, p) == 0


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=21, max_size=21),
    st.integers(0, 100),
)
def test_a_baselines_shares_sum_to_one(quantiles, nulls):
    ordered = tuple(sorted(quantiles))
    baseline = d.NumericStatistics(
        kind="numeric", nulls=nulls, min=ordered[0], max=ordered[-1], mean=0.0, stddev=1.0, quantiles=ordered
    )
    edges = drift.bin_edges(baseline)
    shares = drift.bin_shares(baseline, 100, edges)
    assert len(shares) == len(edges) + 2
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
