"""One DAG per spec: what good, broken and changed files become, all in one bundle that a fresh process parses once."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, copy_bundle, run_python, write_spec

BY_HAND = ("retrain__digits", "retrain__departures", "notify_test")
"""Without a schedule."""
REPOSITORY = {
    f"{kind}__{path.stem}" for path in (ROOT / "include/models").glob("*.yaml") for kind in ("retrain", "monitor")
}
BROKEN = {
    "misspelt": ("name: broken\nscedule: null\n", "Did you mean 'schedule'"),
    "unparsable": ("name: [unclosed\n", "not YAML"),
    "empty": ("", "a NoneType"),
    "deep": ("[" * 100_000, "more than 20 levels"),
    "a name & more": ("name: other\n", "data is missing"),
    "tagged": ("name: !!int abc\n", "the tag"),
    "anchored": ("name: &a [*a]\n", "the anchor &a"),
}
CHANGED: dict[str, dict[str, Any]] = {
    "no_query": {"data__query": "nowhere/examples.sql"},
    "taken_name": {
        "training": {"model": "own", "hyperparameters": {"force": 1.0}, "runtime": {"image": "host/own:1"}},
        "tuning": None,
    },
    "no_such_architecture": {"training__model": "wide_dep"},
    "no_gate": {"evaluation__gates": [{"name": "no_loss", "function": "nowhere.py:no_loss"}]},
    "own_gate": {"evaluation__gates": [{"name": "no_loss", "function": "hanging.py:no_loss"}]},
    "no_assertion": {"data__assertions": [{"name": "no_early", "query": "nowhere/no_early.sql"}]},
    "careful": {"deployment__approval": "first"},
    "on_demand": {"schedule": None, "monitoring__schedule": None},
    "new_day": {"triggers": {"new_day": {"tables": [{"name": "flights.flights", "time": "scheduled_departure"}]}}},
    "sources": {"triggers": {"assets": [{"name": "shop/parcels", "uri": "x-shop://parcels"}, {"uri": "gs://shop/a"}]}},
}
READ = """
import json, retrain, monitor
from retraining import dags as factories
from retraining.core.settings import include_path

def assets(dag):
    return sorted(asset.name for asset in getattr(getattr(dag.timetable, "asset_condition", None), "objects", ()))

dags = {k: v for file in (retrain, monitor) for k, v in vars(file).items() if "__" in k and hasattr(v, "tasks")}
print(json.dumps({
    "dags": {
        dag_id: {
            "tags": sorted(dag.tags),
            "tasks": {task.task_id: [sorted(task.upstream_task_ids), sorted(task.downstream_task_ids)]
                      for task in dag.tasks},
            "doc": dag.doc_md,
            "schedule": [type(dag.timetable).__name__, *assets(dag)],
            "any": type(getattr(dag.timetable, "asset_condition", None)).__name__,
            "inlets": {task.task_id: sorted(asset.name for asset in task.inlets) for task in dag.tasks if task.inlets},
            "outlets": {task.task_id: [f"{type(each).__name__} {each.name}" for each in task.outlets]
                        for task in dag.tasks if task.outlets},
        }
        for dag_id, dag in dags.items()
    },
    "only": [sorted(kind.build_dags(include_path(), "retrain__careful"))
             for kind in (factories.retrain, factories.monitor)],
    "approval": retrain.retrain__careful.get_task("deploy").approval_task_id,
}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The repository's models, broken and changed ones beside them, as a fresh process parses them."""
    bundle = copy_bundle(tmp_path_factory.mktemp("bundle"))
    for name, (text, _) in BROKEN.items():
        (bundle / "dags" / "include" / "models" / f"{name}.yaml").write_text(text)
    for name, changes in CHANGED.items():
        write_spec(bundle, name, **changes)
    gates = bundle / "dags" / "include" / "gates"
    gates.mkdir(exist_ok=True)
    # Whoever imported it would wait for ten minutes, and leave a file.
    hanging = "def no_loss(run): ...\nopen(__file__ + '.ran', 'w')\nimport time; time.sleep(600)\n"
    (gates / "hanging.py").write_text(hanging)
    (gates / "no_python.py").write_text("def no_loss(:")
    write_spec(bundle, "no_python", evaluation__gates=[{"name": "no_loss", "function": "no_python.py:no_loss"}])
    found = dict(json.loads(run_python(bundle, READ).splitlines()[-1]))
    assert not list(gates.glob("*.ran"))
    return found


def test_a_broken_file_breaks_its_own_dag_only(parsed) -> None:
    """Every other DAG is there, and nothing else: a broken model has no monitor."""
    invalid = {
        f"retrain__{re.sub(r'[^a-z_]', '_', name)}"
        for name in (*BROKEN, "no_query", "taken_name", "no_such_architecture", "no_gate", "no_python", "no_assertion")
    }
    good = {f"{kind}__{name}" for name in ("careful", "on_demand", "own_gate") for kind in ("retrain", "monitor")}
    assert {dag_id for dag_id, dag in parsed["dags"].items() if "invalid-spec" in dag["tags"]} == invalid
    assert REPOSITORY | good | invalid <= parsed["dags"].keys()
    assert not parsed["dags"].keys() & {f"monitor__{name}" for name in BROKEN}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_shows_the_whole_message(parsed, name: str) -> None:
    """Tagged, with one task that fails."""
    dag = parsed["dags"][f"retrain__{re.sub(r'[^a-z_]', '_', name)}"]
    assert list(dag["tasks"]) == ["read_spec"]
    assert BROKEN[name][1] in dag["doc"]


def test_the_task_of_a_broken_spec_fails_for_good_with_the_message() -> None:
    """No retry: only a change of the file helps."""
    from retraining.operators.airflow.refused_files import RefuseSpecOperator
    from tests.support.airflow_release import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"x\.yaml: all wrong"):
        RefuseSpecOperator(task_id="read_spec", message="x.yaml: all wrong").execute({})


def test_a_missing_query_a_taken_name_and_an_unknown_architecture_are_invalid_specs(parsed) -> None:
    """Found while parsing, not by a run at night."""
    assert "'nowhere/examples.sql'" in parsed["dags"]["retrain__no_query"]["doc"]
    assert "a hyperparameter named 'force'" in parsed["dags"]["retrain__taken_name"]["doc"]
    assert "'wide_deep'" in parsed["dags"]["retrain__no_such_architecture"]["doc"]


def test_a_gate_or_a_check_of_ones_own_that_is_not_there_is_an_invalid_spec(parsed) -> None:
    """By its name in the model's file; what is there is read and not run."""
    assert "no_gate.yaml, evaluation.gates, no_loss: no file 'nowhere.py'" in parsed["dags"]["retrain__no_gate"]["doc"]
    assert "no_python.py: it is no Python: SyntaxError" in parsed["dags"]["retrain__no_python"]["doc"]
    assert "data.assertions, no_early: no file 'nowhere/no_early.sql'" in parsed["dags"]["retrain__no_assertion"]["doc"]
    assert "decide" in parsed["dags"]["retrain__own_gate"]["tasks"]


def test_what_no_check_foresaw_breaks_its_own_dag_only(bundle: Path) -> None:
    """The code that reads one file fails as it never should: that model says so, the others are there."""
    code = """
import json
from retraining.core.settings import include_path
from retraining.dags import monitor, retrain

for file in (retrain, monitor):
    read = file.load_spec
    def load_spec(path, read=read):
        if path.stem == "digits":
            raise RecursionError("too deep")
        return read(path)
    file.load_spec = load_spec
found = {**retrain.build_dags(include_path(), None), **monitor.build_dags(include_path(), None)}
print(json.dumps({dag_id: dag.doc_md for dag_id, dag in found.items()}))
"""
    found = json.loads(run_python(bundle, code).splitlines()[-1])
    assert "digits.yaml: RecursionError: too deep" in found["retrain__digits"]
    assert "monitor__digits" not in found
    assert REPOSITORY - {"monitor__digits"} == found.keys()


def test_only_the_wanted_dag_is_built(parsed) -> None:
    """A worker that runs one task does not build the others."""
    assert parsed["only"] == [["retrain__careful"], []]


def test_approval_is_a_task_only_where_the_spec_wants_it(parsed) -> None:
    """Between register and deploy."""
    tasks = parsed["dags"]["retrain__careful"]["tasks"]
    assert tasks["approve"] == [["register"], ["deploy"]]
    assert parsed["approval"] == "approve"
    assert "approve" not in parsed["dags"]["retrain__flight_delays"]["tasks"]  # never


def test_without_a_cron_only_the_asset_starts_it(parsed) -> None:
    """schedule: null."""
    schedule = parsed["dags"]["retrain__on_demand"]["schedule"]
    assert schedule == ["AssetTriggeredTimetable", "retrain/on_demand"]
    flights = parsed["dags"]["retrain__flight_delays"]["schedule"]
    assert flights == ["AssetOrTimeSchedule", "retrain/flight_delays"]
    assert parsed["dags"]["monitor__on_demand"]["schedule"] == ["NullTimetable"]


def test_an_event_of_any_asset_starts_it(parsed) -> None:
    """The monitor's, and those of the source's own DAGs; the plan may ask for the events of each."""
    names = ["gs://shop/a", "retrain/sources", "shop/parcels"]
    dag = parsed["dags"]["retrain__sources"]
    assert dag["schedule"] == ["AssetOrTimeSchedule", *names]
    assert dag["any"] == "AssetAny"  # AssetAll waits for an event of each
    assert dag["inlets"] == {"plan": names}


def test_the_monitor_looks_for_new_days_only_where_the_spec_wants_it(parsed) -> None:
    """Beside the other tasks, so that neither waits for the other; its event goes through the alias, as decide's."""
    dag = parsed["dags"]["monitor__new_day"]
    assert dag["tasks"]["new_day"] == [[], []]
    assert dag["outlets"]["new_day"] == ["AssetAlias retrain/new_day"]
    assert "new_day" not in parsed["dags"]["monitor__sources"]["tasks"]


def test_unpausing_starts_no_run_of_the_past(dags) -> None:
    """The first run of the clock lies ahead, and the schedule can be backfilled; without one no clock starts it."""
    from tests.support.airflow_release import DagSerialization, first_clock_run

    for dag_id, dag in dags.items():
        scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        info = first_clock_run(scheduled)
        if dag_id in BY_HAND or dag_id.startswith(("score__", "walk_forward__", "rollback")):
            assert info is None
            continue
        assert info.run_after > datetime.now(UTC) - timedelta(seconds=5)
        days = scheduled.iter_dagrun_infos_between(
            datetime(2013, 11, 17, tzinfo=UTC), datetime(2013, 11, 18, 23, tzinfo=UTC)
        )
        assert [day.logical_date.day for day in days][-1] == 18


def test_a_form_is_stored_once_and_not_with_each_task(dags) -> None:
    """Copies for each task, and each class of it, were two fifths of the time to parse a DAG."""
    from tests.support.airflow_release import DagSerialization

    dag = dags["retrain__flight_delays"]
    assert {"as_of", "force"} <= set(dag.params)
    stored = json.dumps(DagSerialization.to_dict(dag))
    assert stored.count('"force"') == 1


def test_parse_time_of_a_hundred_models(bundle: Path) -> None:
    """Printed, not judged: seconds to build the DAGs of 100 specs, after Airflow's own import."""
    for number in range(100 - len(REPOSITORY) // 2):
        write_spec(bundle, f"model_{number:02d}")
    code = """
import time
import airflow.sdk
start = time.perf_counter()
import retrain
middle = time.perf_counter()
import monitor
end = time.perf_counter()
count = sum("__" in name and hasattr(dag, "tasks") for name, dag in vars(retrain).items())
print(f"{count} specs: retrain.py {middle - start:.2f} s, monitor.py {end - middle:.2f} s")
"""
    printed = run_python(bundle, code).splitlines()[-1]
    print(f"\n{printed}")
    assert printed.startswith("100 specs")
