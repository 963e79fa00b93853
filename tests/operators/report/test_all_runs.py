"""The page of all runs on storage: two tasks at once lose no run, one broken run hides no other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import Plan
from retraining.core.errors import ConflictError
from retraining.core.naming import storage
from retraining.core.report.all_runs import SHOWN
from retraining.operators.report import all_runs
from retraining.operators.report.all_runs import write_all_runs
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import here
from tests.support.refusals import refuses
from tests.support.scenes.deployment import example

PLAN = here(example("plan"))
PAGE = "gs://bucket/flight_delays/runs.html"


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud without runs."""
    return FakeCloud()


def store_run(cloud: FakeCloud, day: int, **changes: Any) -> Plan:
    """Store the plan of a run, and give it."""
    key = f"201311{day:02d}t030000z-0a1b2c3d4e5f"
    uri = storage.run_uri("bucket", "flight_delays", key)
    document = {**PLAN, "run_key": key, "run_uri": uri, "as_of": f"2013-11-{day:02d}T03:00:00Z"}
    cloud.artifacts.objects[f"{uri}/plan.json"] = json.dumps({**document, **changes}).encode()
    return Plan.parse(json.dumps(document))


def page(cloud: FakeCloud) -> str:
    return cloud.artifacts.objects[PAGE].decode()


def test_a_run_that_is_reported_at_the_same_time_is_not_lost(cloud, monkeypatch) -> None:
    """Another task writes its page between this one's reading and writing: this one reads again."""
    store_run(cloud, 19)
    render, other = all_runs.render_stored_runs, []

    def render_slowly(*arguments: Any) -> str:
        mine_alone = render(*arguments)
        if not other:
            other.append(store_run(cloud, 20))
            write_all_runs(cloud.artifacts, "bucket", "flight_delays")
        return mine_alone

    monkeypatch.setattr(all_runs, "render_stored_runs", render_slowly)
    assert write_all_runs(cloud.artifacts, "bucket", "flight_delays") == PAGE
    assert all(f"2013-11-{day} 03:00" in page(cloud) for day in (19, 20))


def test_whoever_is_never_fast_enough_says_so(cloud, monkeypatch) -> None:
    """And is tried again by Airflow."""
    store_run(cloud, 19)
    monkeypatch.setattr(cloud.artifacts, "write_if", lambda *_, **__: None)
    with refuses(ConflictError, where="runs.html", found="10 times"):
        write_all_runs(cloud.artifacts, "bucket", "flight_delays")


def test_one_broken_run_hides_no_other(cloud) -> None:
    """Its message stands below."""
    store_run(cloud, 18, mode="sideways")
    store_run(cloud, 19)
    write_all_runs(cloud.artifacts, "bucket", "flight_delays")
    assert "2013-11-19 03:00" in page(cloud)
    assert "20131118t030000z-0a1b2c3d4e5f</code>: plan.json: mode" in page(cloud)


def test_so_many_runs_are_read_and_no_more(cloud, monkeypatch) -> None:
    """The others are named."""
    plans = [store_run(cloud, day) for day in range(1, 31)]
    older = "20121001t030000z-0a1b2c3d4e5f"
    cloud.artifacts.objects[f"{storage.run_uri('bucket', 'flight_delays', older)}/plan.json"] = b"never read"
    assert len(plans) == SHOWN
    write_all_runs(cloud.artifacts, "bucket", "flight_delays")
    assert "30 of 31 runs" in page(cloud)
    assert older in page(cloud).split("1 older runs")[1]
