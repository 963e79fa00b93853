"""`python -m retraining`, on runs stored in memory, and against an Airflow that answers as its REST API does."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from retraining.commands import daily
from retraining.core import documents
from retraining.core.jobs import requests
from retraining.core.naming import storage
from retraining.core.promotion import gates
from retraining.hooks.cloud import OwnCloud
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.small_decision import decide, evaluation, scores
from tests.support.small_model import SPEC_YAML, SQL, make_plan, make_snapshot, make_spec


@pytest.fixture
def include(tmp_path, monkeypatch):
    """The small model's files."""
    (tmp_path / "models").mkdir()
    (tmp_path / "sql" / "late").mkdir(parents=True)
    (tmp_path / "models" / "late.yaml").write_text(SPEC_YAML, encoding="utf-8")
    (tmp_path / "sql" / "late" / "examples.sql").write_text(SQL, encoding="utf-8")
    monkeypatch.setattr(daily, "include_path", lambda: tmp_path)


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


def ask(cloud, capsys, *words, code=0):
    assert daily.main(words, cloud.connect) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


pytestmark = pytest.mark.usefixtures("include")


def test_models_are_listed_with_their_last_run(cloud, capsys):
    assert ask(cloud, capsys, "models").splitlines()[1].split() == ["late", "0", "3", "*", "*", "*", "-", "-"]
    plan = judged(cloud, 0.7)
    assert ask(cloud, capsys, "models").splitlines()[1].split()[-2:] == [plan.run_key, "promote"]


def test_runs_are_listed_newest_first(cloud, capsys):
    older = judged(cloud, 0.7)
    newer = store(cloud, make_plan(settings=cloud.settings, force=True, dag_run_id="another"))
    lines = ask(cloud, capsys, "runs", "late").splitlines()
    assert [line.split()[0] for line in lines] == ["run", *sorted((older.run_key, newer.run_key), reverse=True)]
    assert any("auc 0.7" in line and "promote" in line for line in lines)
    assert any("not decided" in line for line in lines)


def test_why_gives_the_gates_and_the_outcome(cloud, capsys):
    plan = judged(cloud, 0.55)
    out = ask(cloud, capsys, "why", "late")
    assert f"run {plan.run_key} of late" in out
    assert "FAILED    floor: " in out
    assert "endpoint  Nothing was deployed: the challenger was not promoted." in out
    assert "monitor   no decision yet" in out


def test_why_of_a_run_that_stopped_names_its_task(cloud, capsys):
    plan = make_plan(settings=cloud.settings)
    store(cloud, plan, make_snapshot(plan))
    assert "The run is at the task check_data and waits for BigQuery." in ask(cloud, capsys, "why", "late")


def test_why_says_until_when_retraining_is_paused(cloud, capsys):
    pause = json.loads((EXAMPLES / "pause__set.json").read_text())
    for until, said in (("2999-01-01", True), ("2013-11-21", False)):
        document = documents.Pause.parse(json.dumps(pause | {"until": f"{until}T00:00:00Z"}).encode())
        cloud.artifacts.overwrite(
            storage.pause_uri(cloud.settings.bucket, "late"), document.to_bytes(), "application/json"
        )
        assert ("retraining of late is paused until 2999-01-01" in ask(cloud, capsys, "why", "late")) is said


def test_why_gives_the_monitors_last_decision(cloud, capsys):
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
    out = ask(cloud, capsys, "why", "late")
    assert "late: no run yet" in out
    assert "monitor   none at 2013-11-20 04:00 UTC (cooldown): A retraining was ordered 3 hours ago." in out


def test_two_runs_stand_side_by_side(cloud, capsys):
    before = judged(cloud, 0.7)
    spec = make_spec(training={"model": "wide_deep", "epochs": 9})
    now = judged(cloud, 0.8, spec=spec)
    lines = [line.split() for line in ask(cloud, capsys, "compare", before.run_key, now.run_key).splitlines()]
    assert lines[0] == [before.run_key, now.run_key]
    assert ["training.epochs", "5", "9"] in lines
    assert ["auc", "0.7", "0.8"] in lines
    assert ["verdict", "promote", "promote"] in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runs", "lat"), "MODEL: no model 'lat'. Expected one of: late. Did you mean 'late'?"),
        (("compare", "20131120t030000z-0123456789ab", "x"), "RUN: no run '20131120t030000z-0123456789ab'"),
    ],
)
def test_what_is_not_there_is_refused_by_name(cloud, capsys, words, message):
    assert message in ask(cloud, capsys, *words, code=1)


def test_a_run_that_cannot_be_read_hides_no_other(cloud, capsys):
    plan = judged(cloud, 0.7)
    broken = storage.run_uri(cloud.settings.bucket, "late", "20991120t030000z-0123456789ab")
    cloud.artifacts.write_once(storage.document_uri(broken, "plan"), b"{}")
    assert plan.run_key in ask(cloud, capsys, "runs", "late")


@pytest.fixture
def decided(cloud):
    """The folder of a run whose decision can be taken again."""
    plan = make_plan(settings=cloud.settings)
    request, judged = requests.evaluation_job(plan, None).request, evaluation(plan, scores(0.7))
    inputs = {document.kind_name(): document.digest() for document in (plan, request, judged)}
    store(cloud, plan, request, judged, gates.decide(plan, request, judged, inputs))
    return plan.run_uri


def test_a_decision_is_the_same_again(cloud, capsys, decided):
    """By the folder's address and by the run's key."""
    for run in (decided, f"{decided}/", decided.rsplit("/", 1)[1]):
        out = ask(cloud, capsys, "replay", run)
        assert out.startswith(f"{decided}: the same decision, promote. Promoted: the first champion of late")


def test_a_decision_that_comes_out_differently_is_shown(cloud, capsys, decided):
    """An evaluation that was changed by hand: its digest, the gate and the verdict are others."""
    uri = storage.document_uri(decided, "evaluation")
    worse = cloud.artifacts.read_object(uri).replace(b'"auc": 0.7', b'"auc": 0.5')
    cloud.artifacts.overwrite(uri, worse, "application/json")
    assert daily.main(("replay", decided), cloud.connect) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{decided}: another decision"
    assert "verdict: stored 'promote', now 'reject'" in lines
    assert "gates.floor.passed: stored True, now False" in lines
    assert sum(line.startswith("inputs.evaluation: stored ") for line in lines) == 1


def test_a_run_without_a_decision_cannot_be_replayed(cloud, capsys):
    plan = store(cloud, make_plan(settings=cloud.settings))
    err = ask(cloud, capsys, "replay", plan.run_uri, code=1)
    assert f"no {plan.run_uri}/evaluate_request.json" in err
    assert "a run that came to its decision" in err


@pytest.mark.usefixtures("local_cloud")
def test_it_reads_what_lies_in_a_bucket(capsys):
    """On the local cloud's storage, with the credentials of this process's environment."""
    cloud = OwnCloud()
    plan = judged(cloud, 0.7)
    assert daily.main(["why", "late"]) == 0
    out = capsys.readouterr().out
    assert f"run {plan.run_key} of late" in out
    assert "outcome   Promoted" in out


def test_it_is_a_program_that_needs_no_airflow():
    """Its import would make a folder of Airflow's own in the home of who types this."""
    environment = {"PYTHONPATH": str(Path(daily.__file__).parents[2])}
    help_ = [sys.executable, "-X", "importtime", "-m", "retraining", "--help"]
    done = subprocess.run(help_, check=True, env=environment, capture_output=True, text=True)
    assert "{models,run,why,runs,notify-test,compare,replay}" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "retraining.commands.daily" in imported
    assert "airflow" not in imported


class Airflow(BaseHTTPRequestHandler):
    """The three calls of Airflow's API server that an order makes."""

    asked: list = []
    paused = False

    def answer(self, body, code=200):
        """Send JSON."""
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_GET(self):
        """Return the DAG."""
        self.answer({"is_paused": self.paused})

    def do_POST(self):
        """Return a token, or a new run."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/auth/token":
            right = body == {"username": "admin", "password": "right"}
            self.answer({"access_token": "t0"} if right else {"detail": "Invalid credentials"}, 201 if right else 401)
        else:
            self.asked.append((self.path, self.headers["Authorization"], body))
            self.answer({"dag_run_id": "manual__1"})

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def airflow(monkeypatch):
    """An API server on loopback, in the environment with its login."""
    monkeypatch.setattr(Airflow, "asked", [])
    server = HTTPServer(("127.0.0.1", 0), Airflow)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name, value in (
        ("AIRFLOW__API__BASE_URL", f"http://127.0.0.1:{server.server_port}/"),
        ("AIRFLOW_USERNAME", "admin"),
        ("AIRFLOW_PASSWORD", "right"),
        ("NO_PROXY", "127.0.0.1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AIRFLOW_TOKEN", raising=False)
    yield Airflow
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_run_is_ordered_with_its_params(cloud, capsys, airflow):
    out = ask(cloud, capsys, "run", "late", "--param", "as_of=2013-11-20T03:00:00Z", "--param", "force=true")
    assert out == "retrain__late: run manual__1 ordered\n"
    conf = {"as_of": "2013-11-20T03:00:00Z", "force": True}
    body = {"logical_date": None, "conf": conf}
    assert airflow.asked == [("/api/v2/dags/retrain__late/dagRuns", "Bearer t0", body)]


def test_a_token_needs_no_login_and_a_paused_dag_is_said(cloud, capsys, airflow, monkeypatch):
    monkeypatch.setenv("AIRFLOW_TOKEN", "mine")
    monkeypatch.delenv("AIRFLOW_USERNAME")
    monkeypatch.setattr(Airflow, "paused", True)
    assert "retrain__late is paused" in ask(cloud, capsys, "run", "late")
    assert airflow.asked[0][1] == "Bearer mine"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("AIRFLOW_PASSWORD", "wrong", 'HTTP 401: {"detail": "Invalid credentials"}'),
        ("AIRFLOW_PASSWORD", "", "AIRFLOW_PASSWORD: not set. Expected a login of Airflow"),
        ("AIRFLOW__API__BASE_URL", "", "AIRFLOW__API__BASE_URL: not set"),
        ("AIRFLOW__API__BASE_URL", "http://127.0.0.1:1", "no answer"),
    ],
)
def test_an_airflow_that_refuses_is_said(cloud, capsys, airflow, monkeypatch, variable, value, message):
    monkeypatch.setenv(variable, value)
    assert message in ask(cloud, capsys, "run", "late", code=1)
    assert airflow.asked == []


def test_a_param_without_a_value_is_refused(cloud, capsys, airflow):
    assert "--param: 'force'. Expected name=value" in ask(cloud, capsys, "run", "late", "--param", "force", code=1)
    assert airflow.asked == []
