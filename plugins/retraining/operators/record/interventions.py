"""What somebody did to a model beside its runs: went back to an earlier version, paused its retraining."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from retraining.core.documents import Pause, Rollback
from retraining.core.errors import ConflictError
from retraining.core.naming import storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.run_keys import stamp
from retraining.core.planning import pauses
from retraining.core.promotion.rollbacks import explain_since
from retraining.hooks.ports import CloudPort


def gone_back_since(cloud: CloudPort, model: str, context: Context) -> str:
    """Return that somebody went back after the run was ordered, as a sentence; empty: nobody did.

    Args:
        cloud: The hooks.
        model: Whose.
        context: Airflow's: of the run, which was ordered at its `run_after`.
    """
    dag_run = context["dag_run"]
    if dag_run.run_after is None:
        return ""
    folders = cloud.artifacts.list_folders(storage.rollbacks_uri(cloud.settings.bucket, model))
    ordered = stamp(dag_run.run_after)
    later = [folder for folder in folders if ObjectAddress.parse(folder).stem > ordered]
    uris = [storage.document_uri(folder, Rollback.kind_name()) for folder in later[::-1]]
    for uri, data in cloud.artifacts.read_some(uris[:3]).items():
        return explain_since(Rollback.parse(data, uri))
    return ""


def find_pause(cloud: CloudPort, model: str, context: Context) -> Pause | None:
    """Return the pause that holds when the DAG run starts; None: retraining may begin."""
    dag_run: Any = context["dag_run"]
    pause, _ = _read(cloud, model)
    return pause if pauses.holds(pause, dag_run.start_date or dag_run.run_after) else None


def store_pause(cloud: CloudPort, pause: Pause) -> None:
    """Store a pause, or that there is none, unless another one was asked for since.

    Raises:
        ConflictError: Somebody else wrote meanwhile.
    """
    stored, generation = _read(cloud, pause.model)
    if not pauses.replaces(pause, stored):
        return
    uri = _uri(cloud, pause.model)
    if cloud.artifacts.write_if(uri, pause.to_bytes(), generation) is None:
        raise ConflictError(uri, "another pause", "none since it was read", "The next try looks which one counts")


def _read(cloud: CloudPort, model: str) -> tuple[Pause | None, int]:
    uri = _uri(cloud, model)
    data, generation = cloud.artifacts.read_generation(uri)
    return (Pause.parse(data, uri) if generation else None), generation


def _uri(cloud: CloudPort, model: str) -> str:
    return storage.pause_uri(cloud.settings.bucket, model)
