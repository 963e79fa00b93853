"""What holds for every DAG of the repository."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import airflow.sdk
import pytest
from airflow.sdk import Asset

from retraining.hooks.limits import STATEMENT_S
from retraining.operators.deployment.approval import WAIT

from .conftest import ROOT, run_python

MODELS = sorted(path.stem for path in (ROOT / "include" / "models").glob("*.yaml"))
HEAVY = (
    "google.cloud.",
    "google.api_core",
    "grpc",
    "tensorflow",
    "pandas",
    "numpy",
    "airflow.providers.google",
    # Airflow 3.1 has no timetables in its SDK and imports its models itself for the first DAG that has one.
    *(["airflow.models"] if hasattr(airflow.sdk, "CronTriggerTimetable") else []),
)


def test_every_model_has_its_dags(dags) -> None:
    """Four per spec whose examples have a time, score__ for each with that section, and three of all models."""
    kinds = ("retrain", "monitor", "walk_forward", "rollback")
    of_models = [f"{kind}__{model}" for kind in kinds for model in MODELS]
    scored = [model for model in MODELS if model != "departures"]
    of_all = ["maintain", "notify_test", "rollback"]
    assert sorted(dags) == sorted([*of_models, *(f"score__{model}" for model in scored), *of_all])


def test_every_dag_says_whose_and_what_it_is(dags) -> None:
    """Owner, tags, a description, a run-book without unfilled places; no catch-up, no start date."""
    for dag_id, dag in dags.items():
        assert set(dag_id.split("__", 1)) <= set(dag.tags)  # the kind, and the model where it has one
        assert dag.description
        assert dag.doc_md.startswith(f"# {dag_id}")
        assert "{" not in dag.doc_md
        assert dag.catchup is False
        assert dag.start_date is None  # with one, unpausing would start the newest past tick at once
        assert dag.max_active_runs == (
            16 if dag_id.startswith("rollback") else 1
        )  # they wait for each other by themselves
        assert all(task.owner not in ("", "airflow") for task in dag.tasks)


def test_rollbacks_come_before_what_serves_today_and_that_before_walk_forwards(dags) -> None:
    """By Airflow's weights, whatever hangs from a task; the model of higher priority before others of its kind."""
    weights = {dag_id: {task.priority_weight for task in dag.tasks} for dag_id, dag in dags.items()}
    assert weights["rollback"] == weights["rollback__flight_delays"] == {300}
    assert weights["retrain__flight_delays"] == weights["score__flight_delays"] == {205}
    assert weights["walk_forward__flight_delays"] == {105}
    assert weights["monitor__flight_delays"] <= {205, 300}
    rules = {str(task.weight_rule) for name in weights if "__" in name for task in dags[name].tasks}
    assert all("bsolute" in rule for rule in rules)  # its name, in Airflow 3.1 its class


def test_of_chained_jobs_those_that_are_near_their_end_go_first() -> None:
    """A machine is paid while it waits for them; a rollback comes first all the same."""
    from retraining.core.spec.files import load_spec
    from retraining.dags.retrain import retrain_dag

    spec = load_spec(ROOT / "include" / "models" / "flight_delays.yaml")
    spec = spec.model_copy(update={"tuning": None, "priority": 10})
    chained = retrain_dag(spec.model_copy(update={"jobs": "chained"}))
    weights = [chained.get_task(task_id).priority_weight for task_id in ("snapshot", "export", "train", "evaluate")]
    assert weights == [210, 230, 250, 270]
    assert max(task.priority_weight for task in chained.tasks) == 270
    assert {task.priority_weight for task in retrain_dag(spec).tasks} == {210}
    searching = load_spec(ROOT / "include" / "models" / "flight_delays.yaml").model_copy(update={"jobs": "chained"})
    assert searching.tuning
    searched = retrain_dag(searching)  # whose export has machines of its own
    assert [searched.get_task(task_id).priority_weight for task_id in ("export", "tune", "train")] == [205, 205, 245]


def test_a_runs_tasks_are_drawn_in_groups_and_keep_their_ids(dags) -> None:
    """Claims, labels and stored runs know the ids without a group's name."""
    dag = dags["retrain__flight_delays"]
    groups = dag.task_group.children
    assert [name for name in groups if name in ("data", "training", "promotion")] == ["data", "training", "promotion"]
    assert len(groups) <= 7
    assert dag.task_ids[:4] == ["plan", "snapshot", "check_data", "export"]
    assert not any("." in task_id for task_id in dag.task_ids)


def test_every_task_retries_with_a_growing_delay(dags) -> None:
    """Transient failures are retried, not at once."""
    for dag in dags.values():
        for task in dag.tasks:
            assert task.retries >= 2
            assert task.retry_delay.total_seconds() >= 30
            assert task.retry_exponential_backoff


def test_no_task_waits_for_a_pool_that_nobody_made(dags) -> None:
    """An operator's own argument of that name would be Airflow's: its tasks are never started, without a word."""
    assert {task.pool for dag in dags.values() for task in dag.tasks} == {"default_pool"}


def test_every_task_ends_by_itself(dags) -> None:
    """After a statement on BigQuery had its time, and within three hours; a person's answer has its own."""
    for dag in dags.values():
        for task in dag.tasks:
            if task.task_id == "approve" and WAIT == "execution_timeout":
                continue
            assert task.execution_timeout is not None, f"{dag.dag_id}.{task.task_id}"
            assert STATEMENT_S < task.execution_timeout.total_seconds() <= 3 * 3600


def test_runbook_names_every_task(dags) -> None:
    """The table of the run-book has a row per task."""
    for dag in dags.values():
        for task_id in dag.task_ids:
            assert f"| {task_id} |" in dag.doc_md


def test_the_tasks_stand_in_one_line(dags) -> None:
    """The order of the run; how it ends is in test_run_state.py."""
    dag = dags["retrain__flight_delays"]
    line = ["plan"]
    while following := dag.get_task(line[-1]).downstream_task_ids - {"report", "cancel_jobs"}:
        assert len(following) == 1
        line += following
    jobs = ["export", "tune", "train", "evaluate"]
    assert line == ["plan", "snapshot", "check_data", *jobs, "decide", "register", "deploy"]


def test_a_model_without_tuning_has_no_task_for_it(dags) -> None:
    """Nor a Param; and its cancel_jobs looks for no tuning jobs."""
    from retraining.core.spec.files import load_spec
    from retraining.dags.retrain import retrain_dag

    spec = load_spec(ROOT / "include" / "models" / "flight_delays.yaml")
    plain = retrain_dag(spec.model_copy(update={"tuning": None}))
    assert plain.get_task("export").downstream_task_ids == {"train"}
    assert "tune" not in plain.params
    assert len(plain.get_task("cancel_jobs").types) == 1
    assert len(dags["retrain__flight_delays"].get_task("cancel_jobs").types) == 2


def test_waiting_tasks_hold_no_slot(dags) -> None:
    """Sensors are in reschedule mode."""
    waiting = [task for dag in dags.values() for task in dag.tasks if hasattr(task, "poke")]
    assert {task.task_id for task in waiting} == {
        "export",
        "tune",
        "train",
        "evaluate",
        "predict",
        "plan_version",
        "export_version",
        "score",
        "multivariate",
        "register",
        "deploy",
        "roll_back",
        "end",
        "cancel_jobs",
    }
    assert all(task.mode == "reschedule" for task in waiting)


def test_the_monitor_can_start_the_retraining(dags) -> None:
    """The alias of the monitor's outlet and the asset of the schedule have the same name."""
    outlets = dags["monitor__flight_delays"].get_task("decide").outlets
    retrain = dags["retrain__flight_delays"]
    assets = retrain.timetable.asset_condition.objects
    assert [outlet.name for outlet in outlets] == [asset.name for asset in assets]
    assert [inlet.name for inlet in retrain.get_task("plan").inlets] == [asset.name for asset in assets]
    assert not any(isinstance(outlet, Asset) for outlet in outlets)  # it would fire with every success


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("as_of", ["2013-11-20T03:00:00Z", None], ["yesterday", 5]),
        ("window_days", [30], [7, 0, 4000, 1.5, "30"]),
        ("epochs", [1], [0, -1, "many"]),
        ("learning_rate", [0.1, 1], ["fast", None]),
        ("tune", ["auto", "always", "never"], ["yes", None]),
        ("force", [True], ["yes"]),
        ("deploy", [False], [0]),
        ("taken_from", ["staging/20131120t030000z-0123456789ab", None], ["staging", "gs://bucket/model/runs/key"]),
    ],
)
def test_the_form_refuses_what_cannot_be(dags, name: str, good: list[Any], bad: list[Any]) -> None:
    """Types and limits of the Params."""
    from tests.support.airflow_release import ParamValidationError

    param = dags["retrain__flight_delays"].params.get_param(name)
    for value in good:
        assert param.resolve(value) == value
    for value in bad:
        with pytest.raises(ParamValidationError):
            param.resolve(value)


def test_every_param_has_a_section_and_a_description(dags) -> None:
    """The form explains itself."""
    for dag in dags.values():
        for name in dag.params:
            schema = dag.params.get_param(name).schema
            assert schema.get("section"), name
            assert dag.params.get_param(name).description, name


def test_parsing_imports_nothing_heavy_and_asks_nobody(bundle) -> None:
    """No Google client, no TensorFlow, no metadata database; no socket is opened."""
    code = f"""
import json, socket, sys
import airflow.sdk
before = set(sys.modules)
def refuse(*args): raise AssertionError("a connection while parsing")
socket.socket.connect = refuse
import retrain, monitor, score, maintain, rollback
assert "retrain__flight_delays" in vars(retrain)
new = set(sys.modules) - before
print(json.dumps(sorted(name for name in new if name.startswith({HEAVY!r}))))
"""
    assert json.loads(run_python(bundle, code).splitlines()[-1]) == []


def test_nothing_reads_the_clock() -> None:
    """Time comes from the run, or from the hooks' clock where an operation waits or claims: never from a library."""
    pattern = r"(?<!clock\.)\b(now|utcnow|today)\(|time\.time\("
    folders = ("dags", "plugins/retraining/dags", "plugins/retraining/operators", "plugins/retraining/core")
    found = subprocess.run(
        ["grep", "-rnP", pattern, "--include=*.py", *folders], cwd=ROOT, text=True, capture_output=True, check=False
    )
    assert found.stdout == ""


def test_dags_serialise_and_come_back(dags) -> None:
    """What the scheduler stores is what the file says; links are in it."""
    from tests.support.airflow_release import DagSerialization

    for dag_id, dag in dags.items():
        data = DagSerialization.to_dict(dag)
        again = DagSerialization.from_dict(json.loads(json.dumps(data)))
        assert again.task_dict.keys() == dag.task_dict.keys()
        without_schedule = dag_id.startswith(("score__", "walk_forward__", "rollback")) or dag_id in (
            "retrain__digits",
            "retrain__departures",
            "notify_test",
        )
        assert again.timetable.periodic != without_schedule
    links = DagSerialization.from_dict(DagSerialization.to_dict(dags["retrain__flight_delays"]))
    assert {"Vertex AI job", "Job logs"} == set(links.get_task("train").extra_links)
    assert "Roll back to the version before" in links.get_task("deploy").extra_links
