"""What messages about a run's documents advise is done as they say, and then the run comes to its end.

A whole night on the cloud in memory: its jobs leave the contracts' examples at once.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.data.snapshot import OTHER_DATA
from retraining.core.documents import KINDS
from retraining.core.errors import ContractError
from retraining.core.naming.storage import model_file_uri
from retraining.operators.record.run_record import Record
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.data_tasks import DataRun
from tests.support.scenes.planned_run import FORM
from tests.support.scenes.recorded_run import WRITERS, RecordedRun


@pytest.fixture
def night(make_run: Any) -> RecordedRun:
    """A night that went to its end."""
    cloud = FakeCloud()
    made = RecordedRun(cloud, make_run(params=FORM))
    made.clear()
    assert made.documents() == WRITERS.keys()
    return made


@pytest.mark.parametrize("kind", WRITERS)
def test_a_document_that_is_gone(night: RecordedRun, kind: str) -> None:
    """`Clear the run from plan on`: then it is there again."""
    night.delete(kind)
    with pytest.raises(ContractError, match="Clear the run from plan on"):
        Record(night.cloud.artifacts, night.folder).read_document(KINDS[kind])
    night.clear("plan")
    assert night.documents() == WRITERS.keys()


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("text", [b'{"kind": "', b"[]", b"{}"], ids=["cut off", "a list", "no kind"])
def test_a_document_that_is_broken(night: RecordedRun, kind: str, text: bytes) -> None:
    """Clearing alone finds it again. Deleted, as the message says, the task that writes it makes it anew."""
    night.cloud.artifacts.objects[night.uri(kind)] = text
    with pytest.raises(AirflowFailException) as refused:
        night.clear(WRITERS[kind])
    assert night.uri(kind) in str(refused.value)
    assert "elete this object, then clear the task that wrote it and what follows" in str(refused.value)
    night.delete(kind)
    night.clear(WRITERS[kind])
    assert night.documents() == WRITERS.keys()


@pytest.mark.parametrize(
    ("example", "changes"),
    [
        ("evaluation__first_model", {"run_key": "20131101t030000z-0123456789ab"}),
        ("evaluation__duel", {}),
        ("evaluate_request__first_model", {"run_key": "20131101t030000z-0123456789ab"}),
        ("evaluate_request__duel", {}),
    ],
    ids=["another run's evaluation", "a duel nobody asked for", "another run's request", "a duel that was not"],
)
def test_documents_of_another_duel(night: RecordedRun, example: str, changes: dict[str, Any]) -> None:
    """`decide` names the one to delete; then `evaluate` makes it anew."""
    night.delete("decision")
    if "request" in example:  # of another duel, and of this run's places
        asked = json.loads(night.cloud.artifacts.objects[night.uri("evaluate_request")])
        changes = {**changes, "evaluation_uri": asked["evaluation_uri"]}
    night.put(example, **changes)
    for side in ("challenger", "champion") if example == "evaluate_request__duel" else ():
        asked = json.loads(night.cloud.artifacts.objects[night.uri("evaluate_request")])
        night.cloud.artifacts.objects[model_file_uri(asked[side]["model_uri"])] = b"model"
    with pytest.raises(AirflowFailException) as refused:
        night.clear("decide")
    where = str(refused.value).split(": ", 1)[0]
    assert where in (night.uri("evaluation"), night.uri("evaluate_request"))
    assert "Delete this object, then clear evaluate and what follows" in str(refused.value)
    del night.cloud.artifacts.objects[where]
    night.clear("evaluate")
    assert night.documents() == WRITERS.keys()


SPEC = """
name: {name}
description: Will it be late?
data: {{query: {name}/examples.sql, key: id, event_time: at, window_days: 10, test_days: 2}}
features: [{{name: distance, kind: numeric}}]
label: {{name: late, kind: binary}}
training: {{model: wide_deep}}
evaluation: {{metric: auc, min_value: 0.6}}
"""


def test_what_blocked_data_advises_makes_another_run(include, make_run) -> None:
    """Force where the source is mended; where a file is changed, clearing `plan` is enough."""
    assert "the Param force" in OTHER_DATA
    assert "the query or the spec is changed, clear plan and what follows" in OTHER_DATA
    night = DataRun(include, "late", make_run(), SPEC, FakeCloud().connect)
    query = "SELECT * FROM source.rows WHERE at >= @window_start AND at < LEAST(@window_end, @as_of)"
    night.write(query)
    first = night.plan()["run_uri"]
    assert night.plan()["run_uri"] == first
    assert night.plan(force=True)["run_uri"] != first
    night.write(f"{query} AND distance > 0")
    changed = night.plan()["run_uri"]
    assert changed != first
    (include / "models" / "late.yaml").write_text(SPEC.format(name="late").replace("window_days: 10", "window_days: 9"))
    assert night.plan(window_days=9)["run_uri"] not in (first, changed)


def test_a_version_that_is_gone_is_registered_again(night: RecordedRun) -> None:
    """`Clear register`: what was recorded of it does not count."""
    night.cloud.registry.versions.clear()
    night.clear("register")
    assert [version.run_key for version in night.cloud.registry.versions.values()] == [night.folder.rpartition("/")[2]]
