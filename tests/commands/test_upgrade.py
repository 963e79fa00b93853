"""What a release says of what an earlier one left: read, carried on, done otherwise, refused."""

from __future__ import annotations

import json

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core.jobs import requests
from retraining.core.naming import storage, vertex
from retraining.core.planning.upgrades import key_changes
from tests.support.fakes.cloud import FakeCloud
from tests.support.small_decision import decide, evaluation, scores
from tests.support.small_model import SPEC_YAML, make_plan, make_spec
from tests.support.small_rollout import rollout


@pytest.fixture
def cloud():
    return FakeCloud()


@pytest.fixture
def ask(cloud, include, capsys):
    """The lines that the command prints, by their states."""

    def ask(*words, code=0):
        assert main(["upgrade-check", *words], Shell(connect=cloud.connect, find_include=lambda: include)) == code
        return capsys.readouterr().out

    return ask


def store(cloud, uri, data):
    cloud.artifacts.objects[uri] = data


def plan_of(cloud, **changes):
    """A run's documents; changes are of the stored plan's spec, as another release wrote it."""
    plan = make_plan(settings=cloud.settings)
    values = json.loads(plan.to_bytes())
    values["spec"].update(changes)
    answers = scores(0.7), None
    for document in (evaluation(plan, *answers), decide(plan, *answers)):
        store(cloud, storage.document_uri(plan.run_uri, document.kind_name()), document.to_bytes())
    store(cloud, storage.document_uri(plan.run_uri, "plan"), json.dumps(values).encode())
    return plan


def test_what_this_release_wrote_is_well(ask, cloud):
    plan = plan_of(cloud)
    lines = ask().splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", "late"]] * 3
    assert "3 of 3 stored documents" in lines[1]
    assert f"{plan.run_key} planned again is the same run" in lines[2]


def test_a_run_that_would_be_another_one_is_named_with_what_differs(ask, cloud):
    """The stored plan lacks a key that this release knows, and has another value of a second one."""
    plan = make_plan(settings=cloud.settings)
    values = json.loads(plan.to_bytes())
    del values["spec"]["deployment"]["machine"]
    values["spec"]["training"]["batch_size"] = 77
    values["run_key"] = f"{plan.run_key[:-12]}{'0' * 12}"
    data = json.dumps(values).encode()
    store(cloud, storage.document_uri(plan.run_uri, "plan"), data)
    (line,) = [line for line in ask().splitlines() if line.startswith("changes")]
    assert "another run, with jobs of its own: deployment.machine is new" in line
    assert key_changes(plan.to_bytes(), "plan.json") == []


def test_what_decides_nothing_is_no_difference(cloud):
    """As whom its jobs run: a run of another key differs by something else."""
    owned = make_plan(make_spec(service_account="late@p.iam.gserviceaccount.com"), settings=cloud.settings)
    assert key_changes(owned.to_bytes(), "plan.json") == []
    values = json.loads(owned.to_bytes()) | {"trainer_image": "host/trainer:2"}
    assert key_changes(json.dumps(values).encode(), "plan.json") == ["what decides beside the spec"]


def test_a_forced_run_has_its_own_key_again(cloud):
    assert key_changes(make_plan(force=True, dag_run_id="x", settings=cloud.settings).to_bytes(), "plan.json") == []


def test_what_is_refused_is_named_and_hides_nothing_else(ask, cloud, include):
    """A document of no release, and a key that is none any more."""
    plan = plan_of(cloud)
    uri = storage.document_uri(plan.run_uri, "decision")
    store(cloud, uri, b'{"kind": "decision", "schema_version": 99}')
    (include / "models" / "late.yaml").write_text(SPEC_YAML + "canary_percent: 10\n", encoding="utf-8")
    lines = ask(code=1).splitlines()
    wrong = [line for line in lines if line.startswith("wrong")]
    assert len(wrong) == 2
    assert "canary_percent" in wrong[0]
    assert uri in wrong[1]
    assert any("2 of 3 stored documents" in line for line in lines)


def test_what_is_under_way_goes_on(ask, cloud):
    """Its rollout, and each of its jobs; those of other models are not listed."""
    plan = plan_of(cloud)
    for model in ("late", "other"):
        job = requests.training_job(plan).custom_job
        cloud.jobs.create({**job, "labels": {**job["labels"], vertex.MODEL_LABEL: model, vertex.OWNER_LABEL: "o"}})
    under_way = rollout(state="ramping").model_copy(update={"model": "late"})
    store(cloud, storage.rollout_uri(cloud.settings.bucket, "late"), under_way.to_bytes())
    goes_on = [line for line in ask().splitlines() if line.startswith("goes on")]
    assert len(goes_on) == 2
    assert f"the rollout of {under_way.run_key} (ramping)" in goes_on[0]
    assert f"train of {plan.run_key} (1)" in goes_on[1]


def test_so_many_runs_are_read_as_are_asked_for(ask, cloud):
    for number in range(3):
        plan = make_plan(settings=cloud.settings, force=True, dag_run_id=str(number))
        store(cloud, storage.document_uri(plan.run_uri, "plan"), plan.to_bytes())
    assert "2 of 2 stored documents" in ask("--runs", "2")
    assert "3 of 3 stored documents" in ask()


def test_a_machine_reads_the_same(ask, cloud):
    plan_of(cloud)
    found = json.loads(ask("--json"))
    assert [(each["model"], each["state"]) for each in found] == [("late", "ok")] * 3
