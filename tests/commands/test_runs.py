"""Commands about runs that are stored in memory, or in a bucket of the local cloud."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core import documents
from retraining.core.jobs import requests
from retraining.core.jobs.places import Cause, Entry, Places, Wish
from retraining.core.naming import storage, vertex
from retraining.core.promotion import gates
from retraining.core.promotion.own_gates import judge_own_gates
from retraining.core.spec import own_gates
from retraining.hooks.cloud import OwnCloud
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.small_decision import decide, evaluation, scores
from tests.support.small_model import make_plan, make_snapshot, make_spec, spec_values


@pytest.fixture
def cloud():
    return FakeCloud()


def store(cloud, plan, *others):
    """Writes a run's documents."""
    for document in (plan, *others):
        cloud.artifacts.write_once(storage.document_uri(plan.run_uri, document.kind_name()), document.to_bytes())
    return plan


def judged(cloud, ours, theirs=None, **changes):
    """A run that came to its decision."""
    plan = make_plan(settings=cloud.settings, **changes)
    answers = scores(ours), scores(theirs) if theirs else None
    return store(cloud, plan, evaluation(plan, *answers), decide(plan, *answers))


@pytest.fixture
def ask(cloud, include, capsys):
    """What a command prints."""

    def ask(*words, code=0):
        assert main(words, Shell(connect=cloud.connect, find_include=lambda: include)) == code
        captured = capsys.readouterr()
        return captured.err if code == 1 and captured.err else captured.out

    return ask


def test_models_are_listed_with_their_last_run(ask, cloud):
    assert ask("models").splitlines()[1].split() == ["late", "0", "3", "*", "*", "*", "-", "-"]
    plan = judged(cloud, 0.7)
    assert ask("models").splitlines()[1].split()[-2:] == [plan.run_key, "promote"]


def test_runs_are_listed_newest_first(ask, cloud):
    older = judged(cloud, 0.7)
    newer = store(cloud, make_plan(settings=cloud.settings, force=True, dag_run_id="another"))
    lines = ask("runs", "late").splitlines()
    assert [line.split()[0] for line in lines] == ["run", *sorted((older.run_key, newer.run_key), reverse=True)]
    assert any("auc 0.7" in line and "promote" in line for line in lines)
    assert any("not decided" in line for line in lines)


def test_why_gives_the_gates_and_the_outcome(ask, cloud):
    plan = judged(cloud, 0.55)
    out = ask("why", "late")
    assert f"run {plan.run_key} of late" in out
    assert "FAILED    floor: " in out
    assert "endpoint  Nothing was deployed" in out
    assert "monitor   no decision yet" in out


def test_why_of_a_run_that_stopped_names_its_task(ask, cloud):
    plan = make_plan(settings=cloud.settings)
    store(cloud, plan, make_snapshot(plan))
    assert "The run is at the task check_data and waits for BigQuery." in ask("why", "late")


def test_why_says_until_when_retraining_is_paused(ask, cloud):
    pause = json.loads((EXAMPLES / "pause__set.json").read_text())
    for until, said in (("2999-01-01", True), ("2013-11-21", False)):
        document = documents.Pause.parse(json.dumps(pause | {"until": f"{until}T00:00:00Z"}).encode())
        cloud.artifacts.overwrite(
            storage.pause_uri(cloud.settings.bucket, "late"), document.to_bytes(), "application/json"
        )
        assert ("paused until 2999-01-01" in ask("why", "late")) is said


def test_why_gives_the_monitors_last_decision(ask, cloud):
    row = {
        "model": "late",
        "as_of": "2013-11-20T04:00:00Z",
        "decision": "wait",
        "because": "cooldown",
        "words": "A retraining was ordered 3 hours ago.",
        "drift_uri": None,
        "retrain_as_of": None,
        "last_retrain_as_of": None,
    }
    found = documents.Ledger.parse(json.dumps({"schema_version": 1, "kind": "ledger", **row}).encode(), "ledger.json")
    folder = storage.monitor_uri(cloud.settings.bucket, "late", found.as_of, "scheduled__1")
    cloud.artifacts.write_once(storage.document_uri(folder, "ledger"), found.to_bytes())
    out = ask("why", "late")
    assert "late: no run yet" in out
    assert "monitor   none at 2013-11-20 04:00 UTC (cooldown): A retraining was ordered 3 hours ago." in out


def test_two_runs_stand_side_by_side(ask, cloud):
    before = judged(cloud, 0.7)
    spec = make_spec(training={"model": "wide_deep", "epochs": 9})
    now = judged(cloud, 0.8, spec=spec)
    lines = [line.split() for line in ask("compare", before.run_key, now.run_key).splitlines()]
    assert lines[0] == [before.run_key, now.run_key]
    assert ["training.epochs", "null", "9"] in lines
    assert ["auc", "0.7", "0.8"] in lines
    assert ["verdict", "promote", "promote"] in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runs", "lat"), "MODEL: no model 'lat'. Expected one of: late. Did you mean 'late'?"),
        (("compare", "20131120t030000z-0123456789ab", "x"), "RUN: no run '20131120t030000z-0123456789ab'"),
    ],
)
def test_what_is_not_there_is_refused_by_name(ask, cloud, words, message):
    assert message in ask(*words, code=1)


def test_a_run_that_cannot_be_read_hides_no_other(ask, cloud):
    plan = judged(cloud, 0.7)
    broken = storage.run_uri(cloud.settings.bucket, "late", "20991120t030000z-0123456789ab")
    cloud.artifacts.write_once(storage.document_uri(broken, "plan"), b"{}")
    assert plan.run_key in ask("runs", "late")


@pytest.fixture
def decided(cloud):
    """The folder of a run whose decision can be taken again."""
    plan = make_plan(settings=cloud.settings)
    request, judged = requests.evaluation_job(plan, None).request, evaluation(plan, scores(0.7))
    inputs = {document.kind_name(): document.digest() for document in (plan, request, judged)}
    store(cloud, plan, request, judged, gates.decide(plan, request, judged, inputs))
    return plan.run_uri


def test_a_decision_is_the_same_again(ask, cloud, decided):
    """By the folder's address and by the run's key."""
    for run in (decided, f"{decided}/", decided.rsplit("/", 1)[1]):
        out = ask("replay", run)
        assert out.startswith(f"{decided}: the same decision, promote.")


GATE = "def gate(run):\n    return run.rows > 0, f'{run.rows} rows'\n"


def test_a_gate_of_the_teams_own_is_asked_again_where_its_code_is_at_hand(ask, cloud, include, capsys):
    """With other code its stored answer stands, and that is said."""
    (include / "gates").mkdir()
    file = include / "gates" / "late.py"
    file.write_text(GATE)
    asked = [{"name": "ours", "function": "late.py:gate"}]
    spec = make_spec(evaluation={**spec_values()["evaluation"], "gates": asked})
    functions = own_gates.require_gates(spec, include)
    plan = make_plan(spec, settings=cloud.settings, gates=functions)
    request, judged = requests.evaluation_job(plan, None).request, evaluation(plan, scores(0.7))
    inputs = {document.kind_name(): document.digest() for document in (plan, request, judged)}
    own = judge_own_gates(plan, judged, functions)
    store(cloud, plan, request, judged, gates.decide(plan, request, judged, inputs, own))
    assert ask("replay", plan.run_uri).startswith(f"{plan.run_uri}: the same decision, promote.")
    file.write_text(GATE.replace("> 0", "< 0"))
    assert main(["replay", plan.run_uri], Shell(connect=cloud.connect, find_include=lambda: include)) == 0
    out, err = capsys.readouterr()
    assert "own.ours is not asked again: its code of that time is not here" in err
    assert out.startswith(f"{plan.run_uri}: the same decision, promote.")


def test_a_decision_that_comes_out_differently_is_shown(ask, cloud, decided):
    """An evaluation that was changed by hand: its digest, the gate and the verdict are others."""
    uri = storage.document_uri(decided, "evaluation")
    worse = cloud.artifacts.read_object(uri).replace(b'"auc": 0.7', b'"auc": 0.5')
    cloud.artifacts.overwrite(uri, worse, "application/json")
    lines = ask("replay", decided, code=1).splitlines()
    assert lines[0] == f"{decided}: another decision"
    assert "verdict: stored 'promote', now 'reject'" in lines
    assert "gates.floor.passed: stored True, now False" in lines
    assert sum(line.startswith("inputs.evaluation: stored ") for line in lines) == 1


def test_a_run_without_a_decision_cannot_be_replayed(ask, cloud):
    plan = store(cloud, make_plan(settings=cloud.settings))
    err = ask("replay", plan.run_uri, code=1)
    assert f"no {plan.run_uri}/evaluate_request.json" in err
    assert "came to its decision" in err


@pytest.mark.usefixtures("local_cloud")
def test_it_reads_what_lies_in_a_bucket(include, capsys):
    """On the local cloud's storage, with the credentials of this process's environment."""
    cloud = OwnCloud()
    plan = judged(cloud, 0.7)
    assert main(["why", "late"], Shell(find_include=lambda: include)) == 0
    out = capsys.readouterr().out
    assert f"run {plan.run_key} of late" in out
    assert "outcome   Promoted" in out


def test_spending_of_a_month_stands_beside_its_budgets(ask, cloud, include):
    """By model, by team and of all; a month without runs is said so."""
    now, key = cloud.clock.now(), "20260101t000000z-0a1b2c3d4e5f"
    for model, owner, usd, ended in (("late", "shipping", 3.5, True), ("other", "shipping", 1.25, False)):
        spent = {key: documents.Spent(work="run", begun=now, usd=usd, ended=ended, partial=ended)}
        document = documents.Spending(model=model, owner=owner, month="2026-01", spent=spent)
        cloud.artifacts.objects[storage.spending_uri("bucket", "2026-01", model)] = document.to_bytes()
    (include / "budgets.yaml").write_text("teams: {shipping: 9}\nmodels: {late: 4}\n")
    rows = [" ".join(line.split()) for line in ask("spending").splitlines()]
    assert rows == [
        "model owner runs spent under way budget",
        "late shipping 1 at least 3.50 0.00 4.00",
        "other shipping 1 0.00 1.25 -",
        "",
        "together spent under way budget",
        "team shipping at least 3.50 1.25 9.00",
        "all models at least 3.50 1.25 -",
    ]
    assert ask("spending", "--month", "2025-12") == "no run and no scoring began in 2025-12\n"
    for wrong in ("2025-13", "november", "2026-01/late"):
        assert "Expected a UTC month" in ask("spending", "--month", wrong, code=1)


def test_use_against_the_quota_is_shown_and_who_waits(ask, cloud, include):
    assert ask("quotas").splitlines() == [
        "no job runs in us-central1, and quotas.yaml limits none there",
        "",
        "no job waits for room",
    ]
    (include / "quotas.yaml").write_text("regions: {us-central1: {machines: 4, accelerators: {NVIDIA_L4: 1}}}\n")
    spec = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 3}
    labels = {vertex.OWNER_LABEL: "o", vertex.KEY_LABEL: "running"}
    cloud.jobs.create({"job_spec": {"worker_pool_specs": [spec]}, "labels": labels})
    now = cloud.clock.now()
    wish = Wish(model="late", task="train", cause=Cause.RUN, priority=7, needs={"machines": 2, "cpus": 8})
    waits = Entry(wish=wish, since=now - timedelta(hours=1), heard=now)
    begins = Entry(wish=replace(wish, needs={"machines": 1, "cpus": 4}), since=now, heard=now, begun=now)
    stored = Places(entries={"waits": waits, "begins": begins}).to_bytes()
    cloud.artifacts.objects[storage.places_uri(cloud.settings.bucket, "us-central1")] = stored
    lines = [line.split() for line in ask("quotas").splitlines()]
    assert ["machines", "3", "1", "4"] in lines
    assert ["NVIDIA_L4", "0", "0", "1"] in lines
    assert ["cpus", "12", "4", "-"] in lines
    since = f"{waits.since:%Y-%m-%d %H:%M}"
    assert ["late", "train", "run", "7", *since.split(), "2", "machines"] in lines
    assert f"room      train waits since {since} UTC for room in us-central1, 0 before it" in ask("why", "late")
