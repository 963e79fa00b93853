"""The end of a run: the task that the run's state follows.

Airflow takes the state of a run from its leaf tasks alone. Marking a run as failed skips what has not begun, and a
skipped leaf counts as a success; a failed teardown counts for nothing. This task runs last whatever happened, is never
skipped, and fails where any task did not succeed, but for those that the run's own plan skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Context

from retraining.core.errors import RunError
from retraining.core.naming import dags
from retraining.core.notification import notices
from retraining.core.notification.notices import Notice
from retraining.core.report.failures import require_success, unsuccessful
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.airflow.cloud_task import CloudTask
from retraining.operators.airflow.dag_run import reason_of_end, states_of_run_tasks
from retraining.operators.airflow.failures import KIND_KEY, find_unplanned, pulled_failure
from retraining.operators.airflow.notification import run_of, settle, tell
from retraining.operators.record.run_record import MAYBE_RUN_URI


class ConcludeRunOperator(CloudTask):
    """Fail when any other task of the run failed, did not run or was skipped. To be a teardown that fails the run.

    Of a run that its plan ended, what was skipped is as it should be. People are told of a failed run here, for a task
    whose worker died tells nobody.

    Args:
        run_uri: Folder of the run's record; empty: the run came to no plan.
    """

    template_fields = ("run_uri",)
    ui_color = "#e8e8e8"
    concludes = True
    """Its own failure repeats that of another task."""

    def __init__(self, *, run_uri: str = MAYBE_RUN_URI, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run_uri = run_uri

    @fail_for_good
    def execute(self, context: Context) -> None:
        """Ask Airflow for the states of the run's tasks; tell people of a failure, or that it is over."""
        ti: Any = context["ti"]  # the protocol of the SDK leaves `get_task_states` out
        others = [task_id for task_id in self.dag.task_ids if task_id != self.task_id]  # in the run's order
        ended, seen = reason_of_end(ti), states_of_run_tasks(context, others)
        try:
            require_success(ti.run_id, seen, may_skip=ended is not None)
        except RunError:
            self._tell(context, seen, may_skip=ended is not None)
            raise
        if ended is None:
            settle(self.cloud, dags.find_model_of_dag(ti.dag_id), ti.dag_id, "failure", "budget")
        self.log.info(f"nothing was done: {ended}" if ended else "every task succeeded")

    def _tell(self, context: Context, seen: Mapping[str, str | None], *, may_skip: bool) -> None:
        def make() -> Notice:
            ti: Any = context["ti"]
            failed, left = unsuccessful(seen, may_skip=may_skip)
            kind = _first(ti.xcom_pull(task_ids=failed[0], key=KIND_KEY)) if failed else None
            model = dags.find_model_of_dag(ti.dag_id)
            message = pulled_failure(ti, failed[0]) if failed else None
            error = str(kind) if kind else None
            folder = self.run_uri or find_unplanned(self.cloud(), context)
            return notices.of_failure(model, run_of(context), failed, left, error, folder, message)

        tell(self.cloud, context, make, self.run_uri)


def _first(left: Any) -> Any:
    """Return what a task left in XCom; of a mapped one, of which Airflow gives a list, what the first left that did."""
    return next((each for each in left if each), None) if isinstance(left, list) else left
