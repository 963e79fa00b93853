"""Statements on BigQuery, each as a job whose id says what it is: asked again, the same job answers.

In: SQL with typed parameters. Out: small aggregate results, schemas, bytes. No row of examples passes through here.
Ours instead of the provider's `BigQueryInsertJobOperator`: that one joins neither a finished nor a failed job of the
same id, and a task here asks several questions before it writes one document.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from retraining.core.data.source_files import DetectingLoad, Load
from retraining.core.data.sql import MAX_JOBS_PER_ID, Query, is_lasting, load_failure, query_failure
from retraining.core.errors import DataError, JobError, RetrainingError
from retraining.core.retention.jobs_and_tables import Table
from retraining.core.untyped import ApiJson, Row
from retraining.hooks import limits
from retraining.hooks.session import Session, call, call_once

if TYPE_CHECKING:
    from google.api_core.exceptions import ClientError
    from google.cloud.bigquery import Client, LoadJob, QueryJob, SchemaField

LOGGER = logging.getLogger(__name__)
PAGE = 10_000
MAX_ROWS = 1_000_000
MAX_DETAILS = 3
MAX_RESULT_BYTES = 256_000_000
"""Of one answer, in a worker's memory; the statistics of 100 features over ten years of days have 400,000 rows."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Result of a statement: rows as mappings (empty for one that makes a table) and the bytes it read.

    Of a dry run also the result's columns, and the tables and views that are read, by `project.dataset.table`.
    """

    rows: list[Row] = field(default_factory=list)
    bytes_processed: int = 0
    schema: list[ApiJson] = field(default_factory=list)
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is run as a job: how it is started with an id, what it answers once it is done, what its failure means."""

    start: Callable[[str], Any]
    start_s: float
    answer: Callable[[Any], Answer]
    failure: Callable[[str, Mapping[str, Any]], RetrainingError]


_APPENDED = {
    "sourceFormat": "NEWLINE_DELIMITED_JSON",
    "createDisposition": "CREATE_NEVER",
    "writeDisposition": "WRITE_APPEND",
}


class Warehouse:
    """BigQuery in one project and region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def dry_run(self, query: Query, where: str) -> Answer:
        """Return the schema of the result, bytes that would be read, and of which tables; nothing runs.

        Raises:
            DataError: The SQL is wrong; the message is BigQuery's.
            SettingsError: The connection's account may not do that.
        """
        from google.api_core.exceptions import BadRequest, Forbidden, NotFound
        from google.cloud import bigquery

        config = bigquery.QueryJobConfig.from_api_repr({"query": _without_text(query), "dryRun": True})
        config.use_query_cache = False
        try:
            job = call(lambda: self._client.query(query.sql, job_config=config, retry=None, job_retry=None))
        except (BadRequest, Forbidden, NotFound) as error:
            raise query_failure(where, _result(error)) from error
        return Answer(
            bytes_processed=int(job.total_bytes_processed or 0),
            schema=_schema(job.schema or ()),
            tables=tuple(sorted({str(table) for table in job.referenced_tables})),
        )

    def run_query(self, query: Query, job_id: str, where: str, max_bytes: int | None = None) -> Answer:
        """Run a statement as the job of this id, or join the one that has it; waits until it is done.

        A job that failed for BigQuery's own reasons keeps its id; the next one gets the suffix `-2`, `-3`, …

        Args:
            query: SQL and parameters.
            job_id: From `bigquery.query_job_id`.
            where: What the statement is, for the message.
            max_bytes: That it may read; None: `RETRAINING_MAX_BYTES_BILLED`, which holds in any case.

        Raises:
            DataError: The SQL or a table it names is wrong (the message is BigQuery's), it would read more than
                it may, or its answer is larger than `MAX_ROWS` or `MAX_RESULT_BYTES`.
            SettingsError: The connection's account may not do that.
            JobError: BigQuery failed, or a quota is used up; the next call runs another job, `MAX_JOBS_PER_ID` times.
        """
        from google.cloud import bigquery

        def start(suffixed: str) -> QueryJob:
            config = bigquery.QueryJobConfig.from_api_repr({"query": _without_text(query), **self._paid()})
            most = self._session.max_bytes_billed
            config.maximum_bytes_billed = most if max_bytes is None else min(most, max_bytes)
            return self._client.query(query.sql, job_config=config, job_id=suffixed, retry=None, job_retry=None)

        def answer(job: QueryJob) -> Answer:
            found = job.result(page_size=PAGE, retry=None, job_retry=None)
            return Answer(rows=_read(found, where), bytes_processed=int(job.total_bytes_processed or 0))

        found = self._run_job(
            _Asked(start=start, start_s=limits.CALL_S, answer=answer, failure=query_failure), job_id, where
        )
        LOGGER.info("%s: %d bytes processed", where, found.bytes_processed)
        return found

    def load_files(self, load: Load | DetectingLoad, job_id: str, where: str) -> None:
        """Append the rows of files to a table as the job of this id, or join the one that has it; all or none.

        Args:
            load: Files, table and columns.
            job_id: As for `run_query`.
            where: Names the files in messages.

        Raises:
            DataError: A file is not there, or has rows that do not fit; the message is BigQuery's.
            SettingsError: The connection's account may not do that, or not read the files.
            JobError: BigQuery failed, or a quota is used up; the next call runs another job.
        """
        from google.cloud import bigquery

        config = load.to_api()
        uris = config.pop("sourceUris")
        config.pop("destinationTable")

        def start(suffixed: str) -> LoadJob:
            return self._client.load_table_from_uri(
                uris,
                load.table,
                job_id=suffixed,
                job_config=bigquery.LoadJobConfig.from_api_repr({"load": config, **self._paid()}),
                retry=None,
            )

        self._run_job(
            _Asked(start=start, start_s=limits.CALL_S, answer=_loaded(where), failure=load_failure), job_id, where
        )

    def load_lines(self, lines: IO[bytes], table: str, job_id: str, where: str) -> None:
        """Append rows to a table as the job of this id, or join the one that has it; all or none.

        Args:
            lines: JSON lines, as they are or compressed.
            table: `project.dataset.table`, which is there.
            job_id: As for `run_query`.
            where: Names the rows in messages.

        Raises:
            DataError: They do not fit the table.
            SettingsError: The connection's account may not do that.
            JobError: BigQuery failed, or a quota is used up; the next call runs another job.
        """
        from google.cloud import bigquery

        config = bigquery.LoadJobConfig.from_api_repr({"load": _APPENDED, **self._paid()})

        def start(suffixed: str) -> LoadJob:
            # Without retries of its own, which would wait beyond the end of the call.
            return self._client.load_table_from_file(
                lines, table, rewind=True, num_retries=0, job_id=suffixed, job_config=config
            )

        self._run_job(
            _Asked(start=start, start_s=limits.TRANSFER_S, answer=_loaded(where), failure=load_failure), job_id, where
        )

    def _paid(self) -> ApiJson:
        return self._session.placement.statement(self._session.labels(self._session.caller.names))

    def _run_job(self, asked: _Asked, job_id: str, where: str) -> Answer:
        for attempt in range(1, MAX_JOBS_PER_ID + 1):
            suffixed = job_id if attempt == 1 else f"{job_id}-{attempt}"
            job, joined = self._start_or_join(asked, suffixed, where)
            try:
                # Once: a job that failed would be asked again until the end, its error looks like one that passes.
                found = call_once(
                    functools.partial(asked.answer, job),
                    timeout_s=limits.STATEMENT_S,
                    max_bytes=limits.MAX_STATEMENT_BYTES,
                )
            except DataError:
                raise
            except Exception as error:  # of any class; what the job itself says decides below
                if job.error_result is None:
                    raise  # the question failed, not the job: the task's retry joins it
                if not joined or is_lasting(job.error_result):
                    raise asked.failure(where, _with_details(job)) from error
                LOGGER.warning("%s: job %s failed (%s); another one", where, suffixed, job.error_result["message"])
                continue
            LOGGER.info("%s: job %s %s", where, suffixed, "joined" if joined else "done")
            return found
        raise JobError(
            where, f"BigQuery failed {MAX_JOBS_PER_ID} times", "one success", f"Look at job {job_id}, clear the task"
        )

    def dataset_location(self, dataset: str) -> str | None:
        """Return where a dataset of the project is; None when there is none, or when the account may not look."""
        from google.api_core.exceptions import Forbidden, NotFound

        name = f"{self._session.project}.{dataset}"
        try:
            found = call(lambda: self._client.get_dataset(name, retry=None))
        except (Forbidden, NotFound):
            return None
        location: str | None = found.location
        return location

    def dataset_key(self, dataset: str) -> str | None:
        """Return the key that new tables of a dataset are encrypted with.

        Empty: Google's. None as `dataset_location`.
        """
        from google.api_core.exceptions import Forbidden, NotFound

        name = f"{self._session.project}.{dataset}"
        try:
            found = call(lambda: self._client.get_dataset(name, retry=None)).default_encryption_configuration
        except (Forbidden, NotFound):
            return None
        return str((found and found.kms_key_name) or "")

    def table_schema(self, table: str) -> list[ApiJson] | None:
        """Return the columns of `project.dataset.table` as `{name, type, mode, fields}`.

        None when there is no such table.

        `fields` are a STRUCT's own, in the same form.
        """
        from google.api_core.exceptions import NotFound

        try:
            resource = call(lambda: self._client.get_table(table, retry=None))
        except NotFound:
            return None
        return _schema(resource.schema)

    def table_changed(self, table: str) -> datetime | None:
        """Return when a table last changed; None when it is gone, or when the account may not look."""
        from google.api_core.exceptions import Forbidden, NotFound

        try:
            changed: datetime | None = call(lambda: self._client.get_table(table, retry=None)).modified
        except (Forbidden, NotFound):
            return None
        return changed

    def visible_columns(self, table: str) -> list[ApiJson]:
        """Return the columns of a table as `table_schema`; none when it is gone, or when the account may not look."""
        from google.api_core.exceptions import Forbidden

        try:
            return self.table_schema(table) or []
        except Forbidden:
            return []

    def delete_table(self, table: str) -> None:
        """Delete `project.dataset.table`; one that is gone stays gone."""
        call(lambda: self._client.delete_table(table, not_found_ok=True, retry=None))

    def list_tables(self, dataset: str) -> list[Table]:
        """Return the tables of a dataset of the project, and when each expires; none when there is no such dataset."""
        from google.api_core.exceptions import NotFound

        name = f"{self._session.project}.{dataset}"
        try:
            listed = call(lambda: list(self._client.list_tables(name, retry=None)), timeout_s=limits.LISTING_S)
        except NotFound:
            return []
        return [Table(name=f"{name}.{item.table_id}", expires=item.expires) for item in listed]

    @cached_property
    def _client(self) -> Client:
        from retraining.hooks.transports import bigquery_client

        return bigquery_client(self._session)

    def _start_or_join(self, asked: _Asked, job_id: str, where: str) -> tuple[Any, bool]:
        from google.api_core.exceptions import BadRequest, Conflict, Forbidden, NotFound

        try:
            # Repeating is safe: after a lost response the id is taken, and the job is joined.
            job = call(lambda: asked.start(job_id), timeout_s=asked.start_s)
        except Conflict:
            return call(lambda: self._client.get_job(job_id, retry=None)), True
        except (BadRequest, Forbidden, NotFound) as error:
            raise asked.failure(where, _result(error)) from error
        return job, False


def _loaded(where: str) -> Callable[[LoadJob], Answer]:
    """Return what waits for a load's end."""

    def answer(job: LoadJob) -> Answer:
        job.result(retry=None)
        LOGGER.info("%s: %d rows of %d files loaded", where, job.output_rows or 0, job.input_files or 0)
        return Answer()

    return answer


def _with_details(job: QueryJob | LoadJob) -> Mapping[str, Any]:
    """Return why a job failed, with what BigQuery says of single files and lines, which its summary leaves out."""
    result = dict(job.error_result)
    details = dict.fromkeys(str(item.get("message")) for item in job.errors or ())
    details.pop(result["message"], None)
    result["message"] = "; ".join([result["message"], *list(details)[:MAX_DETAILS]])
    return result


def _read(answer: Iterable[Mapping[str, Any]], where: str) -> list[Row]:
    """Return all rows, as long as they are few."""
    rows: list[Row] = []
    size = 0
    for row in answer:
        rows.append(dict(row))
        size += sum(_size(value) for value in rows[-1].values())
        if len(rows) > MAX_ROWS or size > MAX_RESULT_BYTES:
            raise DataError(
                where,
                f"an answer of more than {len(rows) - 1} rows or {size} bytes",
                f"at most {MAX_ROWS} rows and {MAX_RESULT_BYTES} bytes: a worker keeps them in memory",
                "Shorten data.window_days, or take away features or the values that make it so large",
            )
    return rows


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return 8


def _without_text(query: Query) -> ApiJson:
    values = query.to_api()
    values.pop("query")
    return values


def _schema(columns: Iterable[SchemaField]) -> list[ApiJson]:
    return [
        {"name": item.name, "type": item.field_type, "mode": item.mode, "fields": _schema(item.fields)}
        for item in columns
    ]


def _result(error: ClientError) -> Mapping[str, Any]:
    """Return BigQuery's own reason and message, without the client's wrapping."""
    details = next((item for item in error.errors or () if isinstance(item, dict) and item.get("message")), None)
    return details or {"reason": "", "message": error.message or str(error)}
