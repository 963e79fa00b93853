"""The end of a rollback's run: what it left half done is completed or brought back, and no process of it goes on."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Plan, Rollback
from retraining.core.errors import ConflictError
from retraining.core.naming import storage
from retraining.core.promotion import rollbacks
from retraining.core.promotion.rollouts import MACHINES_COME_WITHIN
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudSensor
from retraining.operators.deployment.rollout_end import settle_rollout, write_unbegun
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.deployment.version_rollback import asked_rollback, dag_run_label, rollback_record
from retraining.operators.record.run_record import Record


class EndRollbackOperator(CloudSensor):
    """Settle the rollout that the DAG run left, and fence its process off, if that lives still. To be a teardown.

    A run that ended well has left nothing.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"timeout": MACHINES_COME_WITHIN.total_seconds(), **kwargs})

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Bring the rollback's rollout, or the deployment that it stopped, to its end; then fence."""
        asked, label = asked_rollback(context), dag_run_label(context)
        state = RolloutState(cloud, asked.model)
        rollout = state.read_rollout()
        if rollout is not None and (rollout.dag_run == label or rollout.stopped_by == asked.name):
            try:
                if not settle_rollout(cloud, state):
                    return False
            except ConflictError as error:  # the task's process lives still, or another one settles it
                self.log.info("%s", error)
                return False
        if rollback_record(cloud, asked).find_document(Rollback) is None:
            _fence_off(cloud, state, label)
        return True


def _fence_off(cloud: CloudPort, state: RolloutState, label: str) -> None:
    """Leave another generation behind: also of another's open rollout, which the process may be about to stop."""
    if state.found is not None:
        state.fence_off()
        return
    for version in cloud.registry.list_versions(state.model):
        if not version.run_key:
            continue
        folder = storage.run_uri(cloud.settings.bucket, state.model, version.run_key)
        plan = Record(cloud.artifacts, folder).find_document(Plan)
        if plan is not None:
            write_unbegun(cloud, state, plan, rollbacks.registration_of(state.model, version), label)
            return
