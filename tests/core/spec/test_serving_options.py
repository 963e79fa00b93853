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


def test_a_model_without_an_endpoint_may_be_written_in_two_ways():
    """`deployment: null` is the same model, and pays nothing for serving."""
    assert make_spec(deployment=None) == make_spec(deployment={"endpoint": False})
    planned = make_plan(spec=make_spec(deployment=None), prices=load_prices(settings.include_path()))
    assert planned.endpoint_usd_per_hour is None
    assert plan.explain(planned)[-1] == "no endpoint: nothing is paid for serving"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"machine": "n1-standard-4"}, "machine is of an endpoint, and endpoint is false: remove it"),
        (
            {"staging": True, "key_input": True},
            "key_input, staging are of an endpoint, and endpoint is false: remove them",
        ),
        ({"canary": {"percent": [5, 100], "bake_minutes": 5}}, "canary is of an endpoint"),
        ({"min_replicas": 2, "max_replicas": 2}, "min_replicas, max_replicas are of an endpoint"),
    ],
    ids=["machine", "two", "ramp", "replicas"],
)
def test_what_an_endpoint_alone_has_is_refused_without_one(values, words):
    with pytest.raises(ValueError, match=words):
        make_spec(deployment={"endpoint": False} | values)


def test_a_table_of_request_keys_is_refused_without_an_endpoint():
    """Each row that is scored has its key."""
    limits = {"performance": {"request_keys": "a.b"}}
    assert make_spec(monitoring=limits).monitoring.performance.request_keys == "a.b"
    with pytest.raises(ValueError, match="request_keys is of an endpoint's requests"):
        make_spec(monitoring=limits, deployment=None)


def test_a_stored_plan_of_a_model_without_an_endpoint_is_read_again():
    """With all of its keys, as documents have them."""
    planned = make_plan(spec=make_spec(deployment=None))
    assert type(planned).parse(planned.to_bytes()).spec.deployment == planned.spec.deployment
