"""What the Models page reads, kept up to date by tasks: cheap, two at once lose nothing, broken parts hide nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import ModelOverview, ModelSummary, Overview
from retraining.core.errors import ConflictError
from retraining.core.naming import storage
from retraining.core.report.models_page.history import KINDS
from retraining.hooks.endpoints import Endpoint
from retraining.operators.report import models_refresh
from retraining.operators.report.models_files import write_files
from retraining.operators.report.models_page import RefreshModelsPageOperator
from retraining.operators.report.models_refresh import refresh_model
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import here
from tests.support.refusals import refuses
from tests.support.scenes.deployment import example

ALL, MINE = storage.overview_uri("bucket"), storage.model_overview_uri("bucket", "flight_delays")
PLAN = here(example("plan"))


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud without runs."""
    return FakeCloud()


def store_run(cloud: FakeCloud, day: int, *kinds: str) -> str:
    """Store a run with its plan and documents of other kinds; give its key."""
    key = f"201311{day:02d}t030000z-0a1b2c3d4e5f"
    uri = storage.run_uri("bucket", "flight_delays", key)
    for kind in ("plan", *kinds):
        document = PLAN if kind == "plan" else example(kind)
        changed = {**document, "run_key": key, "as_of": f"2013-11-{day:02d}T03:00:00Z", "run_uri": uri}
        named = {name: value for name, value in changed.items() if name in document}
        cloud.artifacts.objects[f"{uri}/{kind}.json"] = json.dumps(named).encode()
    return key


def store_live(cloud: FakeCloud, day: int, *kinds: str) -> str:
    """Store a run that is no backfill; give its key."""
    key = store_run(cloud, day, *kinds)
    uri = f"{storage.run_uri('bucket', 'flight_delays', key)}/plan.json"
    cloud.artifacts.objects[uri] = json.dumps({**json.loads(cloud.artifacts.objects[uri]), "mode": "live"}).encode()
    return key


def store_look(cloud: FakeCloud, hour: int, *kinds: str) -> str:
    """Store a look of the monitor; give its folder's name."""
    key = f"20131121t{hour:02d}0000z-0a1b2c3d"
    for path in (EXAMPLES / f"{kind}.json" for kind in kinds):
        document = {**json.loads(path.read_text()), "as_of": f"2013-11-21T{hour:02d}:00:00Z", "model": "flight_delays"}
        uri = f"{storage.monitors_uri('bucket', 'flight_delays')}/{key}/{path.stem.split('__')[0]}.json"
        cloud.artifacts.objects[uri] = json.dumps(document).encode()
    return key


def mine(cloud: FakeCloud) -> ModelOverview:
    """The model's object."""
    return ModelOverview.parse(cloud.artifacts.objects[MINE])


def row(cloud: FakeCloud) -> ModelSummary:
    """Its row in the object of all models."""
    (found,) = Overview.parse(cloud.artifacts.objects[ALL]).models
    return found


def test_a_run_that_ended_is_shown_with_its_comparison_and_price(cloud) -> None:
    """The newest decision, the champion that the registry has, the endpoint's traffic."""
    key = store_run(cloud, 19, "evaluation", "decision", "registration", "deployment", "timings")
    uri = storage.document_uri(storage.run_uri("bucket", "flight_delays", key), "timings")
    timings = json.loads(cloud.artifacts.objects[uri])
    for task in timings["tasks"]:
        task["estimated_usd"] = 0.5 if task["task"] in ("snapshot", "train") else None
    cloud.artifacts.objects[uri] = json.dumps(timings).encode()
    champion = cloud.registry.add(key, "champion")
    cloud.endpoints.endpoint = Endpoint(
        name="projects/p/locations/r/endpoints/flight-delays",
        deployed={"1": champion.version_name},
        traffic={"1": 100},
    )
    refresh_model(cloud, "flight_delays")
    shown = row(cloud)
    assert shown == mine(cloud).summary
    assert shown.champion is not None
    assert (shown.champion.version_id, shown.champion.run_key) == (champion.version_id, key)
    assert shown.champion.score == mine(cloud).runs[0].score is not None
    assert [(share.role, share.percent) for share in shown.traffic] == [("champion", 100)]
    assert shown.decision is not None
    assert (shown.decision.run_key, shown.decision.outcome) == (key, "promote")
    assert shown.cost is not None
    assert (shown.cost.month, shown.cost.runs) == ("2013-11", 1)
    assert shown.cost.usd == 0.5  # the training was reused, so its price is not paid


def test_what_is_known_to_its_end_is_not_read_again(cloud, monkeypatch) -> None:
    """An hourly task reads what came since: of a run that ended nothing, of the monitor the last look alone."""
    store_live(cloud, 18, "evaluation", "decision", "deployment", "timings")
    store_look(cloud, 5, "ledger__retrain", "signals__skew")
    refresh_model(cloud, "flight_delays")
    looked = store_look(cloud, 6, "ledger__retrain", "signals__skew")
    asked: list[str] = []
    read_some = cloud.artifacts.read_some

    def count(uris: list[str]) -> dict[str, bytes]:
        asked.extend(uris)
        return read_some(uris)

    monkeypatch.setattr(cloud.artifacts, "read_some", count)
    refresh_model(cloud, "flight_delays")
    assert not [uri for uri in asked if "/runs/" in uri]
    assert {uri.split("/")[-2] for uri in asked if "/monitor/" in uri} == {looked}
    assert [watch.as_of.hour for watch in mine(cloud).watches] == [6, 5]
    assert len(mine(cloud).runs) == 1


def points(cloud: FakeCloud) -> dict[str, float]:
    """Of the model's ML Test Score, by test."""
    score = mine(cloud).readiness
    assert score is not None
    return {test.name: test.points for test in score.tests}


def test_the_ml_test_score_follows_the_newest_run_and_the_looks(cloud) -> None:
    """A backfill and a run without an evaluation take nothing away; one that ended later gives what it then has."""
    refresh_model(cloud, "flight_delays")
    before = points(cloud)
    assert (before["pipeline_test"], before["training_serving_skew"]) == (0.0, 0.0)
    key = store_live(cloud, 18, "evaluation", "decision")
    store_live(cloud, 19)
    store_run(cloud, 20, "evaluation", "decision")
    store_look(cloud, 5, "ledger__retrain", "signals__skew")
    refresh_model(cloud, "flight_delays")
    found = mine(cloud)
    assert found.readiness is not None
    assert found.tested is not None
    assert found.readiness.run_key == found.tested.run_key == key
    assert (points(cloud)["pipeline_test"], points(cloud)["training_serving_skew"]) == (0.0, 1.0)
    store_live(cloud, 18, "evaluation", "decision", "deployment", "timings")
    refresh_model(cloud, "flight_delays")
    assert points(cloud)["pipeline_test"] == 1.0


def test_an_address_that_a_document_says_is_not_read(cloud: FakeCloud) -> None:
    """Where a run lies follows from its key: a row that points elsewhere neither is believed nor ends the task."""
    store_live(cloud, 20, "evaluation")
    refresh_model(cloud, "flight_delays")
    overview = json.loads(cloud.artifacts.objects[MINE])
    (known,) = overview["runs"]
    forged = {**known, "run_key": "20131122t030000z-0a1b2c3d4e5f", "run_uri": "gs://b/elsewhere", "ended": True}
    forged["as_of"] = "2013-11-22T03:00:00Z"
    cloud.artifacts.objects[MINE] = json.dumps({**overview, "runs": [forged, known], "tested": None}).encode()
    asked: list[str] = []
    read_some = cloud.artifacts.read_some
    cloud.artifacts.read_some = lambda uris: asked.extend(uris) or read_some(uris)
    refresh_model(cloud, "flight_delays")
    assert mine(cloud).runs[0].run_key == forged["run_key"]
    assert not [uri for uri in asked if not uri.startswith("gs://bucket/")]


def test_a_run_that_is_at_work_is_read_until_its_end(cloud) -> None:
    """It is at work, then decided; of one that another run followed nothing more is expected."""
    key = store_run(cloud, 18)
    refresh_model(cloud, "flight_delays")
    assert mine(cloud).runs[0].outcome == "running"
    store_run(cloud, 18, "evaluation", "decision")
    refresh_model(cloud, "flight_delays")
    assert mine(cloud).runs[0].outcome == "promote"
    store_run(cloud, 17)
    refresh_model(cloud, "flight_delays")
    newest, older = mine(cloud).runs
    assert (newest.run_key, newest.outcome, older.outcome) == (key, "promote", "stopped")


def test_a_run_whose_report_was_written_is_not_at_work(cloud) -> None:
    """However it ended."""
    refresh_model(cloud, "flight_delays", reported=store_run(cloud, 18))
    assert mine(cloud).runs[0].outcome == "stopped"


def test_named_states_and_signals_reach_the_row(cloud) -> None:
    """Of the newest look."""
    store_look(cloud, 5, "ledger__retrain", "signals__skew")
    refresh_model(cloud, "flight_delays")
    watch, stored = row(cloud).watch, json.loads((EXAMPLES / "signals__skew.json").read_text())
    assert watch is not None
    exceeded = [f"{each['kind']}:{each['subject']}" for each in stored["signals"] if each["state"] == "exceeded"]
    assert sorted(watch.exceeded) == sorted(exceeded)
    assert watch.requests == stored["requests"]
    assert watch.outcome == json.loads((EXAMPLES / "ledger__retrain.json").read_text()).get("outcome", "retrain")


def test_drift_of_an_earlier_release_is_shown_as_skew(cloud) -> None:
    """Its monitor measured features alone."""
    store_look(cloud, 5, "ledger__retrain", "drift__carrier")
    refresh_model(cloud, "flight_delays")
    assert {signal.kind for signal in mine(cloud).watches[0].signals} == {"skew"}


def test_of_two_tasks_at_once_none_is_lost(cloud, monkeypatch) -> None:
    """Another task writes between this one's reading and writing: this one reads again."""
    store_run(cloud, 18)
    ask, others = models_refresh._ask, []

    def ask_slowly(*arguments: Any) -> Any:
        if not others:
            others.append(store_look(cloud, 5, "ledger__retrain", "signals__skew"))
            refresh_model(cloud, "flight_delays")
        return ask(*arguments)

    monkeypatch.setattr(models_refresh, "_ask", ask_slowly)
    refresh_model(cloud, "flight_delays")
    assert len(mine(cloud).watches) == len(mine(cloud).runs) == 1
    assert row(cloud).watch is not None


def test_a_row_that_was_read_later_stays(cloud) -> None:
    """Whoever read first and writes last does not take it back."""
    store_run(cloud, 18)
    refresh_model(cloud, "flight_delays")
    later = row(cloud).model_copy(update={"refreshed": cloud.clock.now().replace(year=2100, microsecond=0)})
    cloud.artifacts.objects[ALL] = Overview(models=(later,)).to_bytes()
    refresh_model(cloud, "flight_delays")
    assert row(cloud) == later


def test_whoever_is_never_fast_enough_says_so(cloud, monkeypatch) -> None:
    """And is tried again by Airflow."""
    monkeypatch.setattr(cloud.artifacts, "write_if", lambda *_, **__: None)
    with refuses(ConflictError, found="20 times"):
        refresh_model(cloud, "flight_delays")


@pytest.mark.parametrize("uri", [ALL, MINE])
def test_a_broken_object_is_made_anew(cloud, uri) -> None:
    """It holds nothing that is nowhere else."""
    store_run(cloud, 18)
    cloud.artifacts.objects[uri] = b'{"kind": "overview", "models": 5}'
    refresh_model(cloud, "flight_delays")
    assert row(cloud).model == "flight_delays"
    assert len(mine(cloud).runs) == 1


def test_a_broken_row_of_another_model_takes_no_row_away(cloud) -> None:
    """It is left out; its own model's next task writes it anew."""
    store_run(cloud, 18)
    refresh_model(cloud, "flight_delays")
    other, broken = (row(cloud).model_copy(update={"model": model}) for model in ("departures", "digits"))
    data = Overview(models=(other, broken)).to_json()
    data["models"][1]["metric"] = "later"
    cloud.artifacts.objects[ALL] = json.dumps(data).encode()
    refresh_model(cloud, "flight_delays")
    assert [each.model for each in Overview.parse(cloud.artifacts.objects[ALL]).models] == [
        "departures",
        "flight_delays",
    ]
    cloud.artifacts.objects[ALL] = json.dumps(data).encode()
    models_refresh.drop_others(cloud, ["departures", "digits"])
    assert [each.model for each in Overview.parse(cloud.artifacts.objects[ALL]).models] == ["departures"]


def test_files_of_other_models_are_written_beside_a_broken_one(cloud) -> None:
    """The page of all models, too."""
    store_run(cloud, 18)
    refresh_model(cloud, "flight_delays")
    cloud.artifacts.objects[storage.model_overview_uri("bucket", "digits")] = b"{"
    write_files(cloud, ["digits", "flight_delays"])
    assert "gs://bucket/flight_delays/model.html" in cloud.artifacts.objects
    assert "gs://bucket/models.html" in cloud.artifacts.objects


@pytest.mark.parametrize("kind", KINDS)
def test_one_broken_run_hides_no_other(cloud, kind) -> None:
    """Its message stands on the page."""
    good = store_run(cloud, 18, "evaluation", "decision", "deployment", "timings")
    broken = store_run(cloud, 19)
    cloud.artifacts.objects[f"{storage.run_uri('bucket', 'flight_delays', broken)}/{kind}.json"] = b'{"kind": 1}'
    refresh_model(cloud, "flight_delays")
    assert [run.run_key for run in mine(cloud).runs] == [good]
    assert broken in mine(cloud).unreadable


def test_the_daily_task_reads_all_anew_and_drops_what_has_no_file(cloud, make_run) -> None:
    """And writes the page as files, without a script, each with its links into the bucket."""
    store_run(cloud, 18, "evaluation", "decision", "deployment", "timings")
    refresh_model(cloud, "flight_delays")
    gone = row(cloud).model_copy(update={"model": "gone"})
    cloud.artifacts.objects[ALL] = Overview(models=(row(cloud), gone)).to_bytes()
    models = make_run(dag_id="maintain").execute(RefreshModelsPageOperator(task_id="show", cloud=cloud.connect))
    assert [row.model for row in Overview.parse(cloud.artifacts.objects[ALL]).models] == models
    assert "flight_delays" in models
    assert "gone" not in models
    page = cloud.artifacts.objects["gs://bucket/models.html"].decode()
    assert 'href="https://storage.cloud.google.com/bucket/flight_delays/model.html"' in page
    assert "<script" not in page
    assert "2013-11-18 03:00" in cloud.artifacts.objects["gs://bucket/flight_delays/model.html"].decode()


def test_a_name_that_is_no_models_leaves_nothing(cloud, make_run) -> None:
    """The form of rollback takes any."""
    make_run(dag_id="rollback").execute(RefreshModelsPageOperator(task_id="show", model="nobody", cloud=cloud.connect))
    assert not cloud.artifacts.objects
