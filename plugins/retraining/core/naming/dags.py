"""Names in Airflow: DAGs and their runs, the assets that start a retraining."""

from __future__ import annotations

import hashlib
import re

from retraining.core.documents.document import MODEL_PATTERN
from retraining.core.errors import ContractError

ROLLBACK = "rollback"
"""The DAG that gives an earlier version of any model the traffic back; `rollback__<model>` is of one model."""


RETRAIN = "retrain__"
"""How the id of the DAG begins that trains a model."""
MONITOR = "monitor"
WALK_FORWARD = "walk_forward"
MACHINE_POOL = "machine_pool"


def dag_run_hash(dag_run_id: str) -> str:
    """Return what tells the folders of two runs of one time apart."""
    return hashlib.sha1(dag_run_id.encode(), usedforsecurity=False).hexdigest()[:8]


def is_model(text: str) -> bool:
    """Return whether a text has the form of a model's name."""
    return re.fullmatch(MODEL_PATTERN, text) is not None


def retrain_dag_id(model: str) -> str:
    """Return the id of the DAG that trains a model."""
    return f"{RETRAIN}{model}"


def monitor_dag_id(model: str) -> str:
    """Return the id of the DAG that watches a model."""
    return f"{MONITOR}__{model}"


def walk_forward_dag_id(model: str) -> str:
    """Return the id of the DAG that trains a model as of many dates."""
    return f"{WALK_FORWARD}__{model}"


def rollback_dag_id(model: str) -> str:
    """Return the id of the DAG that gives an earlier version of one model the traffic back."""
    return f"{ROLLBACK}__{model}"


def is_walk_forward(dag_id: str) -> bool:
    """Return whether a DAG is such a one."""
    return dag_id.startswith(f"{WALK_FORWARD}__")


def rollback_run_id(model: str, ledger_id: str) -> str:
    """Return the id of the one run of the DAG `rollback` that a ledger row starts."""
    return f"{MONITOR}__{model}__{ledger_id}"


def model_of_dag(dag_id: str) -> str:
    """Return the model of `retrain__<model>` or `monitor__<model>`.

    Raises:
        ContractError: The DAG has none.
    """
    model = find_model_of_dag(dag_id)
    if model is None:
        raise ContractError("DAG id", repr(dag_id), "one like retrain__<model>", "Name the DAG so")
    return model


def kind_of_dag(dag_id: str) -> str:
    """Return what a DAG of a model does: `retrain`, `score`, `monitor`, `walk_forward`."""
    return dag_id.partition("__")[0]


def find_model_of_dag(dag_id: str) -> str | None:
    """Return the model of such a DAG; None of one of all models."""
    model = dag_id.partition("__")[2]
    return model if is_model(model) else None


def asset_name(model: str) -> str:
    """Name of the asset whose events start a retraining."""
    return f"retrain/{model}"


def asset_uri(model: str) -> str:
    """Return the address of that asset."""
    return f"x-retraining://{model}/drift"
