"""The end of a run: the task that the run's state follows.

Airflow takes the state of a run from its leaf tasks alone. Marking a run as failed skips what has not begun, and a
skipped leaf counts as a success; a failed teardown counts for nothing. This task runs last whatever happened, is never
skipped, and fails where any task did not succeed, but for those that the run's own plan skipped.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.core.report.outcome import require_success
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.airflow.early_end import reason_of_end


class ConcludeRunOperator(BaseOperator):
    """Fail when any other task of the run failed, did not run or was skipped. To be a teardown that fails the run.

    Of a run that its plan ended, what was skipped is as it should be.
    """

    ui_color = "#e8e8e8"

    @fail_for_good
    def execute(self, context: Context) -> None:
        """Ask Airflow for the states of the run's tasks."""
        ti: Any = context["ti"]  # the protocol of the SDK leaves `get_task_states` out
        states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id]).get(ti.run_id, {})
        others = [task_id for task_id in self.dag.task_ids if task_id != self.task_id]  # in the run's order
        ended = reason_of_end(ti)
        require_success(ti.run_id, {task_id: states.get(task_id) for task_id in others}, may_skip=ended is not None)
        self.log.info(f"nothing was done: {ended}" if ended else "every task succeeded")
