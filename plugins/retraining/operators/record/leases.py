"""A run's lease on the spans it relies on: renewed first, then it is looked whether they are there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from airflow.sdk import Context

from retraining.core.documents import Document, Manifest
from retraining.core.naming import storage
from retraining.core.naming.spans import marker_uri, tombstone_uri
from retraining.core.retention.leases import lease_of, needed, require_whole, waits_for
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)


def renew_lease(cloud: CloudPort, model: str, run_key: str, context: Context) -> None:
    """Write down that a run is at work: from now on no cleaning deletes what it refers to."""
    ti: Any = context["ti"]
    uri = storage.lease_uri(cloud.settings.bucket, model, run_key)
    cloud.artifacts.overwrite(uri, lease_of(ti.dag_id, ti.run_id, ti.task_id), "application/json")


def leased_spans_exist(cloud: CloudPort, record: Record, request: Document | None, context: Context) -> bool:
    """Say, before a job is paid for, whether its spans are there; False while one of them is being deleted.

    Args:
        cloud: The hooks.
        record: Of the run.
        request: What the job reads.
        context: Airflow's.

    Raises:
        DataError: One that it reads is gone.
    """
    values: Any = request
    renew_lease(cloud, values.model, values.run_key, context)
    spans = needed(request, record.find_document(Manifest))
    if reason := waits_for(_existing(cloud, spans.folders, tombstone_uri)):
        LOGGER.warning(reason)
        return False
    require_whole(spans, _existing(cloud, spans.whole, marker_uri))
    return True


def _existing(cloud: CloudPort, folders: Iterable[str], address: Callable[[str], str]) -> set[str]:
    """Return those of the folders that have this object."""
    uris = {address(folder): folder for folder in sorted(folders)}
    return {uris[uri] for uri in cloud.artifacts.existing(list(uris))}
