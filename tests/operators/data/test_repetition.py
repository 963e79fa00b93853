"""A run that would come out as an earlier one did is told so, by the run that it would repeat."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retraining.core.documents import KINDS, Checks, Decision, Document, Plan, Snapshot
from retraining.core.naming import storage
from retraining.operators.data.earlier_runs import find_repetition
from tests.support import small_study
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.small_model import make_plan, make_spec, spec_values

FIRST, SECOND, THIRD = (f"20131120t{hour:02}0000z-000000000000" for hour in (3, 9, 15))


def example(name: str) -> dict[str, Any]:
    """A document's values."""
    kind = name.split("__")[0]
    return KINDS[kind].parse((EXAMPLES / f"{name}.json").read_bytes()).to_json()


class Runs:
    """Runs of one model, in order, and who is champion."""

    def __init__(self) -> None:
        self.cloud = FakeCloud()
        self.cloud.registry.model = "late"

    def add(self, run_key: str, verdict: str | None = None, against: str | None = None, **plan: Any) -> Plan:
        """A run of the same rows, up to a decision or without one."""
        planned = make_plan(**plan).model_copy(update={"run_key": run_key})
        folder = storage.run_uri(planned.bucket, planned.model, run_key)
        same = {"model": planned.model, "run_key": run_key}
        self.put(folder, planned)
        self.put(folder, Snapshot.parse(json.dumps(example("snapshot__three_new_spans") | same)))
        self.put(folder, Checks.parse(json.dumps(example("checks__passed") | same)))
        if verdict:
            met = {"version_id": "1", "run_key": against, "as_of": "2013-11-20T03:00:00Z"} if against else None
            values = example("decision__promote") | same | {"verdict": verdict, "mode": "live", "champion": met}
            self.put(folder, Decision.parse(json.dumps(values)))
        return planned

    def put(self, folder: str, document: Document) -> None:
        """Store a document."""
        uri = storage.document_uri(folder, document.kind_name())
        self.cloud.artifacts.objects[uri] = document.to_bytes()

    def champion(self, run_key: str) -> None:
        """Make a run's version the champion."""
        self.cloud.registry.add(run_key, "champion")

    def found(self, plan: Plan, change: Callable[[Snapshot], Snapshot] = lambda taken: taken) -> str | None:
        """What the newest run would repeat: its run's key."""
        folder = storage.run_uri(plan.bucket, plan.model, plan.run_key)
        read = {
            kind: kind.parse(self.cloud.artifacts.objects[storage.document_uri(folder, kind.kind_name())])
            for kind in (Snapshot, Checks)
        }
        found = find_repetition(self.cloud, plan, change(read[Snapshot]), read[Checks])
        return found.run_key if found else None


@pytest.fixture
def runs() -> Runs:
    """A champion, of the first run."""
    made = Runs()
    made.add(FIRST, "promote")
    made.champion(FIRST)
    return made


def test_the_champions_run_is_repeated_by_one_of_the_same_rows(runs: Runs) -> None:
    """Whatever starts it, whenever; the sentence names the version and the way out."""
    again = runs.add(SECOND)
    assert runs.found(again) == FIRST
    assert runs.found(runs.add(FIRST)) is None  # itself, once more


def test_another_row_is_something_new(runs: Runs) -> None:
    """One day of other content."""
    again = runs.add(SECOND)

    def changed(taken: Snapshot) -> Snapshot:
        first = taken.spans[0].model_copy(update={"fingerprint": "1"})
        return taken.model_copy(update={"spans": (first, *taken.spans[1:])})

    assert runs.found(again, changed) is None


@pytest.mark.parametrize(
    "sections",
    [
        {"training": {"model": "wide_deep", "seed": 9}},
        {"evaluation": {"metric": "auc", "min_value": 0.7}},
        {"deployment": {"machine": "n1-standard-4"}},
        {"data": spec_values()["data"] | {"label_lag_days": 2}},
    ],
    ids=["seed", "floor", "machine", "lag"],
)
def test_another_way_is_something_new(runs: Runs, sections: dict[str, Any]) -> None:
    """Of training, judging or serving."""
    assert runs.found(runs.add(SECOND, spec=make_spec(**sections))) is None


@pytest.mark.parametrize(
    "sections", [{"monitoring": {"window_hours": 48}}, {"schedule": "0 5 * * *"}, {"owner": "ada"}]
)
def test_what_changes_no_result_is_nothing_new(runs: Runs, sections: dict[str, Any]) -> None:
    """Who is told, when it runs, what is watched."""
    assert runs.found(runs.add(SECOND, spec=make_spec(**sections))) == FIRST


@pytest.mark.parametrize(
    "values",
    [
        {"attempt": "manual__1"},
        {"mode": "backfill"},
        {"trainer_image": "us-docker.pkg.dev/p/r/trainer:2"},
        {"serving_image": "us-docker.pkg.dev/p/r/serving:2"},
        {"deploy": False},
    ],
    ids=["forced", "backfill", "trainer", "serving", "not deployed"],
)
def test_who_asks_for_another_one_gets_it(runs: Runs, values: dict[str, Any]) -> None:
    """By Force, as a backfill, or by another image."""
    assert runs.found(runs.add(SECOND).model_copy(update=values)) is None


def test_a_search_and_a_warm_start_come_out_otherwise(runs: Runs) -> None:
    """A study goes on where the last one ended; a training that begins with the champion goes further."""
    tuned = make_spec(tuning=small_study.SECTION)
    warm = make_spec(training={"model": "wide_deep", "initial": "champion"})
    for spec in (tuned, warm):
        both = Runs()
        both.add(FIRST, "promote", spec=spec)
        both.champion(FIRST)
        assert both.found(both.add(SECOND, spec=spec)) is None


def test_what_was_rejected_by_this_champion_is_not_tried_again(runs: Runs) -> None:
    """The newest decision counts; once another is champion it is judged anew."""
    other = make_spec(training={"model": "wide_deep", "seed": 9})
    runs.add(SECOND, "reject", against=FIRST, spec=other)
    third = runs.add(THIRD, spec=other)
    assert runs.found(third) == SECOND
    runs.add(SECOND, "reject", against="20131101t030000z-000000000000", spec=other)
    assert runs.found(third) is None
    runs.add(SECOND, "promote", against=FIRST, spec=other)
    assert runs.found(third) is None


def test_without_a_champion_it_is_trained(runs: Runs) -> None:
    """Nothing serves yet."""
    fresh = Runs()
    fresh.add(FIRST, "reject")
    assert fresh.found(fresh.add(SECOND)) is None


def test_a_document_that_cannot_be_read_ends_no_run(runs: Runs) -> None:
    """Of another release."""
    planned = runs.add(SECOND)
    folder = storage.run_uri(planned.bucket, planned.model, FIRST)
    runs.cloud.artifacts.objects[storage.document_uri(folder, "snapshot")] = (
        b'{"kind": "snapshot", "schema_version": 99}'
    )
    assert runs.found(planned) is None
