"""The task `roll_back`: one run of the DAG `rollback` for the row that orders it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import DAG

from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.hooks.airflow_exceptions import AirflowSkipException
from retraining.operators.airflow.params import rollback_params
from retraining.operators.monitoring.rollback import StartRollbackOperator
from tests.support.airflow_release import DagRunTriggerException
from tests.support.scenes.whole_run import load_dags

MODEL = "flight_delays"
LEDGER_ID = "20131121t050000z-01234567"


def start(make_run: Any, outcome: str, words: str = "Rolling back: 9 of 90 requests failed.") -> Any:
    """A try of the task; gives what Airflow is asked for."""
    run = make_run(dag_id=f"monitor__{MODEL}", run_after=datetime(2026, 1, 31, 23, 59, tzinfo=UTC))
    run.xcoms["decide", "return_value"] = {"outcome": outcome, "words": words, "champion": "3", "ledger_id": LEDGER_ID}
    with DAG("monitor", schedule=None):
        task = StartRollbackOperator(task_id="roll_back", model=MODEL)
    with pytest.raises((DagRunTriggerException, AirflowSkipException)) as raised:
        run.execute(task)
    return raised.value


def test_a_run_is_asked_for_by_an_id_that_follows_from_the_row(make_run: Any) -> None:
    """Asked again, it is there already and nothing happens; its form takes what it is given."""
    asked = [start(make_run, "rollback") for _ in range(2)]
    assert {each.dag_run_id for each in asked} == {"monitor__flight_delays__20131121t050000z-01234567"}
    assert all(each.skip_when_already_exists and not each.reset_dag_run for each in asked)
    assert (asked[0].trigger_dag_id, asked[0].logical_date) == ("rollback", None)
    given = {
        "model": MODEL,
        "reason": "Rolling back: 9 of 90 requests failed.",
        "from_version": "3",
        "pause_until": "2026-02-03",
    }
    assert asked[0].conf == given
    for name, value in given.items():
        assert rollback_params([MODEL])[name].resolve(value) == value


def test_a_long_reason_is_cut_to_what_the_form_takes(make_run: Any) -> None:
    """Else the run would be refused."""
    reason = start(make_run, "rollback", "x" * 900).conf["reason"]
    assert rollback_params([MODEL])["reason"].resolve(reason) == "x" * 500


@pytest.mark.parametrize("outcome", ["none", "warn", "retrain", "tune"])
def test_without_an_order_it_is_skipped(make_run: Any, outcome: str) -> None:
    """With the row's words."""
    skipped = start(make_run, outcome, "Waiting: no.")
    assert isinstance(skipped, AirflowSkipException)
    assert str(skipped) == "No rollback: Waiting: no."


def test_only_a_file_that_asks_for_it_has_the_task() -> None:
    """The others have none."""
    spec = load_spec(include_path() / "models" / f"{MODEL}.yaml")
    careful = load_dags("monitor").monitor_dag(spec)
    assert "roll_back" not in careful.task_ids
    bold = load_dags("monitor").monitor_dag(spec.with_overrides({"monitoring.policy.actions": {"errors": "rollback"}}))
    assert bold.get_task("roll_back").upstream_task_ids == {"decide"}
