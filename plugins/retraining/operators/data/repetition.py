"""When a query is asked again: what tells a wanted repetition from a retry, and what leads to other data."""

from __future__ import annotations

from airflow.sdk import Context

FORCE_WORDS = (
    "When the source is mended, trigger the DAG again with this run's as_of and the Param force: this run's data stays "
    "as recorded. When the query or the spec is changed, clear plan and what follows it: that makes another run of it"
)


def job_attempt(context: Context) -> str:
    """What tells a wanted repetition of a query (another run, a cleared task) from a retry."""
    ti = context["ti"]
    return f"{ti.dag_id}|{ti.run_id}|{ti.max_tries}"
