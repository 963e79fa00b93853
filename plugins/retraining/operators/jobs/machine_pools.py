"""The tasks of `machine_pool__<name>`: machines are made, kept for as long as the file says, and always deleted.

The pool is the only state: its id is the pool's name, and its labels say whose it is and when it ends. Each task may be
killed at any line and looks again.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.catalog.cost import load_prices
from retraining.core.errors import JobError
from retraining.core.jobs import machine_pools
from retraining.core.jobs.job import JobType
from retraining.core.jobs.machine_pools import ERROR, RUNNING, STOPPING, OpenPool
from retraining.core.naming import vertex
from retraining.core.settings import include_path
from retraining.core.spec.machine_pool import MachinePool, find_pool
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudSensor
from retraining.operators.record.ownership import require_own_bucket


class MachinePoolTask(CloudSensor):
    """A task about one pool.

    Args:
        machine_pool: Its name; `pool` is Airflow's own.
    """

    def __init__(self, *, machine_pool: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.machine_pool = machine_pool

    def find_mine(self, cloud: CloudPort, context: Context) -> OpenPool | None:
        """Return the pool as it stands, if this DAG run made it."""
        found = cloud.machine_pools.find(self.pool_id(cloud))
        return found if found is not None and found.labels.get(vertex.DAG_RUN_LABEL) == _dag_run(context) else None

    def pool_id(self, cloud: CloudPort) -> str:
        """Return the pool's id in this environment."""
        return machine_pools.pool_id(cloud.environment.label, self.machine_pool)


class OpenMachinePoolOperator(MachinePoolTask):
    """Make the pool's machines, once, and wait until they are there.

    What an earlier DAG run left of it is deleted first.

    Returns:
        `{pool_id, closes}`; null where the time to close has come already.
    """

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Look what is there; make it, or wait.

        Raises:
            JobError: The service could not make it; a retry tries again.
        """
        require_own_bucket(cloud)
        pool_id, pool = self.pool_id(cloud), find_pool(self.machine_pool, self.dag_id, include_path())
        found = cloud.machine_pools.find(pool_id)
        if found is None:
            return self._create(cloud, context, pool)
        if found.labels.get(vertex.DAG_RUN_LABEL) != _dag_run(context):
            self.log.warning("%s is of an earlier run, and %s: it is deleted first", pool_id, found.state)
        elif found.state == RUNNING:
            return PokeReturnValue(True, _result(found))
        elif found.state != ERROR:
            self.log.info("%s is %s", pool_id, found.state)
            return False
        cloud.machine_pools.delete(pool_id)
        if found.state == ERROR and found.labels.get(vertex.DAG_RUN_LABEL) == _dag_run(context):
            raise JobError(
                pool_id,
                f"its machines could not be made: {found.error or 'no reason is given'}",
                "machines",
                "Wait for the next try, or take other machines; the models' jobs have machines of their own meanwhile",
            )
        return False

    def _create(self, cloud: CloudPort, context: Context, pool: MachinePool) -> PokeReturnValue | bool:
        labels = machine_pools.pool_labels(pool, context["dag_run"].run_after)
        if int(labels[machine_pools.CLOSES_LABEL]) <= cloud.clock.now().timestamp():
            self.log.warning("nothing is made: it would have closed already, %g h after its opening", pool.hours)
            return PokeReturnValue(True, None)
        for line in machine_pools.price_lines(pool, load_prices(include_path()), cloud.settings.region):
            self.log.info("%s", line)
        own_accounts = cloud.settings.service_account is not None
        labels[vertex.DAG_RUN_LABEL] = _dag_run(context)
        cloud.machine_pools.create(
            self.pool_id(cloud), machine_pools.pool_request(pool, labels, own_accounts=own_accounts)
        )
        return False


class KeepMachinePoolOperator(MachinePoolTask):
    """Wait until the pool closes, and then until nothing runs on it any more, or its time is over."""

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Look at the time, then at the jobs."""
        found, now = self.find_mine(cloud, context), cloud.clock.now()
        if found is None or found.closes is None or found.state in (STOPPING, ERROR):
            return True
        if now < found.closes:
            return False
        jobs = cloud.jobs.find_active(vertex.KEY_LABEL, (JobType.CUSTOM,))
        running = [job.job_id for job in jobs if job.pool_id == found.pool_id]
        if running and found.ends is not None and now < found.ends:
            self.log.info("closed; waits for %s until %s", ", ".join(running), found.ends)
            return False
        if running:
            self.log.warning("its time is over: %s will be cancelled, and created again elsewhere", ", ".join(running))
        return True


class CloseMachinePoolOperator(MachinePoolTask):
    """Delete the pool, and wait until it is gone; a teardown, so that nothing of the run keeps it alive."""

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Delete it if it is there."""
        found = self.find_mine(cloud, context)
        if found is None:
            return True
        if found.state != STOPPING:
            self.log.info("%s is deleted", found.pool_id)
            cloud.machine_pools.delete(found.pool_id)
        return False


def _result(pool: OpenPool) -> XCom:
    return {"pool_id": pool.pool_id, "closes": pool.closes.isoformat() if pool.closes else None}


def _dag_run(context: Context) -> str:
    dag_run = context["dag_run"]
    return vertex.dag_run_label(dag_run.dag_id, dag_run.run_id)
