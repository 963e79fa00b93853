"""Whose job a job is: the labels by which a task finds its own again, and those of its older generations."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.jobs.job import JobIdentity
from retraining.core.naming import vertex


def job_identity(context: Context, job: object) -> JobIdentity:
    """Return the identity of a job that this task instance wants.

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
