"""The task `roll_back` of a monitor: a run of the DAG `rollback`, once for the ledger row that orders it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context

from retraining.core.naming import dags
from retraining.core.promotion.rollbacks import LONGEST_REASON
from retraining.core.untyped import JsonObject
from retraining.hooks.airflow_exceptions import AirflowSkipException
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.monitoring.watch import load_spec


class StartRollbackOperator(TriggerDagRunOperator):
    """Start a rollback from the version that errs, with the row's words as its reason and a pause of retraining.

    The run's id follows from the row: whatever dies, and however often the task is cleared, there is one. It is skipped
    where the row orders none, and where the run is there already.

    Args:
        model: Name of the spec.
    """

    template_fields = ()

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        # Without a logical date: two rollbacks of one second would have the same.
        fixed = {"trigger_dag_id": dags.ROLLBACK, "logical_date": None, "skip_when_already_exists": True}
        super().__init__(**{**fixed, **kwargs})
        self.model = model

    @fail_for_good
    def execute(self, context: Context) -> None:
        """Read what was decided; hand the run to Airflow."""
        decided: JsonObject = context["ti"].xcom_pull(task_ids="decide")
        if decided["outcome"] != "rollback":
            raise AirflowSkipException(f"No rollback: {decided['words']}")
        days = load_spec(self.model).monitoring.policy.rollback_pause_days
        dag_run: Any = context["dag_run"]
        until = (dag_run.start_date or dag_run.run_after) + timedelta(days=days)
        self.trigger_run_id = dags.rollback_run_id(self.model, str(decided["ledger_id"]))
        self.conf = {
            "model": self.model,
            "reason": str(decided["words"])[:LONGEST_REASON],
            "from_version": decided.get("champion"),
            "pause_until": f"{until:%Y-%m-%d}",
        }
        super().execute(context)
