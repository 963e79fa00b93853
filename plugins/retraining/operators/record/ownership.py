"""Whose something is: another Airflow environment's is refused by name, and a run's lease keeps spans for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from retraining.core.documents import Document, Manifest, Plan, ScoringPlan
from retraining.core.naming import storage, trust, vertex
from retraining.core.naming.spans import marker_uri, tombstone_uri
from retraining.core.naming.trust import (
    require_agreement,
    require_garbage_collection_folder,
    require_monitor_folder,
    require_run_folder,
    require_scoring_folder,
)
from retraining.core.retention.leases import lease_of, needed, require_whole, waits_for
from retraining.core.retention.spans import whole_second
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record

if TYPE_CHECKING:  # `preview` asks here too, without Airflow
    from airflow.sdk import Context

LOGGER = logging.getLogger(__name__)


def own_run(cloud: CloudPort, context: Context, run_uri: str) -> Record:
    """Return the record of a run whose folder another task named: of this DAG's model, by today's settings.

    Raises:
        ContractError: The folder is another's, or its plan names other places than the settings.
    """
    ti: Any = context["ti"]
    require_run_folder(run_uri, cloud.settings.bucket, ti.dag_id)
    record = Record(cloud.artifacts, run_uri)
    plan = record.find_document(Plan)
    if plan is not None:
        require_agreement(plan, run_uri, cloud.settings)
    return record


def own_scoring(cloud: CloudPort, context: Context, run_uri: str) -> Record:
    """Return the record of a scoring whose folder another task named: of this DAG's model, by today's settings.

    Raises:
        ContractError: The folder is another's, or its plan names other places than the settings.
    """
    ti: Any = context["ti"]
    require_scoring_folder(run_uri, cloud.settings.bucket, ti.dag_id)
    record = Record(cloud.artifacts, run_uri)
    plan = record.find_document(ScoringPlan)
    if plan is not None:
        require_agreement(plan, run_uri, cloud.settings)
    return record


def own_monitor(cloud: CloudPort, context: Context, monitor_uri: str) -> Record:
    """Return the record of this monitor run, whose folder another task named.

    Raises:
        ContractError: The folder is another's.
    """
    ti: Any = context["ti"]
    require_monitor_folder(monitor_uri, cloud.settings.bucket, ti.dag_id, ti.run_id)
    return Record(cloud.artifacts, monitor_uri)


def own_garbage_collection(cloud: CloudPort, context: Context, cleaning_uri: str) -> Record:
    """Return the record of this cleaning, whose folder another task named.

    Raises:
        ContractError: The folder is another's.
    """
    dag_run: Any = context["dag_run"]
    require_garbage_collection_folder(
        cleaning_uri, cloud.settings.bucket, whole_second(dag_run.run_after), dag_run.run_id
    )
    return Record(cloud.artifacts, cleaning_uri)


def require_own_bucket(cloud: CloudPort) -> None:
    """Refuse a bucket that is not this environment's; the first run of all writes down whose it is.

    Raises:
        SettingsError: Another environment's documents are in it.
    """
    settings = cloud.settings
    uri = storage.owner_uri(settings.bucket)
    stored = cloud.artifacts.write_once(uri, settings.environment.encode(), "text/plain")
    trust.require_own_bucket(uri, stored[:300].decode(errors="replace").strip(), settings.environment)


def require_nobodys_bucket(cloud: CloudPort) -> None:
    """Refuse a bucket that is another environment's; one that is nobody's stays so.

    Raises:
        SettingsError: Another environment's documents are in it.
    """
    settings = cloud.settings
    uri = storage.owner_uri(settings.bucket)
    if (stored := cloud.artifacts.read_some([uri]).get(uri)) is not None:
        trust.require_own_bucket(uri, stored[:300].decode(errors="replace").strip(), settings.environment)


def require_own_model(cloud: CloudPort, model: str, *, staging: bool = False) -> None:
    """Refuse a model or endpoint of this name that is another environment's, or an endpoint that another model has.

    What no run made is nobody's. Versions of an earlier release carry no label of an environment: they belong to the
    one that has their files.

    Args:
        cloud: The hooks.
        model: Model id.
        staging: Whether its versions are tried on an endpoint of their own.

    Raises:
        SettingsError: They are another's.
    """
    ours, settings = cloud.environment, cloud.settings
    for version in cloud.registry.list_versions(model):
        owner = ours.owner(version.labels, version.artifact_uri) if version.run_key else None
        where = f"{version.version_name} of {version.artifact_uri}"
        trust.require_own_resource(where, owner, ours.label, settings.region)
    for name in (model, vertex.staging_of(model)) if staging else (model,):
        if endpoint := cloud.endpoints.get(name):
            trust.require_own_resource(endpoint.name, ours.owner(endpoint.labels, ""), ours.label, settings.region)
            trust.require_own_endpoint(endpoint.name, endpoint.labels.get(vertex.MODEL_LABEL, model), model)


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
