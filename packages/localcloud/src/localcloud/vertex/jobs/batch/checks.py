"""What is wrong with a batch prediction job, as far as it can be known before it runs.

Comes in: a job, its model's version, and what BigQuery and Cloud Storage have. Goes out: findings.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.cloud.aiplatform_v1.types import BatchPredictionJob, Model

from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.tables import Tables
from localcloud.vertex.resources.validation import (
    Finding,
    check_bucket,
    check_display_name,
    check_labels,
    split_bigquery_uri,
)
from localcloud.vertex.wire.errors import InvalidArgument, Unimplemented

_FIELD = "batch_prediction_job"
_OFFERED = ("bigquery", "jsonl")
_INSTANCE_TYPES = ("", "array", "object")


def check_offered(job: BatchPredictionJob, version: Model) -> None:
    """Look whether the service has such a job, and the local cloud too.

    Raises:
        InvalidArgument: A format that the model does not support.
        Unimplemented: Formats that the local cloud does not read or write.
    """
    formats = (job.input_config.instances_format, job.output_config.predictions_format)
    supported = (version.supported_input_storage_formats, version.supported_output_storage_formats)
    for what, each, known in zip(("Instance", "Prediction"), formats, supported, strict=True):
        if each not in known:
            raise InvalidArgument(
                f'{what} format "{each}" is not supported for Model {version.name}.'
                f" Supported values are: [{', '.join(known)}]."
            )
    if formats[0] not in _OFFERED or formats[0] != formats[1]:
        raise Unimplemented(
            f"The local cloud does not offer batch predictions from {formats[0]} to {formats[1]}. Expected from"
            " bigquery to bigquery, or from jsonl to jsonl."
        )


def check_job(job: BatchPredictionJob, buckets: Buckets, tables: Tables) -> Iterator[Finding]:
    """Find what is wrong with a job.

    Raises:
        Unimplemented: A column whose values the local cloud cannot write.
    """
    yield from check_display_name(job.display_name, f"{_FIELD}.display_name")
    yield from check_labels(job.labels, f"{_FIELD}.labels")
    yield from _check_resources(job)
    yield from _check_instance_config(job)
    if job.input_config.instances_format == "bigquery":
        yield from _check_source_table(job, tables)
        yield from _check_destination(job, tables)
    else:
        yield from _check_objects(job, buckets)


def _check_resources(job: BatchPredictionJob) -> Iterator[Finding]:
    field = f"{_FIELD}.dedicated_resources"
    if "dedicated_resources" not in job:
        yield field, "The model supports only DEDICATED_RESOURCES. Set dedicated_resources with a machine_spec."
        return
    resources = job.dedicated_resources
    yield from check_machine(resources.machine_spec, "prediction", f"{field}.machine_spec")
    for name in ("starting_replica_count", "max_replica_count"):
        if getattr(resources, name) < 0:
            yield f"{field}.{name}", f"It is {getattr(resources, name)}. Expected 1 or more, or none."
    if resources.max_replica_count and resources.starting_replica_count > resources.max_replica_count:
        yield (
            f"{field}.starting_replica_count",
            f"It is {resources.starting_replica_count}, more than max_replica_count {resources.max_replica_count}.",
        )
    if job.manual_batch_tuning_parameters.batch_size < 0:
        yield (
            f"{_FIELD}.manual_batch_tuning_parameters.batch_size",
            f"It is {job.manual_batch_tuning_parameters.batch_size}. Expected 1 or more, or none.",
        )


def _check_instance_config(job: BatchPredictionJob) -> Iterator[Finding]:
    config, field = job.instance_config, f"{_FIELD}.instance_config"
    if config.instance_type not in _INSTANCE_TYPES:
        yield f"{field}.instance_type", f"It is {config.instance_type!r}. Expected 'array' or 'object', or none."
    if config.included_fields and config.excluded_fields:
        yield f"{field}.excluded_fields", "When included_fields is set, excluded_fields must be empty. Set one of them."
    if config.instance_type == "array" and job.input_config.instances_format == "jsonl" and not config.included_fields:
        yield (
            f"{field}.included_fields",
            "An instance_type of 'array' needs the order of a line's fields. Set included_fields.",
        )


def _check_source_table(job: BatchPredictionJob, tables: Tables) -> Iterator[Finding]:
    uri, field = job.input_config.bigquery_source.input_uri, f"{_FIELD}.input_config.bigquery_source.input_uri"
    parts = split_bigquery_uri(uri)
    if parts is None or None in parts:
        yield field, f"{uri!r} is no BigQuery table. Expected bq://project.dataset.table."
        return
    columns = tables.find_columns(uri.removeprefix("bq://"))
    if columns is None:
        yield field, f"The BigQuery table {uri!r} does not exist. Create it first."
        return
    for column in columns:
        if column.field_type == "INTERVAL":
            raise Unimplemented(
                f"The local cloud does not write columns of INTERVAL: {column.name!r} of {uri!r}. Cast it to STRING."
            )
    names, config = [column.name for column in columns], job.instance_config
    for name in (config.key_field, *config.included_fields, *config.excluded_fields):
        if name and name not in names:
            yield f"{_FIELD}.instance_config", f"The table {uri!r} has no column {name!r}. It has {names}."


def _check_destination(job: BatchPredictionJob, tables: Tables) -> Iterator[Finding]:
    uri = job.output_config.bigquery_destination.output_uri
    field = f"{_FIELD}.output_config.bigquery_destination.output_uri"
    parts = split_bigquery_uri(uri)
    if parts is None:
        yield field, f"{uri!r} is no BigQuery address. Expected bq://project[.dataset[.table]]."
        return
    project, dataset, table = parts
    if dataset and not tables.has_dataset(f"{project}.{dataset}"):
        yield field, f"The BigQuery dataset of {uri!r} does not exist. Create it first, or give bq://{project} alone."
    elif table and tables.find_columns(f"{project}.{dataset}.{table}") is not None:
        yield field, f"The BigQuery table {uri!r} exists. Expected one that does not: the job makes it."


def _check_objects(job: BatchPredictionJob, buckets: Buckets) -> Iterator[Finding]:
    if not job.input_config.gcs_source.uris:
        yield f"{_FIELD}.input_config.gcs_source.uris", "instances_format 'jsonl' goes with gcs_source. Set its uris."
    for index, uri in enumerate(job.input_config.gcs_source.uris):
        yield from check_bucket(uri, f"{_FIELD}.input_config.gcs_source.uris[{index}]", buckets)
    prefix, field = job.output_config.gcs_destination.output_uri_prefix, f"{_FIELD}.output_config.gcs_destination"
    yield from check_bucket(prefix, f"{field}.output_uri_prefix", buckets)
