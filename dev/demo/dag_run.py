"""One run of `retrain__flight_delays`, as `retraining_laptop.dag_run` makes one of any model."""

from __future__ import annotations

from collections.abc import Callable

from retraining_laptop import dag_run
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import Outcome

MODEL = "flight_delays"
DAG_ID = f"retrain__{MODEL}"


def run_dag(
    api: AirflowApi,
    as_of: str,
    *,
    project: str,
    say: Callable[[str], None],
    timeout_s: float,
    verbose: bool = False,
    repeat: bool = True,
) -> Outcome:
    """Run the DAG for one logical date and return what it made."""
    return dag_run.run_dag(
        api, DAG_ID, as_of, project=project, say=say, timeout_s=timeout_s, verbose=verbose, repeat=repeat
    )


def read_outcome(api: AirflowApi, run_id: str, project: str) -> Outcome:
    """Return what a finished run made."""
    return dag_run.read_outcome(api, DAG_ID, run_id, project)
