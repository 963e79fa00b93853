"""One DAG per spec: what a good, a broken and a changed file become."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

LIST_DAGS = """
import json, retrain, monitor
dags = {**{k: v for k, v in vars(retrain).items() if "__" in k and hasattr(v, "tasks")},
        **{k: v for k, v in vars(monitor).items() if "__" in k and hasattr(v, "tasks")}}
print(json.dumps({k: {"tags": sorted(d.tags), "tasks": sorted(d.task_ids), "doc": d.doc_md} for k, d in dags.items()}))
"""


def list_dags(bundle, run_python) -> dict:
    """DAGs of a bundle, as a fresh process parses them."""
    return json.loads(run_python(bundle, LIST_DAGS).splitlines()[-1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: broken\nscedule: null\n", "Did you mean 'schedule'"),
        ("name: [unclosed\n", "not YAML"),
        ("", "a NoneType"),
    ],
    ids=["misspelt", "unparsable", "empty"],
)
def test_a_broken_file_breaks_its_own_dag_only(bundle, run_python, text: str, message: str) -> None:
    """It is there, tagged, with the whole message; the good model is untouched."""
    (bundle / "dags" / "include" / "models" / "broken.yaml").write_text(text)
    dags = list_dags(bundle, run_python)
    assert sorted(dags) == ["monitor__flight_delays", "retrain__broken", "retrain__flight_delays"]
    assert "invalid-spec" in dags["retrain__broken"]["tags"]
    assert dags["retrain__broken"]["tasks"] == ["read_spec"]
    assert message in dags["retrain__broken"]["doc"]


def test_the_task_of_a_broken_spec_fails_for_good_with_the_message() -> None:
    """No retry: only a change of the file helps."""
    from airflow.sdk.exceptions import AirflowFailException

    from retraining.operators.invalid import RefuseSpecOperator

    with pytest.raises(AirflowFailException, match=r"x\.yaml: all wrong"):
        RefuseSpecOperator(task_id="read_spec", message="x.yaml: all wrong").execute({})


def test_a_missing_query_and_a_taken_param_name_are_invalid_specs(bundle, change_spec, run_python) -> None:
    """Found while parsing, not by a run at night."""
    change_spec("no_query", data__query="nowhere/examples.sql")
    change_spec("taken_name", training__hyperparameters={"force": 1.0}, tuning=None)
    dags = list_dags(bundle, run_python)
    assert "no file 'nowhere/examples.sql'" in dags["retrain__no_query"]["doc"]
    assert "a hyperparameter named 'force'" in dags["retrain__taken_name"]["doc"]


def test_only_the_wanted_dag_is_built(bundle, change_spec, run_python) -> None:
    """A worker that runs one task does not build the others."""
    change_spec("other_model")
    code = """
from pathlib import Path
import retrain, monitor
from retraining.core.settings import include_path
print(sorted(retrain.build_dags(include_path(), "retrain__other_model")))
print(sorted(monitor.build_dags(include_path(), "retrain__other_model")))
"""
    assert run_python(bundle, code).splitlines()[-2:] == ["['retrain__other_model']", "[]"]


def test_approval_is_a_task_only_where_the_spec_wants_it(bundle, change_spec, run_python) -> None:
    """Between register and deploy."""
    change_spec("careful", deployment__approval=True)
    dags = list_dags(bundle, run_python)
    assert "approve" in dags["retrain__careful"]["tasks"]
    assert "approve" not in dags["retrain__flight_delays"]["tasks"]
    code = "import retrain; dag = retrain.retrain__careful; t = dag.get_task('approve'); d = dag.get_task('deploy'); "
    code += "print(t.upstream_task_ids, t.downstream_task_ids, d.approval_task_id)"
    assert run_python(bundle, code).splitlines()[-1] == "{'register'} {'deploy'} approve"


def test_without_a_cron_only_the_asset_starts_it(bundle, change_spec, run_python) -> None:
    """schedule: null."""
    change_spec("on_demand", schedule=None, monitoring__schedule=None)
    code = "import retrain, monitor; print(retrain.retrain__on_demand.schedule, monitor.monitor__on_demand.schedule)"
    printed = run_python(bundle, code).splitlines()[-1]
    assert "retrain/on_demand" in printed
    assert "Cron" not in printed
    assert printed.endswith("None")


def test_unpausing_starts_no_run_of_the_past(dags) -> None:
    """The first run of the clock lies ahead; the schedule can be backfilled."""
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in dags.values():
        scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        info = scheduled.next_dagrun_info(last_automated_run_info=None)
        assert info.run_after > datetime.now(UTC) - timedelta(seconds=5)
        days = scheduled.iter_dagrun_infos_between(
            datetime(2013, 11, 17, tzinfo=UTC), datetime(2013, 11, 18, 23, tzinfo=UTC)
        )
        assert [day.logical_date.day for day in days][-1] == 18


def test_parse_time_of_a_hundred_models(bundle, change_spec, run_python) -> None:
    """Printed, not judged: seconds to build the DAGs of 100 specs, after Airflow's own import."""
    for number in range(99):
        change_spec(f"model_{number:02d}")
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
