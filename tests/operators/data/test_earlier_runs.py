"""Which earlier runs a run's data is compared with."""

from __future__ import annotations

import pytest

from retraining.core.documents import Checks, Plan, Snapshot, Statistics
from retraining.core.naming import storage
from retraining.operators.data.earlier_runs import read_history
from tests.support.contracts import EXAMPLES
from tests.support.fakes.bucket import FakeBucket

PASSED, BLOCKED = ((EXAMPLES / f"checks__{name}.json").read_bytes() for name in ("passed", "blocked"))
SNAPSHOT = (EXAMPLES / "snapshot__three_new_spans.json").read_bytes()
STATISTICS = (EXAMPLES / "statistics__two_features.json").read_bytes()


@pytest.fixture
def plan() -> Plan:
    """Of the 20th, compared with five runs."""
    return Plan.parse((EXAMPLES / "plan__scheduled.json").read_bytes())


@pytest.fixture
def artifacts() -> FakeBucket:
    """An empty bucket."""
    return FakeBucket()


def store(artifacts: FakeBucket, plan: Plan, day: int, checks: bytes = PASSED, attempt: str = "0" * 12) -> str:
    """A run of a day of November; its folder."""
    folder = storage.run_uri(plan.bucket, plan.model, f"201311{day:02}t030000z-{attempt}")
    for kind, data in ((Checks, checks), (Snapshot, SNAPSHOT), (Statistics, STATISTICS)):
        artifacts.objects[storage.document_uri(folder, kind.kind_name())] = data
    artifacts.objects[f"{folder}/training/model/saved_model.pb"] = b""
    return folder


def test_the_newest_passed_runs_before_this_one_are_taken(artifacts, plan) -> None:
    """Newest first, as many as the spec says; columns and statistics of the newest; not of this run's own time."""
    folders = [store(artifacts, plan, day) for day in range(10, 20)]
    store(artifacts, plan, 20, attempt="f" * 12)
    store(artifacts, plan, 21)
    found = read_history(artifacts, plan)
    assert found.uris == tuple(f"{folder}/checks.json" for folder in reversed(folders[-5:]))
    assert (found.snapshot_uri, found.statistics_uri) == (
        f"{folders[-1]}/snapshot.json",
        f"{folders[-1]}/statistics.json",
    )
    assert [item.uri for item in found.compared_with] == [*found.uris, found.snapshot_uri, found.statistics_uri]


def test_stopped_runs_are_looked_through_however_many(artifacts, plan) -> None:
    """More of them than are read at a time."""
    good = store(artifacts, plan, 1)
    for attempt in range(40):
        store(artifacts, plan, 2, BLOCKED, attempt=f"{attempt:012x}")
    assert read_history(artifacts, plan).uris == (f"{good}/checks.json",)


def test_what_is_gone_or_cannot_be_read_is_passed_over(artifacts, plan, caplog) -> None:
    """Another release's verdict, statistics that were deleted, a run that never came to its checks."""
    good = store(artifacts, plan, 17)
    store(artifacts, plan, 18, PASSED.replace(b'"passed": true', b'"passed": "yes"'))
    del artifacts.objects[f"{store(artifacts, plan, 19)}/checks.json"]
    del artifacts.objects[f"{good}/statistics.json"]
    found = read_history(artifacts, plan)
    assert found.uris == (f"{good}/checks.json",)
    assert found.snapshot is not None
    assert (found.statistics, found.statistics_uri) == (None, "")
    assert "not compared with: gs://" in caplog.text


def test_the_first_run_has_no_history(artifacts, plan) -> None:
    """Also when there are later ones."""
    store(artifacts, plan, 21)
    assert read_history(artifacts, plan).compared_with == ()
