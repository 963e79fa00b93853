"""Airflow's exceptions from where the running release has them: 3.2 moved them to the task SDK, 3.1 is the floor."""

from __future__ import annotations

try:
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowSkipException,
        DownstreamTasksSkipped,
    )
except ImportError:
    from airflow.exceptions import (  # type: ignore[no-redef, attr-defined]
        AirflowException,
        AirflowFailException,
        AirflowSkipException,
        DownstreamTasksSkipped,
    )

__all__ = ["AirflowException", "AirflowFailException", "AirflowSkipException", "DownstreamTasksSkipped"]
