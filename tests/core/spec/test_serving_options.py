"""Accelerators, kind and log of an endpoint: what is refused, and what it costs."""

from __future__ import annotations

import pytest

from retraining.core import settings
from retraining.core.catalog.cost import load_prices, machine_hourly
from retraining.core.catalog.hardware import load_hardware, require_machines
from retraining.core.errors import SpecError
from retraining.core.planning import plan
from retraining.core.spec.cluster import Accelerator
from tests.support.small_model import make_plan, make_spec

GPU = {"type": "NVIDIA_TESLA_T4", "count": 1}
CONTAINER = {"image": "us-docker.pkg.dev/p/r/gpu:1", "predict_route": "/p", "health_route": "/h"}
PREBUILT = "us-docker.pkg.dev/vertex-ai/prediction/tf2-{}.2-15:latest"


def deployment(**values):
    return make_spec(deployment={"machine": "n1-standard-4", "accelerator": GPU, "container": CONTAINER} | values)


@pytest.mark.parametrize("container", [None, {"image": PREBUILT.format("cpu")}], ids=["default", "prebuilt"])
def test_accelerators_that_nothing_would_use_are_refused(container):
    with pytest.raises(ValueError, match="accelerator would be paid"):
        deployment(container=container)


def test_a_container_for_gpus_may_be_one_of_vertex_ai():
    assert deployment(container={"image": PREBUILT.format("gpu")}).deployment.accelerator == Accelerator(**GPU)


@pytest.mark.parametrize("share", [0, 1.01])
def test_a_share_of_the_log_is_above_0_and_at_most_1(share):
    with pytest.raises(ValueError, match="request_log_sampling"):
        make_spec(deployment={"request_log_sampling": share})


@pytest.mark.parametrize(
    ("values", "region", "words"),
    [
        ({"machine": "e2-standard-4"}, None, "NVIDIA_TESLA_T4 in machine e2-standard-4"),
        ({"accelerator": GPU | {"count": 8}}, None, "8 NVIDIA_TESLA_T4 in machine n1-standard-4"),
        ({"accelerator": {"type": "NVIDIA_T4"}}, None, "accelerator 'NVIDIA_T4'"),
        ({}, "us-west3", "NVIDIA_TESLA_T4 in us-west3"),
    ],
    ids=["machine", "count", "name", "region"],
)
def test_accelerators_are_held_to_the_table_of_machines(values, region, words):
    hardware = load_hardware(settings.include_path())
    require_machines(deployment(), hardware, "us-central1")
    with pytest.raises(SpecError) as refused:
        require_machines(deployment(**values), hardware, region)
    assert str(refused.value).startswith(f"late.yaml, deployment.accelerator: {words}")


def test_the_plan_has_the_price_by_hour_and_month():
    prices = load_prices(settings.include_path())
    found = make_plan(spec=deployment(min_replicas=2, max_replicas=2), prices=prices)
    alone = machine_hourly(prices, "n1-standard-4", "us-central1")
    hour = found.endpoint_usd_per_hour
    assert hour == pytest.approx(alone + prices.regions["us-central1"].accelerators[GPU["type"]] * 1.15, abs=2e-4)
    line = plan.explain(found)[-1]
    assert "n1-standard-4 with 1 NVIDIA_TESLA_T4" in line
    assert f"at least 2 of them ({hour * 2 * 730:.2f} USD a month)" in line
