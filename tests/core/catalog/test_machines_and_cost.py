"""Machines and what they cost."""

from __future__ import annotations

import json
import re

import pytest

from retraining.core import settings
from retraining.core.catalog import cost
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.catalog.machines import all_machines, machines
from retraining.core.documents.plan import Machines, Pool
from retraining.core.errors import PlanError, SettingsError, SpecError
from retraining.core.spec.cluster import TIERS, Accelerator
from tests.support.refusals import refuses
from tests.support.small_model import make_spec


@pytest.fixture
def prices():
    found = cost.load_prices(settings.include_path())
    assert found is not None
    return found


def estimate(spec, prices, region):
    return cost.estimate(spec, all_machines(spec), prices, region)


def job_cost(spec, task, *rest):
    return cost.job_cost(machines(spec, task), *rest)


IMAGE = {"image": "host/own-trainer:1"}


def with_cluster(**cluster):
    return make_spec(training={"model": "dense", "cluster": cluster, "runtime": IMAGE})


def test_a_tier_is_machines_by_name():
    assert [(pool.machine, pool.count) for pool in machines(with_cluster(tier="STANDARD_1"), "train").pools] == [
        ("n1-standard-8", 1),
        ("n1-standard-8", 4),
        ("n1-standard-4", 3),
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
        assert estimate(with_cluster(tier=tier), prices, "us-central1") is not None


def test_a_known_machine_costs_its_list_price(prices):
    # n1-standard-4 is listed at 0.2185 USD an hour; 100 GB of SSD add 0.0268.
    assert job_cost(make_spec(), "export", 3600, 0, prices, "us-central1") == pytest.approx(0.2185 + 0.0268, abs=2e-4)


def test_the_estimate_is_every_job_until_its_timeout(prices):
    spec = with_cluster(tier="BASIC", timeout_hours=3)
    found = estimate(spec, prices, "us-central1")
    assert found is not None
    rate = found.per_hour
    assert found.at_most == pytest.approx(2 * rate["export"] + 3 * rate["train"] + 2 * rate["evaluate"], abs=0.01)


def test_the_bound_of_a_spot_job_is_its_price_on_demand(prices):
    on_demand, spot = (estimate(with_cluster(tier="BASIC", spot=spot), prices, "us-central1") for spot in (False, True))
    assert spot == on_demand


def test_spot_is_cheaper_but_its_disk_is_not(prices):
    full, mixed, spot = (
        job_cost(with_cluster(tier="BASIC", spot=True), "train", 3600, seconds, prices, "us-central1")
        for seconds in (0, 1800, 3600)
    )
    assert full is not None
    assert spot is not None
    assert prices.spot_factor * full < spot < full
    assert mixed == pytest.approx((full + spot) / 2, abs=1e-4)


def test_a_family_may_have_a_spot_price_of_its_own(prices):
    """Of e2 more is left than of the others; its disk is not cheaper."""
    e2 = with_cluster(tier="CUSTOM", chief={"machine": "e2-standard-4"}, spot=True)
    full, spot = (job_cost(e2, "train", 3600, seconds, prices, "us-central1") for seconds in (0, 3600))
    rate = prices.regions["us-central1"].machines["e2"]
    machine = (4 * rate.vcpu_hour + 16 * rate.memory_gb_hour) * (1 + prices.surcharge)
    assert prices.spot_factors["e2"] > prices.spot_factor
    assert full - spot == pytest.approx((1 - prices.spot_factors["e2"]) * machine, abs=2e-4)


def test_the_memory_of_c3d_is_that_of_its_machines(prices):
    """Compute Engine's prices on 2025-03-06, with Vertex AI's surcharge."""
    listed = {"c3d-highcpu-360": 13.445652, "c3d-highmem-16": 0.97976, "c3d-highcpu-90": 3.361413}
    for machine, usd in listed.items():
        assert cost.machine_hourly(prices, machine, "us-central1") == pytest.approx(usd * 1.15, abs=1e-4)


def test_each_type_of_disk_has_its_own_price(prices):
    # 730 GB for an hour are a GB for a month.
    ssd, standard = (
        job_cost(with_cluster(disk_gb=730, disk_type=kind), "train", 3600, 0, prices, "us-central1")
        for kind in ("pd-ssd", "pd-standard")
    )
    assert ssd - standard == pytest.approx(0.1955 - 0.046, abs=1e-4)


@pytest.mark.parametrize("machine", ["m9-standard-4", "n1-odd-4", "a2-oddgpu-1g"])
def test_an_unknown_price_is_none_and_not_zero(prices, machine):
    spec = with_cluster(tier="CUSTOM", chief={"machine": machine})
    assert estimate(spec, prices, "us-central1") is None
    assert job_cost(spec, "train", 60, 0, prices, "us-central1") is None


def test_a_region_that_the_list_does_not_have_has_no_price(prices):
    assert estimate(make_spec(), prices, "europe-west99") is None
    assert cost.query_cost(1, prices, "europe-west99") is None


NUMBERS = ("1", "2", "4", "8", "16", "22", "30", "32", "40", "48", "56", "60", "64", "80", "88", "96", "112", "128")
FAMILIES = ("n1", "n2", "n2d", "e2", "c2", "c2d", "c3", "m1", "a2", "a3", "g2", "ct5lp", "ct6e")
CLASSES = (
    "standard",
    "highmem",
    "highcpu",
    "ultramem",
    "megamem",
    "highgpu",
    "megagpu",
    "ultragpu",
    "edgegpu",
    "hightpu",
)


def catalog_machines(patterns):
    """Return all machine types that the table's patterns take, of the sizes that there are."""
    names = (f"{name}-{size}-{number}" for name in FAMILIES for size in CLASSES for number in NUMBERS)
    written = [name + unit for name in names for unit in ("", "g", "t")]
    return ["cloud-tpu"] + [name for name in written if any(re.fullmatch(pattern, name) for pattern in patterns)]


def test_every_machine_of_the_catalog_has_in_every_region_a_price_or_is_named_as_unknown(prices):
    """Never zero, and never a price without all of its parts."""
    hardware = load_hardware(settings.include_path())
    known = 0
    for machine in catalog_machines(hardware.machines):
        accelerators = [
            Accelerator(type=name, count=counts[0])
            for name, places in hardware.accelerators.items()
            for pattern, counts in places.counts.items()
            if re.fullmatch(pattern, machine)
        ]
        for accelerator in accelerators or [None]:
            pool = Pool(machine=machine, count=1, accelerator=accelerator)
            of_job = Machines(pools=(pool,), spot=False, timeout_s=3600)
            for region in hardware.regions:
                price = cost.job_cost(of_job, 3600, 0, prices, region)
                unknown = cost.unknown_prices({"train": of_job}, prices, region)
                assert (price is None) == bool(unknown)
                assert price is None or price > 0.02
                known += price is not None
    assert known > 10_000


def test_every_machine_of_an_endpoint_has_in_every_region_a_price_or_none(prices):
    hardware = load_hardware(settings.include_path())
    for region in hardware.regions:
        for machine in catalog_machines(hardware.serving_machines)[1:]:
            price = cost.machine_hourly(prices, machine, region)
            assert price is None or price > 0.02
        assert cost.machine_hourly(prices, "e2-standard-4", region) is not None


def test_the_list_has_every_region_of_the_catalog_and_says_where_its_figures_are_from(prices):
    assert set(prices.regions) == set(load_hardware(settings.include_path()).regions)
    for source in prices.sources:
        assert source.address.startswith("https://")
    assert prices.effective in {source.taken for source in prices.sources}


@pytest.mark.parametrize(
    ("machine", "region", "usd"),
    [
        # Vertex AI's own: https://cloud.google.com/vertex-ai/pricing, and of Singapore its SKUs.
        pytest.param({"machine": "n1-standard-4"}, "us-central1", 0.21849885, id="n1"),
        pytest.param({"machine": "n1-standard-4"}, "asia-southeast1", 0.234386 * 1.15, id="n1-singapore"),
        pytest.param({"machine": "e2-standard-4"}, "asia-southeast1", 0.165332 * 1.15, id="e2-singapore"),
        pytest.param(
            {"machine": "cloud-tpu", "accelerator": {"type": "TPU_V2", "count": 8}}, "us-central1", 5.175, id="tpu-v2"
        ),
        pytest.param(
            {"machine": "cloud-tpu", "accelerator": {"type": "TPU_V2", "count": 32}}, "us-central1", 27.6, id="tpu-pod"
        ),
        pytest.param({"machine": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}, "us-west1", 5.52, id="tpu-v5e"),
        pytest.param({"machine": "ct5lp-hightpu-4t", "tpu_topology": "4x4"}, "us-west1", 22.08, id="tpu-v5e-slice"),
        pytest.param(
            {"machine": "a2-highgpu-2g", "accelerator": {"type": "NVIDIA_TESLA_A100", "count": 2}},
            "europe-west4",
            2 * 3.747972 * 1.15,
            id="gpus-in-the-machines-price",
        ),
        pytest.param({"machine": "n2-highmem-128"}, "us-central1", (128 * 0.031611 + 864 * 0.004237) * 1.15, id="less"),
    ],
)
def test_a_machines_price_is_that_of_its_parts_and_the_surcharge(prices, machine, region, usd):
    spec = with_cluster(tier="CUSTOM", chief=machine)
    disk = 100 * prices.regions[region].disk_gb_month["pd-ssd"] / 730 * 1.15
    assert job_cost(spec, "train", 3600, 0, prices, region) == pytest.approx(usd + disk, abs=2e-4)


def test_a_query_costs_at_least_ten_megabytes(prices):
    assert cost.query_cost(2**40, prices, "us-central1") == 6.25
    assert cost.query_cost(0, prices, "us-central1") == cost.query_cost(10_000_000, prices, "us-central1") > 0


def test_the_newest_price_list_counts_and_a_broken_one_is_named(tmp_path):
    shipped = cost.load_prices(tmp_path)
    assert shipped is not None
    folder = tmp_path / "prices"
    folder.mkdir()
    source = max(settings.data_path("prices").glob("*.json"))
    values = json.loads(source.read_text(encoding="utf-8"))
    (folder / "2025-01-01.json").write_text(json.dumps(values), encoding="utf-8")
    assert cost.load_prices(tmp_path) == shipped  # a team's older list is none
    (folder / source.name).write_text(json.dumps({**values, "note": "ours"}), encoding="utf-8")
    ours = cost.load_prices(tmp_path)
    assert ours is not None
    assert ours.note == "ours"
    (folder / "2026-01-01.json").write_text(json.dumps({**values, "effective": "2026-01-01"}), encoding="utf-8")
    found = cost.load_prices(tmp_path)
    assert found is not None
    assert str(found.effective) == "2026-01-01"
    (folder / "2027-01-01.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"2027-01-01\.json"):
        cost.load_prices(tmp_path)


CPU, SERVERS = {"machine": "n1-standard-8"}, {"machine": "n1-standard-4", "count": 1}
T4 = {"type": "NVIDIA_TESLA_T4"}


def test_roles_keep_their_places_when_one_between_is_empty():
    """Vertex AI tells roles by the pool's place: an evaluator without parameter servers is the fourth all the same."""
    found = machines(
        with_cluster(tier="CUSTOM", chief=CPU, workers={**CPU, "count": 2}, evaluator=CPU, disk_type="pd-standard"),
        "train",
    )
    assert [pool.count for pool in found.pools] == [1, 2, 0, 1]
    assert found.pools[3].disk_type == "pd-standard"


@pytest.mark.parametrize(
    ("cluster", "strategy", "words"),
    [
        pytest.param({"tier": "CUSTOM"}, "auto", "needs a chief", id="no-chief"),
        pytest.param({"tier": "BASIC", "evaluator": CPU}, "auto", "fixes the machines", id="tier-and-role"),
        pytest.param(
            {"tier": "CUSTOM", "chief": CPU, "parameter_servers": SERVERS}, "auto", "add workers", id="servers-alone"
        ),
        pytest.param(
            {"tier": "CUSTOM", "chief": CPU, "workers": {**CPU, "count": 1}, "parameter_servers": SERVERS},
            "mirrored",
            "strategy mirrored uses one machine",
            id="servers-with-mirrored",
        ),
        pytest.param({"tier": "STANDARD_1"}, "multi_worker", "remove parameter_servers", id="lockstep-with-servers"),
        pytest.param({"tier": "BASIC"}, "multi_worker", "needs workers", id="lockstep-alone"),
        pytest.param({"tier": "BASIC"}, "tpu", "name a TPU", id="tpu-without-tpu"),
        pytest.param({"tier": "BASIC_TPU"}, "mirrored", "use strategy tpu or auto", id="mirrored-on-tpu"),
        pytest.param(
            {"tier": "CUSTOM", "chief": {"machine": "cloud-tpu", "accelerator": T4}},
            "auto",
            "needs a TPU as its accelerator",
            id="gpu-on-tpu",
        ),
        pytest.param(
            {"tier": "CUSTOM", "chief": {"machine": "ct5lp-hightpu-4t", "accelerator": T4, "tpu_topology": "2x2"}},
            "auto",
            "has its TPU built in",
            id="gpu-in-tpu-machine",
        ),
        pytest.param(
            {"tier": "CUSTOM", "chief": {"machine": "ct5lp-hightpu-4t"}}, "auto", "tpu_topology", id="no-topology"
        ),
        pytest.param(
            {"tier": "CUSTOM", "chief": CPU, "workers": {**CPU, "accelerator": T4, "count": 1}},
            "auto",
            "give both the same accelerator",
            id="unequal-workers",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_way_out(cluster, strategy, words):
    with pytest.raises(ValueError, match=words):
        make_spec(training={"model": "dense", "cluster": cluster, "strategy": strategy, "runtime": IMAGE})


@pytest.mark.parametrize(
    ("chief", "region", "words"),
    [
        pytest.param({"machine": "n1-highcpu-8"}, None, "n1-highcpu-8", id="machine"),
        pytest.param({"machine": "e2-standard-8", "accelerator": T4}, None, "machine like n1", id="pair"),
        pytest.param({"machine": "n1-standard-8", "accelerator": T4}, "us-west3", "us-central1", id="region"),
        pytest.param(
            {"machine": "n1-standard-8", "accelerator": {"type": "NVIDIA_TESLA_T5"}}, None, "NVIDIA_TESLA_T4", id="type"
        ),
        pytest.param(
            {"machine": "n1-standard-4", "accelerator": {**T4, "count": 16}}, None, "counts 1, 2, 4", id="too-many"
        ),
        pytest.param(
            {"machine": "n1-standard-32", "accelerator": {**T4, "count": 1}}, None, "counts 2, 4", id="too-few"
        ),
        pytest.param({"machine": "a2-highgpu-2g"}, None, "type: NVIDIA_TESLA_A100, count: 2", id="built-in"),
        pytest.param(
            {"machine": "cloud-tpu", "accelerator": {"type": "TPU_V3"}}, None, "1 TPU_V3 .* counts 8, 32", id="cores"
        ),
    ],
)
def test_machines_that_do_not_exist_are_refused_before_the_run(chief, region, words):
    hardware = load_hardware(settings.include_path())
    with pytest.raises(SpecError, match=words):
        require_machines(with_cluster(tier="CUSTOM", chief=chief), hardware, region)


def test_a_reservation_in_another_region_is_refused():
    hardware = load_hardware(settings.include_path())
    spec = with_cluster(reservation="projects/p/zones/us-east1-b/reservations/night")
    require_machines(spec, hardware, "us-east1")
    require_machines(spec, hardware)
    with refuses(
        SpecError, where="training.cluster.reservation", found="us-east1-b", expected="in a zone of us-central1"
    ):
        require_machines(spec, hardware, "us-central1")


def test_every_tier_exists_in_the_local_cloud_s_region():
    hardware = load_hardware(settings.include_path())
    for tier in TIERS:
        require_machines(with_cluster(tier=tier), hardware, "us-central1")


@pytest.mark.parametrize("machine", ["n1-standart-2", "cloud-tpu"])
def test_a_machine_on_which_no_model_answers_is_refused_by_its_place(machine):
    spec = make_spec(deployment={"machine": machine})
    with refuses(SpecError, where="late.yaml, deployment.machine", found=machine, way_out="n1-standard-2"):
        require_machines(spec, load_hardware(settings.include_path()), "us-central1")
    require_machines(make_spec(), load_hardware(settings.include_path()), "us-central1")


def test_a_run_over_its_budget_is_refused_and_the_message_has_the_sum(prices):
    spec = make_spec(budget_usd=1.0, training={"model": "dense", "cluster": {"tier": "PREMIUM_1"}})
    with refuses(PlanError, found="USD", way_out="over_budget"):
        cost.require_budget(spec, estimate(spec, prices, "us-central1"))
    cost.require_budget(make_spec(budget_usd=1000.0), estimate(make_spec(), prices, "us-central1"))


def test_a_budget_without_a_known_price_is_refused_by_name_and_no_budget_refuses_nothing():
    with refuses(PlanError, where="late, budget_usd", found="m9-x-4", way_out=("budget_usd", "over_budget")):
        cost.require_budget(make_spec(budget_usd=10.0), None, ["m9-x-4"])
    cost.require_budget(make_spec(), None, ["m9-x-4"])
