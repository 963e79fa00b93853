"""`machine_pool__<name>`: one DAG per file in include/pools. Machines that jobs of many models share for some hours."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, chain

from retraining.core.errors import SpecError
from retraining.core.naming.dags import MACHINE_POOL
from retraining.core.spec.machine_pool import MachinePool, find_pools, load_pool
from retraining.core.spec.yaml_file import plain_id
from retraining.operators.airflow.notification import TOLD
from retraining.operators.airflow.refused_files import refusing_dag
from retraining.operators.airflow.schedules import cron_schedule
from retraining.operators.airflow.task_defaults import BOUNDED, RETRIES, weighed
from retraining.operators.jobs.machine_pools import (
    CloseMachinePoolOperator,
    KeepMachinePoolOperator,
    OpenMachinePoolOperator,
)

RUNBOOK = (Path(__file__).parent / "runbooks" / "machine_pool.md").read_text(encoding="utf-8")
BROKEN_RUNBOOK = (Path(__file__).parent / "runbooks" / "invalid_spec.md").read_text(encoding="utf-8")
HIGHEST = 10  # of a model's priorities: its jobs use the machines, and nobody pays for them longer than needed
MADE_WITHIN = timedelta(hours=2)
DELETED_WITHIN = timedelta(hours=6)


def machine_pool_dag(pool: MachinePool) -> DAG:
    """Make the DAG: whatever becomes of `open` and `keep`, `close` deletes the machines."""
    hours = timedelta(hours=pool.hours + pool.drain_hours)
    with DAG(
        dag_id=f"{MACHINE_POOL}__{pool.name}",
        description=pool.description,
        doc_md=RUNBOOK.replace("{name}", pool.name),
        schedule=cron_schedule(pool.opens) if pool.opens else None,
        catchup=False,
        max_active_runs=1,
        default_args={"owner": pool.owner, **RETRIES, **BOUNDED, **TOLD, **weighed(HIGHEST)},
        tags=["machine-pool", pool.name],
    ) as dag:
        opened = OpenMachinePoolOperator(task_id="open", machine_pool=pool.name, timeout=MADE_WITHIN.total_seconds())
        keep = KeepMachinePoolOperator(
            task_id="keep", machine_pool=pool.name, timeout=(hours + MADE_WITHIN).total_seconds()
        )
        close = CloseMachinePoolOperator(
            task_id="close", machine_pool=pool.name, timeout=DELETED_WITHIN.total_seconds()
        )
        # The run fails where any of them fails: `close` by its flag, the others by `kept`, for `keep` is no leaf then.
        chain(opened, keep, [close.as_teardown(on_failure_fail_dagrun=True), EmptyOperator(task_id="kept")])
    return dag


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """All DAGs by id."""
    dags = {}
    for path in find_pools(include):
        dag_id = f"{MACHINE_POOL}__{plain_id(path)}"
        if only not in (None, dag_id):
            continue
        try:
            dags[dag_id] = machine_pool_dag(load_pool(path))
        except SpecError as error:
            dags[dag_id] = refusing_dag(dag_id, path, error, BROKEN_RUNBOOK, what="pool", tag="machine-pool")
    return dags
