"""Patches the count of changed rows: one sum only, no `dmlStats`, and nothing of it in jobs.getQueryResults.

Drivers of the DB-API take their `rowcount` from there, when a statement was started by jobs.insert.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

from localcloud.untyped import Untyped

_COUNTS = {
    "INSERT": "insertedRowCount",
    "UPDATE": "updatedRowCount",
    "DELETE": "deletedRowCount",
    "TRUNCATE_TABLE": "deletedRowCount",
}
_MERGED = "merge_action"
_PAGE = 10_000  # rows, where the request says nothing


class ChangedRows(int):
    """The sum of changed rows, with the counts that make it up."""

    counts: dict[str, str]

    @classmethod
    def of(cls, counts: dict[str, int]) -> ChangedRows:
        """Make a sum of counts by their names in `dmlStats`."""
        changed = cls(sum(counts.values()))
        changed.counts = {name: str(counts.get(name, 0)) for name in dict.fromkeys(_COUNTS.values())}
        return changed


def apply(executor: Untyped, routes: Untyped) -> None:
    """Count what statements change, and tell it with a job's statistics and with the answer of jobs.query."""
    finalize, build, attach = (
        executor._finalize_statement_result,
        executor._build_query_statistics,
        routes._attach_query_metadata,
    )

    @functools.wraps(finalize)
    def finalize_counted(table: Untyped, statement_type: str, **kwargs: Untyped) -> Untyped:
        rows, affected, fields = finalize(table, statement_type, **kwargs)
        if statement_type == "MERGE" and table.column_names[:1] == [_MERGED]:
            actions = Counter(_COUNTS[action] for action in table.column(0).to_pylist())
            return rows, ChangedRows.of(dict(actions)), fields
        if affected is not None and statement_type in _COUNTS:
            return rows, ChangedRows.of({_COUNTS[statement_type]: affected}), fields
        return rows, affected, fields

    @functools.wraps(build)
    def build_counted(*, num_dml_affected_rows: int | None, **kwargs: Untyped) -> Untyped:
        statistics = build(num_dml_affected_rows=num_dml_affected_rows, **kwargs)
        if isinstance(num_dml_affected_rows, ChangedRows):
            statistics["query"]["dmlStats"] = num_dml_affected_rows.counts
        return statistics

    @functools.wraps(attach)
    def attach_counted(response: dict[str, Any], job: Untyped) -> None:
        attach(response, job)
        counts = ((job.statistics or {}).get("query") or {}).get("dmlStats")
        if counts:
            response["dmlStats"] = counts

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_merged(bq_sql: str, **kwargs: Untyped) -> str:
        return _tell_merged(await translate(bq_sql, **kwargs))

    executor.rewrite_and_translate_statement = translate_merged
    executor._finalize_statement_result = finalize_counted
    executor._build_query_statistics = build_counted
    routes._attach_query_metadata = attach_counted


def count_in_results(app: Untyped, context: Untyped) -> None:
    """Tell the sum in the answer of jobs.getQueryResults, too."""
    from bqemulator.api.routes import jobs
    from bqemulator.domain.errors import ValidationError
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def answer(request: Untyped) -> JSONResponse:
        asked = {name: request.query_params.get(name) or "" for name in ("maxResults", "startIndex", "pageToken")}
        if not all(text == "" or (text.isascii() and text.isdigit()) for text in asked.values()):
            raise ValidationError("Invalid maxResults, startIndex or pageToken. Expected numbers, a token of a page")
        page = {
            "maxResults": int(asked["maxResults"] or _PAGE),
            "startIndex": int(asked["startIndex"] or 0),
            "pageToken": asked["pageToken"] or None,
        }
        where = request.path_params["project"], request.path_params["job"]
        response = jobs.get_query_results(*where, context, **page)
        job = context.catalog.get_job(*where)
        changed = (((job.statistics if job else None) or {}).get("query") or {}).get("numDmlAffectedRows")
        return JSONResponse(response if changed is None else {**response, "numDmlAffectedRows": changed})

    path = "/bigquery/v2/projects/{project}/queries/{job}"
    app.router.routes.insert(0, Route(path, answer, methods=["GET"]))  # before the emulator's own


def _tell_merged(translated: str) -> str:
    """Let DuckDB's MERGE say what it did with each row."""
    is_merge = translated.lstrip().upper().startswith("MERGE ")
    return f"{translated.rstrip().rstrip(';')} RETURNING {_MERGED}" if is_merge else translated
