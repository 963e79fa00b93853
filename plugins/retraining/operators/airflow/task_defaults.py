"""What the tasks of the DAGs have in common: how often and when Airflow tries them again, and when it gives them up."""

from __future__ import annotations

from datetime import timedelta

BOUNDED = {"execution_timeout": timedelta(hours=3)}
"""A statement on BigQuery is given up after two hours."""
RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}
