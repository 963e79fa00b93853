"""Patches scripts: their statements have no jobs.

Each statement of SQL in a script is a job of its own, with its result; `jobs.list` has them by `parentJobId`, and those
of a transaction say which. Source: cloud.google.com/bigquery/docs/multi-statement-queries#work_with_child_jobs.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from localcloud.bigquery.patches.error_words import words_of
from localcloud.untyped import Untyped


@dataclass(kw_only=True)
class _Statement:
    """What a statement of a script did.

    Attributes:
        kind: As `statementType` names it; "" for what has no name.
        table: Its rows; of a change of rows their number.
        error: What it ended with.
        transaction: The id of the transaction that it is in.
        frame: Its text and where that stands in the script, from line and column 1.
    """

    sql: str
    kind: str
    begun: Untyped
    ended: Untyped = None
    table: Untyped = None
    error: Untyped = None
    transaction: str | None = None
    frame: dict[str, Any] = field(default_factory=dict)


_RUN: ContextVar[list[_Statement] | None] = ContextVar("run", default=None)


def apply(executor: Untyped, routes: Untyped) -> None:
    """Make a job of each statement of a script."""
    _note_statements(executor)
    _store_jobs(executor, routes)
    _list_jobs(routes)


def _note_statements(executor: Untyped) -> None:
    from bqemulator.scripting import interpreter

    kind = interpreter.ScriptInterpreter
    run_query, execute, execute_dynamic = kind._run_query, kind._exec_sql, kind._run_statement_with_params

    async def run_noted(self: Untyped, bq_sql: str) -> Untyped:
        self._localcloud_table = await run_query(self, bq_sql)
        return self._localcloud_table

    def noted(method: Untyped) -> Untyped:
        @functools.wraps(method)
        async def run(self: Untyped, sql: str, *args: Untyped) -> None:
            from bqemulator.domain.errors import DomainError

            run = _RUN.get()
            statement = _begin(self, sql, executor)
            try:
                await method(self, sql, *args)
            except DomainError as error:
                _note(run, dataclasses.replace(statement, error=error, ended=self._ctx.clock.now()))
                raise
            table = self._final_table if self._localcloud_table is None else self._localcloud_table
            _note(run, dataclasses.replace(statement, table=table, ended=self._ctx.clock.now()))

        return run

    kind._run_query, kind._exec_sql, kind._run_statement_with_params = run_noted, noted(execute), noted(execute_dynamic)


def _begin(running: Untyped, sql: str, executor: Untyped) -> _Statement:
    """Return what is known of a statement before it runs; a transaction begins or ends with some."""
    from bqemulator.scripting.interpreter import _classify_txn_statement

    word = _classify_txn_statement(sql)
    if word == "BEGIN":
        running._localcloud_transaction = uuid.uuid4().hex
    running._localcloud_table = None
    statement = _Statement(
        sql=sql,
        kind=f"{word}_TRANSACTION" if word else executor.classify_statement_type(sql),
        begun=running._ctx.clock.now(),
        transaction=getattr(running, "_localcloud_transaction", None),
    )
    if word in ("COMMIT", "ROLLBACK"):
        running._localcloud_transaction = None
    return statement


def _note(run: list[_Statement] | None, statement: _Statement) -> None:
    if run is not None and statement.sql.strip().rstrip(";"):
        run.append(statement)


def _store_jobs(executor: Untyped, routes: Untyped) -> None:
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        statements: list[_Statement] = []
        token = _RUN.set(statements)
        try:
            job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        finally:
            _RUN.reset(token)
            for number, statement in enumerate(_placed(statements, bq_sql)):
                ctx.catalog.upsert_job(_job_of(statement, number, project_id, job_id, executor, ctx, routes))
        if statements:
            job.statistics["numChildJobs"] = str(len(statements))
        return job

    routes.execute_query_job = execute


def _placed(statements: Sequence[_Statement], script: str) -> Iterator[_Statement]:
    """Yield statements with their places in a script; one that was made of a text has the place of the whole."""
    last = 0
    for statement in statements:
        begin = script.find(statement.sql, last)
        begin = script.find(statement.sql) if begin < 0 else begin
        last = begin + len(statement.sql) if begin >= 0 else last
        ends = {"start": max(begin, 0), "end": last if begin >= 0 else len(script)}
        frame: dict[str, Any] = {"text": statement.sql}
        for name, end in ends.items():
            frame[f"{name}Line"] = script.count("\n", 0, end) + 1
            frame[f"{name}Column"] = end - (script.rfind("\n", 0, end) + 1) + 1
        yield dataclasses.replace(statement, frame=frame)


def _job_of(
    statement: _Statement, number: int, project: str, parent: str, executor: Untyped, ctx: Untyped, routes: Untyped
) -> Untyped:
    """Store a statement's result, and return its job."""
    from bqemulator.catalog.etag import generate_etag
    from bqemulator.catalog.models import JobMeta

    job = f"script_job_{hashlib.sha256(f'{project}:{parent}'.encode()).hexdigest()[:32]}_{number}"
    table = executor._EMPTY_ARROW if statement.table is None else statement.table
    table, changed, fields = executor._finalize_statement_result(
        table, statement.kind, bq_sql=statement.sql, project_id=project, ctx=ctx
    )
    routes.JOB_RESULTS[job] = table
    routes.JOB_SCHEMAS[job] = executor.build_response_schema(table.schema) if fields is None else fields
    statistics: dict[str, Any] = executor._build_query_statistics(
        total_rows=table.num_rows, statement_type=statement.kind, num_dml_affected_rows=changed
    )
    statistics["parentJobId"] = parent
    statistics["scriptStatistics"] = {"evaluationKind": "STATEMENT", "stackFrames": [statement.frame]}
    if statement.transaction:
        statistics["transactionInfo"] = {"transactionId": statement.transaction}
    return JobMeta(
        project_id=project,
        job_id=job,
        job_type="QUERY",
        state="DONE",
        configuration=executor._build_query_configuration(statement.sql, project, job),
        statistics=statistics,
        error_result=_error_of(statement, routes),
        creation_time=statement.begun,
        start_time=statement.begun,
        end_time=statement.ended,
        etag=generate_etag(project, job, str(statement.begun)),
    )


def _error_of(statement: _Statement, routes: Untyped) -> dict[str, Any] | None:
    if statement.error is None:
        return None
    error: dict[str, Any] = routes._domain_error_to_error_result(statement.error)
    return {**error, "message": words_of(str(statement.error.message)) or error["message"]}


def _list_jobs(routes: Untyped) -> None:
    original = routes.list_jobs

    @functools.wraps(original)
    def list_jobs(*args: Untyped, **kwargs: Untyped) -> dict[str, Any]:
        parent = kwargs.pop("parentJobId", None)
        listed: dict[str, Any] = original(*args, parentJobId=None, **kwargs)
        chosen = [job for job in listed["jobs"] if job["statistics"].get("parentJobId") == parent]
        return {**listed, "jobs": chosen, "totalItems": len(chosen)}

    routes.list_jobs = list_jobs
