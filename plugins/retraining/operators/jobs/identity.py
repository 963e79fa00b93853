"""Whose job a job is: the labels by which a task finds its own again, and those of its older generations."""

from __future__ import annotations

from dataclasses import dataclass

from airflow.sdk import Context

from retraining.core.naming import vertex


@dataclass(frozen=True, kw_only=True)
class JobIdentity:
    """A task instance's claim on its jobs.

    Attributes:
        key: Of this generation and job: `vertex.job_key`.
        owner: Of the task instance, whatever its generation: `vertex.job_owner`.
        dag_run: Of the DAG run.
        generation: Its number; grows when the task is cleared.
        retries: How many more jobs may follow those that failed for the program's reasons: the task's `retries`.
        try_number: Airflow's own count, over all generations.
    """

    key: str
    owner: str
    dag_run: str
    generation: int
    retries: int
    try_number: int

    @property
    def labels(self) -> dict[str, str]:
        """What the job carries."""
        return {
            vertex.KEY_LABEL: self.key,
            vertex.OWNER_LABEL: self.owner,
            vertex.DAG_RUN_LABEL: self.dag_run,
            vertex.GENERATION_LABEL: str(self.generation),
        }


def job_identity(context: Context, job: object) -> JobIdentity:
    """Identity of a job that this task instance wants.

    Args:
        context: Airflow's. `ti.max_tries` grows when the task is cleared and not when it is retried, so it numbers the
            generations.
        job: The job's whole specification.
    """
    ti = context["ti"]
    map_index = -1 if ti.map_index is None else ti.map_index
    owner = vertex.job_owner(dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=map_index)
    return JobIdentity(
        key=vertex.job_key(
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            task_id=ti.task_id,
            map_index=map_index,
            max_tries=ti.max_tries,
            job=job,
        ),
        owner=owner,
        dag_run=vertex.dag_run_label(ti.dag_id, ti.run_id),
        generation=ti.max_tries,
        retries=context["task"].retries or 0,
        try_number=ti.try_number,
    )
