"""What `make bench-fleet` makes of what it saw: who held slots, what was paid twice, what watching costs."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench import fleet_cloud, fleet_models, fleet_slots, fleet_watch
from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH
from bench.fleet_cloud import PaidJob
from bench.fleet_models import ALONE, BROKEN, expected_failures, model_names
from bench.fleet_night import limit_s
from bench.fleet_pool import MACHINE, Pool
from bench.fleet_report import Night, describe, problems, table
from bench.fleet_slots import Event, Run, Session
from retraining.core.errors import SpecError
from retraining.core.naming import vertex
from retraining.core.settings import Settings
from retraining.core.spec.files import load_query, load_spec
from retraining.core.spec.machine_pool import find_pools, load_pool
from retraining.core.spec.quotas import load_quotas

START = datetime(2026, 1, 1, 3, tzinfo=UTC)


def event(task_id: str, name: str, second: float, model: str = "fleet_001") -> Event:
    """A line of the audit log, so many seconds after three o'clock."""
    return Event(task=(f"retrain__{model}", "manual__1", task_id, -1), name=name, at=START + timedelta(seconds=second))


def session(model: str, second: float, lasts_s: float, task_id: str = "plan", **changes: Any) -> Session:
    """A time in a slot."""
    values: dict[str, Any] = {
        "dag_id": f"retrain__{model}",
        "task_id": task_id,
        "number": 1,
        "start": START + timedelta(seconds=second),
        "end": START + timedelta(seconds=second + lasts_s),
        "outcome": "success",
    }
    return Session(**{**values, **changes})


def run(model: str, failed_task_id: str | None = None) -> Run:
    """A run that ended after ten seconds."""
    state = "success" if failed_task_id is None else "failed"
    return Run(
        dag_id=f"retrain__{model}", state=state, seconds=10.0, failed_task_id=failed_task_id, states={"plan": state}
    )


def job(model: str, task_id: str = "train", state: str = "SUCCEEDED", minute: int = 0) -> PaidJob:
    """A job for the one run of a model, made at a minute and ended in the next; one that goes on has no end."""
    created = START + timedelta(minutes=minute)
    ended = None if state in {"RUNNING", "PENDING"} else created + timedelta(minutes=1)
    return PaidJob(
        run_key=f"run-of-{model}",
        task_id=task_id,
        model=model,
        state=state,
        created=created,
        ended=ended,
        started=created + timedelta(seconds=20),
    )


def night(**changes: Any) -> Night:
    """A good night of two models on two slots: 40 slot seconds in 25, beside the one that ran alone before."""
    names = model_names(2)
    values: dict[str, Any] = {
        "models": 2,
        "slots": 2,
        "kind": "chained",
        "start_s": 30,
        "quota": 0,
        "usd": 0.25,
        "alone_usd": None,
        "seconds": 25.0,
        "alone_seconds": 12.0,
        "pool": Pool(),
        "memory_bytes": 3_000_000_000,
        "calls": {
            ("2026-01-31T09:07Z", "Vertex AI", "JobService.GetCustomJob"): 20,
            ("2026-01-31T09:07Z", "Cloud Storage", "storage.objects.get"): 90,
            ("2026-01-31T09:08Z", "Vertex AI", "JobService.GetCustomJob"): 5,
        },
        "alone_calls": {("2026-01-31T09:01Z", "Cloud Storage", "storage.objects.get"): 9},
        "jobs": [*map(job, names), job(ALONE)],
        "sessions": [
            session("fleet_001", 0, 20),
            session("fleet_002", 1, 10),
            session("broken_data", 12, 10),
            session(ALONE, -100, 7),
        ],
        "runs": [run(ALONE), *map(run, names), *(run(name, task) for name, task in expected_failures().items())],
        "parse_seconds": {"retrain.py": 0.25},
    }
    return Night(**{**values, **changes})


def test_the_models_are_good_to_the_product_and_only_a_run_can_find_out_which_are_broken(tmp_path: Path) -> None:
    """Specs and queries are read as a DAG file reads them, and nobody else's models are there."""
    include = fleet_models.write_bundle(tmp_path, 2) / "include"
    paths = sorted((include / "models").glob("*.yaml"))
    names = sorted([ALONE, *model_names(2), *(broken.name for broken in BROKEN)])
    assert [path.stem for path in paths] == names
    for path in paths:
        spec = load_spec(path)
        assert spec.schedule is None
        assert "fleet.visits" in load_query(spec, include)
    assert {broken.task_id for broken in BROKEN} == {"snapshot", "check_data", "train"}
    paths[0].write_text(paths[0].read_text() + "unheard_of: 1\n")
    with pytest.raises(SpecError, match="unheard_of"):
        load_spec(paths[0])


@pytest.mark.parametrize("kind", fleet_models.KINDS)
def test_every_kind_of_night_is_one_that_the_product_takes(tmp_path: Path, kind: str) -> None:
    """Good models have the keys of their kind; the pool that they name has a file, and all machines asked for."""
    include = fleet_models.write_bundle(tmp_path, 1, kind, machines=3) / "include"
    spec = load_spec(include / "models" / "fleet_001.yaml")
    assert spec.jobs == ("chained" if kind == "chained" else "separate")
    pools = [load_pool(path) for path in find_pools(include)]
    assert [pool.name for pool in pools] == ([spec.machine_pool] if spec.machine_pool else [])
    assert [(each.machine, each.min, each.max) for pool in pools for each in pool.machines] == (
        [(MACHINE, 3, 3)] if kind == "pooled" else []
    )


def test_a_pool_is_paid_for_as_long_as_it_is_there() -> None:
    """Four machines for 100 s, at the rate of the 80 s for which two jobs had them for 0.25 USD."""
    shown = table(describe(night(kind="pooled", pool=Pool(machines=4, seconds=100.0))))
    assert "| pool: machines, s that they were there; list price of all of it, USD | 4, 100; 1.2500 |" in shown
    assert "pool:" not in table(describe(night()))


def test_the_table_is_the_same_each_time_and_ends_before_the_night() -> None:
    """Every day of the models' window has its visits, and both labels."""
    rows = fleet_models.visits()
    assert rows == fleet_models.visits()
    days = {str(row["visited"])[:10] for row in rows}
    assert len(days) == fleet_models.DAYS
    assert max(str(row["visited"]) for row in rows) < fleet_models.AS_OF.isoformat()
    assert 0.2 < sum(int(str(row["bought"])) for row in rows) / len(rows) < 0.8


def test_a_task_that_sleeps_holds_its_slot_only_between_start_and_sleep() -> None:
    """Two looks of two and three seconds with a minute between them are five slot seconds."""
    sessions = fleet_slots.pair_sessions(
        [
            event("train", "running", 0),
            event("train", "up_for_reschedule", 2),
            event("plan", "running", 10, model="fleet_002"),
            event("plan", "failed", 14, model="fleet_002"),
            event("train", "running", 62),
            event("train", "success", 65),
            event("report", "running", 70),  # its process was killed, and the database has no end
        ]
    )
    assert [(each.dag_id, each.number, each.seconds, each.outcome) for each in sessions] == [
        ("retrain__fleet_001", 1, 2, "up_for_reschedule"),
        ("retrain__fleet_002", 1, 4, "failed"),
        ("retrain__fleet_001", 2, 3, "success"),
    ]
    assert fleet_slots.look_seconds(sessions) == 3
    assert fleet_slots.look_seconds(sessions[:2]) is None


def test_tasks_at_once_are_counted_at_their_worst_instant() -> None:
    """One that begins in the instant in which another ends is not beside it."""
    assert fleet_slots.most_at_once([session("a", 0, 5), session("b", 5, 5), session("c", 7, 1)]) == 2
    assert fleet_slots.most_at_once([]) == 0


def test_the_task_that_failed_first_is_named_and_the_conclusion_only_if_it_is_alone() -> None:
    """By the ends that the database has."""
    tasks = {
        "train": ("failed", "2026-01-01 03:05"),
        "conclude": ("failed", "2026-01-01 03:06"),
        "plan": ("success", ""),
    }
    assert fleet_slots.first_failed(tasks) == "train"
    assert fleet_slots.first_failed({"conclude": ("failed", "2026-01-01 03:06")}) == "conclude"
    assert fleet_slots.first_failed({"plan": ("success", "2026-01-01 03:00")}) is None


@pytest.fixture
def database(tmp_path: Path) -> fleet_slots.Database:
    """The columns that are read of Airflow's tables, with a run in them."""
    path = tmp_path / "airflow.db"
    at = "2026-01-01 03:00:{:02d}.000000".format
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE log (id INTEGER PRIMARY KEY, dag_id, run_id, task_id, map_index, event, dttm);"
            "CREATE TABLE task_instance (dag_id, task_id, state, end_date);"
            "CREATE TABLE dag_run (dag_id, state, start_date, end_date);"
            "CREATE TABLE dag (fileloc, last_parse_duration);"
        )
        lines = [("retrain__a", "plan", "running", 0), ("retrain__a", "plan", "failed", 4), ("retrainsXa", "x", "y", 1)]
        connection.executemany(
            "INSERT INTO log (dag_id, run_id, task_id, map_index, event, dttm) VALUES (?, 'r', ?, NULL, ?, ?)",
            [(dag_id, task_id, name, at(second)) for dag_id, task_id, name, second in lines],
        )
        connection.execute("INSERT INTO task_instance VALUES ('retrain__a', 'plan', 'failed', ?)", (at(4),))
        connection.execute("INSERT INTO dag_run VALUES ('retrain__a', 'failed', ?, ?)", (at(0), at(6)))
        connection.execute("INSERT INTO dag_run VALUES ('retrain__b', 'running', ?, NULL)", (at(0),))
        connection.execute("INSERT INTO dag VALUES ('/dags/retrain.py', 0.5), ('/dags/retrain.py', 0.25)")
    return fleet_slots.Database(path)


def test_airflows_database_is_read_as_it_is_written(database: fleet_slots.Database) -> None:
    """Times without a zone are UTC, as Airflow writes them into SQLite; a run that goes on has no end."""
    (held,) = database.sessions()
    assert (held.seconds, held.start.tzinfo, held.outcome) == (4, UTC, "failed")
    (ended,) = database.runs()
    assert (ended.seconds, ended.failed_task_id) == (6, "plan")
    assert database.parse_seconds() == {"retrain.py": 0.5}


def test_calls_before_the_night_do_not_count() -> None:
    """Of a minute that both have a part of, the difference."""
    before = {
        ("2026-01-31T09:01Z", "Vertex AI", "a"): 3,
        ("2026-01-31T09:02Z", "Vertex AI", "JobService.GetCustomJob"): 4,
    }
    after = {
        **before,
        ("2026-01-31T09:02Z", "Vertex AI", "JobService.GetCustomJob"): 6,
        ("2026-01-31T09:03Z", "Vertex AI", "ModelService.GetModel"): 5,
        ("2026-01-31T09:03Z", "Cloud Storage", "storage.objects.get"): 9,
    }
    calls = fleet_cloud.between(before, after)
    assert calls == {
        ("2026-01-31T09:02Z", "Vertex AI", "JobService.GetCustomJob"): 2,
        ("2026-01-31T09:03Z", "Vertex AI", "ModelService.GetModel"): 5,
        ("2026-01-31T09:03Z", "Cloud Storage", "storage.objects.get"): 9,
    }
    assert fleet_cloud.by_service(calls) == {"Cloud Storage": 9, "Vertex AI": 7}
    assert fleet_cloud.busiest_minute(calls) == 5
    assert fleet_cloud.busiest_minute({}) == 0


def test_a_job_is_doubled_when_another_is_of_the_same_run_and_purpose() -> None:
    """A run's export and training are two purposes, two models' trainings two runs."""
    once = [job("a"), job("a", "export"), job("b")]
    assert fleet_cloud.doubled_jobs(once) == {}
    assert fleet_cloud.doubled_jobs([*once, job("a", minute=5), job("a", state="CANCELLED", minute=6)]) == {
        "a train": 2
    }
    assert fleet_cloud.retried_jobs([*once, job("a", minute=5)]) == {}
    assert fleet_cloud.running_jobs([*once, job("c", state="PENDING")]) == ["c train"]


def test_a_job_after_a_failed_one_is_a_retry_but_not_beside_it() -> None:
    """In whatever order they are listed."""
    after = [job("a", minute=1), job("a", state="FAILED")]
    assert (fleet_cloud.retried_jobs(after), fleet_cloud.doubled_jobs(after)) == ({"a train": 1}, {})
    beside = [job("a", state="FAILED", minute=1), job("a", state="RUNNING", minute=1)]
    assert (fleet_cloud.retried_jobs(beside), fleet_cloud.doubled_jobs(beside)) == ({}, {"a train": 1})


def test_labels_are_those_that_the_product_writes() -> None:
    """The local cloud's environment cannot import them."""
    assert (fleet_cloud.MODEL_LABEL, fleet_cloud.RUN_LABEL, fleet_cloud.TASK_LABEL) == (
        vertex.MODEL_LABEL,
        vertex.RUN_LABEL,
        vertex.TASK_LABEL,
    )


def test_the_settings_are_the_products_defaults() -> None:
    """A night is measured as it is deployed."""
    fields = Settings.__dataclass_fields__
    assert int(str(fields["watch_s"].default)) == fleet_watch.WATCH_S
    assert int(str(fields["wake_interval_s"].default)) == fleet_watch.WAKE_INTERVAL_S


@pytest.mark.parametrize(
    ("minutes", "looks", "slot_s"),
    [
        # Watched 10 s, then 60 s asleep and 4 s to look and 10 s more, up to 100 s of age; then one look at a time.
        (10, 10, 10 + 10 * 4 + 10),
        (1, 1, 10 + 4),
    ],
)
def test_watching_costs_what_the_schedule_of_looks_says(minutes: int, looks: int, slot_s: float) -> None:
    """Slot seconds of looks of four seconds, added up by hand."""
    cost = fleet_watch.cost_of_watching(minutes, 4.0)
    assert cost.looks == looks
    assert cost.slot_s == pytest.approx(slot_s)
    assert cost.slot_s_per_job_hour == pytest.approx(slot_s * 60 / minutes)
    assert 0 <= cost.seen_late_s <= 64


def test_an_hour_costs_less_for_each_minute_than_ten_do() -> None:
    """Sleeps grow with a job's age, and a job that ends is seen late by a tenth of its age at most, and a look."""
    short, long = (fleet_watch.cost_of_watching(minutes, 4.0) for minutes in fleet_watch.JOB_MINUTES)
    assert long.slot_s_per_job_hour < short.slot_s_per_job_hour / 2
    assert long.seen_late_s <= 300 + 4


def test_a_good_night_has_its_numbers_without_those_of_the_model_that_ran_alone() -> None:
    """40 slot seconds on two slots in 25 seconds: 80 % busy."""
    result = describe(night())
    assert problems(result) == []
    assert (result["slot_s"], result["ideal_s"], result["busy"], result["most_at_once"]) == (40, 20, 0.8, 2)
    assert result["runs"]["succeeded"] == ["fleet_001", "fleet_002"]
    assert result["runs"]["failed"] == expected_failures()
    assert result["jobs"]["by_kind"] == {"train": {"SUCCEEDED": 2}}
    assert result["calls"]["busiest_vertex_minute"] == 20
    assert (result["alone"]["slot_s"], result["alone"]["calls"]) == (7, {"Cloud Storage": 9})
    text = table(result)
    for row in (
        "| slots busy | 80% |",
        "| succeeded | 2 of 2 |",
        "| doubled, left running | 0, 0 |",
        "| jobs; a machine's start, s; at once at most | chained; 30; - |",
        "| machines of the good models: s; list price, USD | 80; 0.2500 |",
        "| one model alone: machines, s; list price, USD | 40; not known |",
    ):
        assert row in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": [run(ALONE), run("fleet_001", "train"), run("fleet_002")]}, "fleet_001 failed at train; expected it"),
        ({"runs": [run(ALONE), run("fleet_001")]}, "fleet_002 has no run that ended"),
        (
            {"runs": [run(ALONE), *map(run, [*model_names(2), *expected_failures()])]},
            "broken_data succeeded; expected it to fail at check_data",
        ),
        ({"runs": [run(ALONE), run("broken_data", "plan")]}, "broken_data failed at plan; expected it to fail at"),
        ({"jobs": [job("fleet_001"), job("fleet_001")]}, "fleet_001 train: jobs beside one of the same run: 1"),
        ({"jobs": [job("fleet_001", state="RUNNING")]}, "fleet_001 train: its job still runs"),
        ({"runs": [run(ALONE, "plan")]}, f"{ALONE} ended as failed; expected it to succeed"),
    ],
    ids=["another fails", "no end", "broken succeeds", "elsewhere", "paid twice", "left running", "alone fails"],
)
def test_what_is_not_as_it_should_be_is_named(changes: dict[str, Any], message: str) -> None:
    """And the command fails of it."""
    assert any(line.startswith(message) for line in problems(describe(night(**changes))))


def test_the_limit_grows_with_the_runs_and_not_with_slots_beyond_the_cores() -> None:
    """What waits for a core waits as long as what waits for a slot."""
    assert limit_s(23, 1) > limit_s(3, 1) >= 600 + 3 * 240
    assert limit_s(23, 200) == limit_s(23, os.cpu_count() or 1)


@pytest.fixture
def interrupted(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The bench, ended by a Ctrl-C before its servers are up, with its folders below a temporary one."""
    python = REPOSITORY_PATH / ".venv" / "localcloud" / "bin" / "python"
    if not python.exists():
        pytest.skip("the local cloud's environment is missing: run `make setup`")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((PACKAGES_PATH, str(REPOSITORY_PATH / "plugins"))),
        "TMPDIR": str(tmp_path),
    }
    started = subprocess.Popen(
        [str(python), "-m", "bench.fleet", "--models", "1", "--slots", "1"],
        env=environment,
        cwd=REPOSITORY_PATH,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield started
    started.kill()
    started.communicate()


def processes_of(folder: Path) -> list[str]:
    """The command lines of all processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended while we looked
            continue
        if str(folder) in line and int(path.parent.name) != os.getpid():
            found.append(line)
    return found


def test_a_ctrl_c_leaves_no_process(interrupted: subprocess.Popen[str], tmp_path: Path) -> None:
    """Also while the local cloud and Airflow's database are being made."""
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    while not processes_of(tmp_path):
        assert interrupted.poll() is None
        assert datetime.now(UTC) < deadline
    interrupted.send_signal(signal.SIGINT)
    _, errors = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert "bench-fleet: ended" in errors
    assert processes_of(tmp_path) == []
    assert list(tmp_path.glob("bench-fleet-*")) == []


def test_a_quota_is_a_file_of_the_bundle(tmp_path):
    """Where one is asked for, and the night's table says it."""
    limited = fleet_models.write_bundle(tmp_path / "limited", 1, fleet_models.CHAINED, most_jobs=6)
    quotas = load_quotas(limited / "include")
    assert quotas is not None
    assert quotas.regions[fleet_models.REGION].jobs == 6
    assert load_quotas(fleet_models.write_bundle(tmp_path / "plain", 1) / "include") is None
    assert "| chained; 60; 6 |" in table(describe(night(kind="chained", start_s=60, quota=6)))
