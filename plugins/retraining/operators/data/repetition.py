"""When a query is asked again: what tells a wanted repetition from a retry."""

from __future__ import annotations

from airflow.sdk import Context


def job_attempt(context: Context) -> str:
    """Return what tells a wanted repetition of a query (another run, a cleared task) from a retry."""
    ti = context["ti"]
    return f"{ti.dag_id}|{ti.run_id}|{ti.max_tries}"
