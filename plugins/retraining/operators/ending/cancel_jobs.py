"""The task that ends what nobody waits for any more: jobs that the run left, and a deployment that was not done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.jobs.job import JobType
from retraining.core.naming import dags, vertex
from retraining.core.promotion.rollouts import MACHINES_COME_WITHIN
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudSensor
from retraining.operators.deployment.rollout_end import fence_off, settle_run
from retraining.operators.jobs.claims import cancel_all
from retraining.operators.record.ownership import own_run
from retraining.operators.record.run_record import MAYBE_RUN_URI


class CancelJobsOperator(CloudSensor):
    """Cancel what this DAG run left running: jobs whose task was failed or cleared while it slept, and a deployment.

    A deployment that was not done is taken back: its machines cost as much without traffic. That may take as long as
    they need to come, so it waits as `deploy` does, without a worker slot; so too for the job of a create without an
    answer.

    Args:
        types: Of jobs that the run may have left.
        run_uri: Folder of the run's record; empty: the run came to no plan, or deploys nothing.

    Returns:
        Names of the jobs that its last poke cancelled.
    """

    template_fields = ("run_uri",)

    def __init__(
        self, *, types: Sequence[JobType] = (JobType.CUSTOM,), run_uri: str = MAYBE_RUN_URI, **kwargs: Any
    ) -> None:
        super().__init__(**{"timeout": MACHINES_COME_WITHIN.total_seconds(), **kwargs})
        self.types = tuple(types)
        self.run_uri = run_uri

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue:
        """Cancel the jobs that are found; then settle the deployment.

        Raises:
            ContractError: A claim cannot be read, which may name a job that no list shows; all else has ended.
        """
        ti = context["ti"]
        label = vertex.dag_run_label(ti.dag_id, ti.run_id)
        left, certain, unreadable = cancel_all(cloud, label, self.types)
        settled = settle_run(cloud, dags.model_of_dag(ti.dag_id), label)
        if settled and self.run_uri:
            fence_off(cloud, own_run(cloud, context, self.run_uri), label)
        if settled and certain and unreadable:
            raise unreadable[0]  # all else has ended: the task's failure, and the run's, says what was not readable
        return PokeReturnValue(settled and certain, left)
