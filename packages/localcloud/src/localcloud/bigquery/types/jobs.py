"""INFORMATION_SCHEMA.JOBS: its columns, as far as the local cloud knows them, and its rows.

In: a statement that names the view, and the catalog. Out: rows, or what of the statement is not offered. Source:
cloud.google.com/bigquery/docs/information-schema-jobs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.untyped import Untyped

VIEWS = ("JOBS", "JOBS_BY_PROJECT")
_TABLE = "STRUCT<project_id STRING, dataset_id STRING, table_id STRING>"
COLUMNS = {
    "creation_time": "TIMESTAMP",
    "project_id": "STRING",
    "job_id": "STRING",
    "job_type": "STRING",
    "statement_type": "STRING",
    "priority": "STRING",
    "start_time": "TIMESTAMP",
    "end_time": "TIMESTAMP",
    "query": "STRING",
    "state": "STRING",
    "total_bytes_processed": "INT64",
    "total_bytes_billed": "INT64",
    "total_slot_ms": "INT64",
    "error_result": "STRUCT<reason STRING, location STRING, debug_info STRING, message STRING>",
    "cache_hit": "BOOL",
    "referenced_tables": f"ARRAY<{_TABLE}>",
    "labels": "ARRAY<STRUCT<key STRING, value STRING>>",
    "parent_job_id": "STRING",
    "transaction_id": "STRING",
}
_UNKNOWN = frozenset({
    "bi_engine_statistics", "continuous", "continuous_query_info", "destination_table", "dml_statistics", "edition",
    "job_creation_reason", "job_stages", "materialized_view_statistics", "metadata_cache_statistics",
    "principal_subject", "project_number", "query_dialect", "query_info", "reservation_id", "search_statistics",
    "session_info", "timeline", "total_modified_partitions", "total_services_sku_slot_ms", "transferred_bytes",
    "user_email", "vector_search_statistics",
})  # fmt: skip
"""Columns of the view that the local cloud cannot fill in."""
_ALL_JOBS = 1_000_000


def refused_part(tree: exp.Expression, view: exp.Table) -> str:
    """Return what of a statement is not offered; "" for nothing."""
    name = "INFORMATION_SCHEMA.JOBS"
    if not view.db.lower().startswith("region-"):
        return f"{name} without a region (`region-us`.{name})"
    alias = (view.alias or view.name.rpartition(".")[2]).lower()
    for column in tree.find_all(exp.Column):
        if unknown := next((part.name for part in column.parts if part.name.lower() in _UNKNOWN), ""):
            return f"column {unknown.lower()} of {name}"
        if not column.table and column.name.lower() == alias:
            return f"row of {name} as a value: some of its columns are not known"
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count) and view.parent_select is star.parent_select:
            return f"* of {name}: some of its columns are not known, name those that you need"
    return ""


def rows(project: str, region: str, ctx: Untyped) -> Iterator[Sequence[Any]]:
    """Yield the jobs of a project, but for those that ran in another region.

    Args:
        region: As a statement names it, `region-us`.
    """
    place = region.lower().removeprefix("region-")
    for job in ctx.catalog.list_jobs(project, max_results=_ALL_JOBS):
        location = ctx.catalog.localcloud_location_of(project, job.job_id)
        if location is None or location.lower() == place:
            yield _row(job)


def _milliseconds(moment: dt.datetime | None) -> dt.datetime | None:
    """Return a time as a job's document has it."""
    return moment and moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _row(job: Untyped) -> list[Any]:
    """Return the values of a job; structs are objects."""
    statistics: Mapping[str, Any] = job.statistics
    query = statistics.get("query") or {}
    asked = job.configuration.get(job.job_type.lower()) or {}
    is_query = job.job_type == "QUERY"
    error = job.error_result or {}
    names = ("reason", "location", "debugInfo", "message")
    shown = dict(zip(("reason", "location", "debug_info", "message"), map(error.get, names), strict=True))
    tables = ({"project_id": each["projectId"], "dataset_id": each["datasetId"], "table_id": each["tableId"]}
              for each in query.get("referencedTables", ()))  # fmt: skip
    labels = job.configuration.get("labels") or {}
    return [
        _milliseconds(job.creation_time),
        job.project_id,
        job.job_id,
        job.job_type,
        query.get("statementType"),
        asked.get("priority", "INTERACTIVE") if is_query else None,
        _milliseconds(job.start_time),
        _milliseconds(job.end_time),
        asked.get("query") if is_query else None,
        job.state,
        statistics.get("totalBytesProcessed", query.get("totalBytesProcessed")),
        query.get("totalBytesBilled"),
        query.get("totalSlotMs"),
        shown if job.error_result else None,
        query.get("cacheHit") if is_query else None,
        list(tables),
        [{"key": key, "value": value} for key, value in labels.items()],
        statistics.get("parentJobId"),
        (statistics.get("transactionInfo") or {}).get("transactionId"),
    ]
