"""The classifier of the monitor: asked for or skipped, one query and one job, and a signal of what it left."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core.documents import KINDS, Multivariate, MultivariateRequest, Plan, Signals, Snapshot
from retraining.core.monitoring import multivariate
from retraining.core.report.models_page.history import watch_row
from retraining.hooks.airflow_exceptions import AirflowSkipException
from retraining.hooks.warehouse import Answer
from retraining.operators.monitoring.multivariate import MeasureMultivariateOperator
from retraining.operators.monitoring.watch import load_spec
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.ledger import signal
from tests.support.scenes.monitor_run import Monitor

CHAMPION_KEY = "20131120t030000z-0123456789ab"
RUN_URI = f"gs://bucket/flight_delays/runs/{CHAMPION_KEY}"
LOG = "local-project.retraining.requests_flight_delays"
DAG_ID = "monitor__flight_delays"
AS_OF = datetime(2013, 11, 21, 5, tzinfo=UTC)


def put(cloud: FakeCloud, uri: str, example: str, **changes: Any) -> None:
    document = json.loads((EXAMPLES / f"{example}.json").read_text()) | changes
    kind = example.split("__")[0]
    cloud.artifacts.objects[f"{uri}/{kind}.json"] = KINDS[kind].parse(json.dumps(document)).to_bytes()


def make_signals(as_of: datetime = AS_OF, **changes: Any) -> Signals:
    values = {
        "model": "flight_delays",
        "as_of": as_of,
        "window_hours": 24,
        "champion": {"version_id": "1", "run_key": CHAMPION_KEY},
        "endpoint_name": "projects/p/locations/r/endpoints/flight_delays",
        "log_table": LOG,
        "requests": 900,
        "bytes_read": 0,
        "signals": (),
    }
    return Signals.model_validate(values | changes)


@pytest.fixture
def cloud() -> FakeCloud:
    """A champion of the evening before, whose run table is there."""
    fake = FakeCloud()
    spec = json.loads((EXAMPLES / "plan__scheduled.json").read_text())["spec"] | {"name": "flight_delays"}
    own = {"model": "flight_delays", "spec": spec, "bucket": "bucket"}
    put(fake, RUN_URI, "plan__scheduled", run_key=CHAMPION_KEY, run_uri=RUN_URI, **own)
    put(fake, RUN_URI, "snapshot__three_new_spans", run_key=CHAMPION_KEY)
    fake.warehouse.schemas[LOG] = []
    return fake


@pytest.fixture
def start(cloud: FakeCloud, make_run: Any) -> Any:
    """Return a monitor run behind `measure`, and its task."""

    def begin(
        *, asked: bool = False, hour: int = 5, day: int = 21, signals: Signals | None = None
    ) -> tuple[Any, MeasureMultivariateOperator, str]:
        as_of = datetime(2013, 11, day, hour, tzinfo=UTC)
        run = make_run(dag_id=DAG_ID, run_id=f"manual__{day}_{hour}", params={"multivariate": asked})
        from retraining.core.naming import storage

        folder = storage.monitor_uri("bucket", "flight_delays", as_of, run.run_id)
        cloud.artifacts.objects[f"{folder}/signals.json"] = (signals or make_signals(as_of)).to_bytes()
        run.xcoms["measure", "return_value"] = {"monitor_uri": folder}
        task = MeasureMultivariateOperator(
            task_id="multivariate", model="flight_delays", run_uri=folder, cloud=cloud.connect
        )
        return run, task, folder

    return begin


def leave_result(cloud: FakeCloud, folder: str) -> None:
    put(cloud, folder, "multivariate__drifted")
    cloud.jobs.end(cloud.jobs.newest, seconds=90)


def test_nobody_asks_and_nothing_is_paid(cloud, start) -> None:
    """By default there is neither a query nor a job."""
    run, task, _ = start()
    with pytest.raises(AirflowSkipException, match="nobody asked for it"):
        run.execute(task)
    assert not cloud.jobs.jobs
    assert not cloud.warehouse.asked


def test_the_form_asks_for_one_query_and_one_job(cloud, start, caplog) -> None:
    """However often the task looks; the price is in its log before."""
    caplog.set_level("INFO")
    run, task, folder = start(asked=True)
    for _ in range(3):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
    leave_result(cloud, folder)
    assert run.execute(task)["uri"] == f"{folder}/multivariate.json"
    assert len(cloud.jobs.jobs) == 1
    assert [asked for asked in cloud.warehouse.asked if "dry" not in asked] == [cloud.warehouse.asked[1]]
    assert cloud.warehouse.limits == {"multivariate": 10**10}
    assert "USD an hour" in caplog.text
    program = cloud.jobs.specs[0]["job_spec"]["worker_pool_specs"][0]["container_spec"]
    assert program["args"] == ["separate", f"--request={folder}/multivariate_request.json"]


def test_what_would_read_too_much_is_not_read(cloud, start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the statement nor the job is paid for, and the reason has both numbers."""
    monkeypatch.setattr(cloud.warehouse, "dry_run", lambda *_: Answer(bytes_processed=11_000_000_000))
    run, task, _ = start(asked=True)
    with pytest.raises(AirflowSkipException, match=r"11\.000 GB, at most 10"):
        run.execute(task)
    assert not cloud.jobs.jobs
    assert not cloud.warehouse.asked


def test_the_request_names_features_alone(cloud, start) -> None:
    """No key, no label, no time."""
    run, task, folder = start(asked=True)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    request = MultivariateRequest.parse(cloud.artifacts.objects[f"{folder}/multivariate_request.json"])
    spec = load_spec("flight_delays")
    names = [column.name for column in request.columns]
    assert set(names) <= set(spec.feature_names)
    assert names
    assert not {spec.data.key, spec.label.name, spec.data.event_time} & set(names)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"requests": 199}, "199 instances are too few to judge"),
        ({"champion": None}, "no champion that was asked"),
        ({"log_table": None}, "no champion that was asked"),
    ],
)
def test_what_cannot_be_judged_is_skipped_though_it_was_asked_for(cloud, start, changes, reason) -> None:
    run, task, _ = start(asked=True, signals=make_signals(**changes))
    with pytest.raises(AirflowSkipException, match=reason):
        run.execute(task)
    assert not cloud.jobs.jobs


def test_every_so_many_days_one_is_asked_for(cloud, start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever came of the last one: a job that fails is not made again an hour later."""
    from retraining.operators.monitoring import multivariate as multivariate_task

    spec = load_spec("flight_delays").with_overrides({"monitoring.multivariate.every_days": 2})
    monkeypatch.setattr(multivariate_task, "load_spec", lambda _: spec)
    made = []
    for day, hour in ((21, 5), (21, 6), (22, 5), (23, 4), (23, 5), (23, 6)):
        run, task, _ = start(day=day, hour=hour)
        try:
            run.execute(task)
        except AirflowRescheduleException:
            made.append((day, hour))
        except AirflowSkipException:
            continue
    assert made == [(21, 5), (23, 5)]


def test_a_giant_batch_is_none_of_the_requests_that_are_told_apart(cloud) -> None:
    """Where one request brought most of them; it is left out of the other signals, too."""
    plan = Plan.parse(cloud.artifacts.objects[f"{RUN_URI}/plan.json"])
    snapshot = Snapshot.parse(cloud.artifacts.objects[f"{RUN_URI}/snapshot.json"])
    giant = signal("traffic:giant batch", because="giant_batch").model_dump()
    found = {}
    for name, signals in (("usual", make_signals()), ("giant", make_signals(signals=(giant,)))):
        query = multivariate.render_sample_sql(plan, snapshot, signals, "a-project.b.c", (), with_run_table=True)
        found[name] = {each.name: each.value for each in query.parameters}.get("large_batch")
        assert ("ARRAY_LENGTH(request_payload) <= @large_batch" in query.sql) is (name == "giant")
    assert found == {"usual": None, "giant": plan.spec.monitoring.min_requests // 2}


def test_an_expired_run_table_is_made_up_for_by_the_champions_query(cloud, start) -> None:
    """The table is there: its rows; else what the query gives now, with the champion's own parameters."""
    plan = Plan.parse(cloud.artifacts.objects[f"{RUN_URI}/plan.json"])
    snapshot = Snapshot.parse(cloud.artifacts.objects[f"{RUN_URI}/snapshot.json"])
    sides = [
        multivariate.render_sample_sql(plan, snapshot, make_signals(), "a-project.b.c", (), with_run_table=there)
        for there in (True, False)
    ]
    assert f"`{snapshot.table}`" in sides[0].sql
    assert plan.query.sql not in sides[0].sql
    assert plan.query.sql in sides[1].sql
    names = [{parameter.name for parameter in query.parameters} for query in sides]
    assert names[1] - names[0] == {"window_start", "window_end", "as_of"}
    assert {"requests_start", "requests_end", "most", "test_start"} <= names[0]


def test_a_failed_classifier_is_told_and_holds_nothing_back(cloud, start) -> None:
    """The task fails for good, and the signal says that it was not judged."""
    run, task, _ = start(asked=True)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, "The replica exited with a non-zero status of 2.")
    with pytest.raises(AirflowFailException):
        run.execute(task)
    signal = multivariate.judge_classifier(load_spec("flight_delays"), None, asked=True)
    assert (signal.kind, signal.state, signal.reason) == ("multivariate", "not_judged", "classifier_failed")


def test_the_signal_says_what_drives_it(cloud) -> None:
    spec = load_spec("flight_delays")
    found = Multivariate.parse((EXAMPLES / "multivariate__drifted.json").read_text())
    signal = multivariate.judge_classifier(spec, found, asked=True)
    assert (signal.state, signal.value, signal.low, signal.high) == ("exceeded", 0.71, 0.69, 0.73)
    assert signal.examples == 5913
    assert "most by carrier, distance" in signal.message
    at_the_limit = found.model_copy(update={"auc": spec.monitoring.multivariate.min_auc})
    signal = multivariate.judge_classifier(spec, at_the_limit, asked=True)
    assert signal.state == "ok"
    assert multivariate.judge_classifier(spec, None, asked=False) is None


def test_an_hour_before_its_time_is_too_early() -> None:
    spec = load_spec("flight_delays").with_overrides({"monitoring.multivariate.every_days": 7})
    later = make_signals(AS_OF + timedelta(days=7))
    assert multivariate.reason_to_skip(spec, later, asked=False, lately=False) is None
    assert multivariate.reason_to_skip(spec, later, asked=False, lately=True)
    assert multivariate.reason_to_skip(spec, later, asked=True, lately=True) is None


@pytest.mark.parametrize(
    ("left", "outcome", "state"),
    [(["multivariate_request__two_features", "multivariate__drifted"], "warn", "exceeded"), ([], "none", None)],
    ids=["told apart", "not asked for"],
)
def test_what_the_classifier_found_is_decided_by_recorded_and_shown(make_run, left, outcome, state) -> None:
    """The row is taken again from what is stored (`decide` does), whatever the limit in the file is by then."""
    monitor = Monitor(make_run=make_run)
    run = monitor.measured(0, signal("skew:carrier", state="ok"))
    folder = run.xcoms["measure", "return_value"]["monitor_uri"]
    for example in left:
        put(monitor.cloud, folder, example)
    row = monitor.decide(run)
    assert row.outcome == outcome
    signals = Signals.parse(monitor.cloud.artifacts.objects[f"{folder}/signals.json"])
    shown = {each.kind: each.state for each in watch_row("key", row, signals).signals}
    assert shown.get("multivariate") == state
    assert shown["skew"] == "ok"
