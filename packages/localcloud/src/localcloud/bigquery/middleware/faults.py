"""Faults of BigQuery: how calls of the REST API are named and refused, and queries that fail once accepted.

In: requests, the store of faults. Out: events, errors in BigQuery's form, and a wrapped `execute_query_job`. Events are
named by the methods of the REST API (https://cloud.google.com/bigquery/docs/reference/rest), `bigquery.tables.get
project.dataset.table`.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from localcloud.codes import HTTP_STATUS
from localcloud.faults import FaultStore, InjectedError
from localcloud.untyped import Untyped

# The messages of https://cloud.google.com/bigquery/docs/error-messages. BigQuery says 403 for a quota, not 429.
_REASONS = {
    "PERMISSION_DENIED": "accessDenied",
    "RESOURCE_EXHAUSTED": "quotaExceeded",
    "UNAVAILABLE": "backendError",
    "INTERNAL": "internalError",
    "NOT_FOUND": "notFound",
    "ALREADY_EXISTS": "duplicate",
    "INVALID_ARGUMENT": "invalidQuery",
    "UNIMPLEMENTED": "notImplemented",
    "DEADLINE_EXCEEDED": "timeout",
    "CANCELLED": "stopped",
}
STATUS = {**HTTP_STATUS, "RESOURCE_EXHAUSTED": 403}
_COLLECTION_VERBS = {"GET": "list", "POST": "insert"}
_RESOURCE_VERBS = {"GET": "get", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
_PREFIX = re.compile(r"(?:/resumable)?(?:/upload)?/bigquery/v2/projects/(?P<project>[^/]+)/(?P<rest>.+)")


def event_of(method: str, path: str) -> tuple[str, str]:
    """Name a REST call: its method's id and what it concerns ("" for a collection); ("", "") for any other path."""
    match = _PREFIX.fullmatch(path)
    if match is None:
        return "", ""
    kind, *names = match["rest"].rstrip("/").split("/")
    ids = ".".join([match["project"], *(name.partition(":")[0] for name in names[::2])])
    if kind == "queries":
        return ("bigquery.jobs.getQueryResults", names[0]) if names else ("bigquery.jobs.query", "")
    if kind == "jobs":
        if not names:
            return f"bigquery.jobs.{_COLLECTION_VERBS.get(method, 'insert')}", ""
        return f"bigquery.jobs.{'cancel' if 'cancel' in names[1:] else _RESOURCE_VERBS.get(method, 'get')}", names[0]
    if kind == "datasets" and len(names) > 1:
        return _event_in_dataset(method, *names[1:]), ids
    verbs = _RESOURCE_VERBS if names else _COLLECTION_VERBS
    return f"bigquery.{kind}.{verbs.get(method, 'get')}", ids if names else ""


def _event_in_dataset(method: str, kind: str, *names: str) -> str:
    """Name a call about what lies in a dataset: tables with their rows and policies, routines, models."""
    if kind == "tables" and len(names) > 1:
        if names[1].startswith("rowAccessPolicies"):
            return _policy_event(method, list(names[1:]))
        if names[1:] in (("data",), ("insertAll",)):
            return f"bigquery.tabledata.{'list' if names[1] == 'data' else 'insertAll'}"
    verbs = _RESOURCE_VERBS if names else _COLLECTION_VERBS
    return f"bigquery.{kind}.{verbs.get(method, 'get')}"


def _policy_event(method: str, names: list[str]) -> str:
    """Name a call about row access policies by what stands behind its table."""
    _, _, verb = names[-1].partition(":")
    verbs = _RESOURCE_VERBS if len(names) > 1 else _COLLECTION_VERBS
    return f"bigquery.rowAccessPolicies.{verb or verbs.get(method, 'get')}"


def error_document(code: str, message: str, reason: str = "") -> dict[str, Any]:
    """Return an error in the form of BigQuery's REST API; its reason follows from the code when there is none."""
    detail = {"reason": reason or _reason(code), "message": message, "domain": "global"}
    error = {"code": STATUS[code], "message": message, "status": code}
    return {"error": {**error, "errors": [detail]}}


def _reason(code: str) -> str:
    return _REASONS.get(code, "invalid")


def fail_queries(routes: Untyped, faults: FaultStore) -> None:
    """Let an accepted query end with an error, or begin late: the job is there and says what happened."""
    from bqemulator.domain.errors import PermissionDeniedError

    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(project_id: str, job_id: str, bq_sql: str, *args: Untyped, **kwargs: Untyped) -> Untyped:
        try:
            async with faults.intercept("Query.Run", " ".join(bq_sql.split()), kinds=("error", "delay")):
                pass
        except InjectedError as injected:
            error = PermissionDeniedError(injected.message)  # any error that the routes store with the job
            error.bq_reason = injected.reason or _reason(injected.code)
            raise error from None
        return await original(project_id, job_id, bq_sql, *args, **kwargs)

    routes.execute_query_job = execute
