"""The command `score`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core import documents
from retraining.core.naming import storage
from retraining.core.report.models_page.history import shown_rollback
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes import models_page
from tests.support.small_decision import decide, evaluation, scores
from tests.support.small_model import make_plan


@pytest.fixture
def cloud() -> FakeCloud:
    """Everything in memory."""
    return FakeCloud()


@pytest.fixture
def ask(cloud, include, capsys):
    """What the command prints."""

    def ask(*words: str) -> str:
        assert main(("score", "late", *words), Shell(connect=cloud.connect, find_include=lambda: include)) == 0
        return capsys.readouterr().out

    return ask


def store(cloud: FakeCloud, ours: float = 0.7, **changes: Any) -> documents.Plan:
    """Write a run that came to its decision, with slices."""
    plan = make_plan(settings=cloud.settings, **changes)
    judged = scores(ours, UA=(300, 0.7), AA=(300, 0.7))
    for document in (plan, evaluation(plan, judged), decide(plan, judged)):
        cloud.artifacts.write_once(storage.document_uri(plan.run_uri, document.kind_name()), document.to_bytes())
    return plan


def by_test(out: str) -> dict[str, dict[str, Any]]:
    """Tests of the JSON, by name."""
    return {test["name"]: test for test in json.loads(out)["tests"]}


def test_a_model_without_a_run_is_scored_by_its_file(ask) -> None:
    """Each of the 28 tests in a line, and what would satisfy it."""
    lines = ask().splitlines()
    assert lines[0].startswith("late: ML Test Score 0 of 7, the least of its sections: ")
    assert lines[0].endswith("(no run with an evaluation)")
    assert sum(line.startswith(("  1 ", "  0.5 ", "  0 ")) for line in lines) == 28
    assert "        would be by (file): deployment.canary: {}" in "\n".join(lines)
    assert ask("--file-alone") == "\n".join([*lines, ""])


def test_the_newest_live_run_with_an_evaluation_counts(ask, cloud) -> None:
    """Not a backfill, nor one that came to no evaluation, nor one that cannot be read."""
    older = store(cloud)
    store(cloud, mode="backfill", dag_run_id="backfill__1")
    plan = make_plan(settings=cloud.settings, force=True, dag_run_id="third")
    cloud.artifacts.write_once(storage.document_uri(plan.run_uri, "plan"), plan.to_bytes())
    broken = storage.run_uri(cloud.settings.bucket, "late", "20991120t030000z-0123456789ab")
    cloud.artifacts.write_once(storage.document_uri(broken, "evaluation"), b"{}")
    found = json.loads(ask("--json"))
    assert found["run_key"] == older.run_key
    assert by_test(ask("--json"))["slices"]["points"] == 1.0
    assert by_test(ask("--json", "--file-alone"))["slices"]["needs"] == "run"


def test_the_monitors_looks_and_ways_back_count(ask, cloud, include) -> None:
    """From the model's history, as the Models page has it."""
    rollback = documents.Rollback.parse((EXAMPLES / "rollback__previous.json").read_bytes())
    history = models_page.one_model().model_copy(update={"rollbacks": (shown_rollback(rollback),)})
    uri = storage.model_overview_uri(cloud.settings.bucket, "late")
    cloud.artifacts.overwrite(uri, history.to_bytes(), "application/json")
    found = by_test(ask("--json"))
    assert found["training_serving_skew"]["points"] == 1.0
    assert found["rollback"]["points"] == 0.5
    assert "to version " in found["rollback"]["satisfied_by"]
    cloud.artifacts.overwrite(uri, b"{}", "application/json")
    assert by_test(ask("--json"))["rollback"]["points"] == 0.0


def test_json_has_the_sums(ask, cloud, include) -> None:
    """And what a person states."""
    path = include / "models" / "late.yaml"
    review = f"{{test: privacy, by: Ada, day: {cloud.clock.now():%Y-%m-%d}, where: docs/a.md}}"
    path.write_text(f"{path.read_text()}\nreviews: [{review}]\n")
    found = json.loads(ask("--json"))
    assert found["sections"]["data"] == sum(test["points"] for test in found["tests"] if test["section"] == "data")
    assert found["points"] == min(found["sections"].values())
    assert found["model"] == "late"
    assert "satisfied by: Ada made it by hand on " in ask()
    assert ", docs/a.md" in ask()


def test_another_model_is_refused_by_name(cloud, include, capsys) -> None:
    """With those that there are."""
    shell = Shell(connect=cloud.connect, find_include=lambda: include)
    assert main(("score", "lat"), shell) == 1
    assert "Did you mean 'late'?" in capsys.readouterr().err
