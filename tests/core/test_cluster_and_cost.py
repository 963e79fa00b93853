"""Machines and what they cost."""

from __future__ import annotations

import json

import pytest
from small_model import make_spec

from retraining.core import cost, settings
from retraining.core.cluster import TIERS, machines
from retraining.core.errors import SettingsError


@pytest.fixture
def prices():
    found = cost.load_prices(settings.include_path())
    assert found is not None
    return found


def with_cluster(**cluster):
    return make_spec(training={"model": "dense", "cluster": cluster})


def test_a_tier_is_machines_by_name():
    assert [(pool.machine, pool.count) for pool in machines(with_cluster(tier="STANDARD_1"), "train").pools] == [
        ("n1-highcpu-8", 1),
        ("n1-highcpu-8", 4),
    ]
    gpu = machines(with_cluster(tier="BASIC_GPU"), "train").pools[0].accelerator
    assert gpu is not None
    assert gpu.type == "NVIDIA_TESLA_T4"


def test_custom_machines_are_taken_as_they_stand():
    chief = {"machine": "n1-standard-8"}
    found = machines(
        with_cluster(tier="CUSTOM", chief=chief, workers={**chief, "count": 2}, spot=True, timeout_hours=0.5), "train"
    )
    assert [pool.count for pool in found.pools] == [1, 2]
    assert found.spot
    assert found.timeout_s == 1800
    alone = machines(with_cluster(tier="CUSTOM", chief=chief, workers={**chief, "count": 0}), "train")
    assert len(alone.pools) == 1


def test_export_and_evaluation_have_one_machine_that_is_not_preempted():
    for task in ("export", "evaluate"):
        found = machines(with_cluster(tier="PREMIUM_1", spot=True), task)
        assert (len(found.pools), found.pools[0].count, found.spot) == (1, 1, False)


def test_every_tier_has_a_price(prices):
    for tier in TIERS:
        assert cost.estimate(with_cluster(tier=tier), prices, "us-central1") is not None


def test_a_known_machine_costs_its_list_price(prices):
    # n1-standard-4 is listed at 0.2185 USD an hour; 100 GB of SSD add 0.0268.
    assert cost.job_cost(make_spec(), "export", 3600, prices, "us-central1") == pytest.approx(0.2185 + 0.0268, abs=2e-4)


def test_the_estimate_is_every_job_until_its_timeout(prices):
    spec = with_cluster(tier="BASIC", timeout_hours=3)
    found = cost.estimate(spec, prices, "us-central1")
    assert found is not None
    rate = found.per_hour
    assert found.at_most == pytest.approx(2 * rate["export"] + 3 * rate["train"] + 2 * rate["evaluate"], abs=0.01)


def test_spot_is_cheaper_but_its_disk_is_not(prices):
    full = cost.job_cost(with_cluster(tier="BASIC"), "train", 3600, prices, "us-central1")
    spot = cost.job_cost(with_cluster(tier="BASIC", spot=True), "train", 3600, prices, "us-central1")
    assert full is not None
    assert spot is not None
    assert prices.spot_factor * full < spot < full


@pytest.mark.parametrize("machine", ["m9-standard-4", "n1-odd-4", "a2-highgpu-1g"])
def test_an_unknown_price_is_none_and_not_zero(prices, machine):
    spec = with_cluster(tier="CUSTOM", chief={"machine": machine})
    assert cost.estimate(spec, prices, "us-central1") is None
    assert cost.job_cost(spec, "train", 60, prices, "us-central1") is None


def test_another_region_has_no_price(prices):
    assert cost.estimate(make_spec(), prices, "europe-west1") is None
    assert cost.query_cost(1, prices, "europe-west1") is None


def test_a_query_costs_at_least_ten_megabytes(prices):
    assert cost.query_cost(2**40, prices, "us-central1") == 6.25
    assert cost.query_cost(0, prices, "us-central1") == cost.query_cost(10_000_000, prices, "us-central1") > 0


def test_the_newest_price_list_counts_and_a_broken_one_is_named(tmp_path):
    assert cost.load_prices(tmp_path) is None
    folder = tmp_path / "prices"
    folder.mkdir()
    source = sorted((settings.include_path() / "prices").glob("*.json"))[-1]
    values = json.loads(source.read_text(encoding="utf-8"))
    (folder / "2025-01-01.json").write_text(json.dumps(values), encoding="utf-8")
    (folder / "2026-01-01.json").write_text(json.dumps({**values, "effective": "2026-01-01"}), encoding="utf-8")
    found = cost.load_prices(tmp_path)
    assert found is not None
    assert str(found.effective) == "2026-01-01"
    (folder / "2027-01-01.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"2027-01-01\.json"):
        cost.load_prices(tmp_path)
