"""Rows of the run table through the BigQuery Storage Read API, as Arrow record batches.

Comes in: a table, columns, and the units (span, part, shard) wanted. Goes out: one table per unit. A stream that breaks
is continued at the row where it broke. https://cloud.google.com/bigquery/docs/reference/storage
"""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

from trainer.documents import Part
from trainer.errors import DataError, RequestError, StorageError
from trainer.export.types import RUN_COLUMNS

_ATTEMPTS = 6  # without a single new row between them
_FIRST_DELAY_S = 0.5
_STREAM_TIMEOUT_S = 3600.0
_PARTS = ("train", "validation")
_ONCE = Retry(predicate=lambda _error: False)  # the reader counts its attempts itself
_TRANSIENT = (
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ServiceUnavailable,
    exceptions.TooManyRequests,
    exceptions.Unknown,
)


@dataclass(frozen=True, kw_only=True, order=True)
class Unit:
    """The least piece of export work: it becomes one shard file."""

    span: str
    part: Part
    shard: int


class RowReader(Protocol):
    """Where the exporter gets rows from."""

    def read(self, units: Sequence[Unit]) -> pa.Table:
        """Give all rows of these units in any order, the run table's own columns included."""


class BigQueryReader:
    """Reads a run table.

    Args:
        table: project.dataset.table
        columns: Columns wanted beside the run table's own.
        client: Default: Google's client with credentials and hosts from the environment.
        sleep: Waits this many seconds between attempts.
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        client: BigQueryReadClient | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._project, self._dataset, self._table = table.split(".")
        self._columns = [*columns, *RUN_COLUMNS]
        self._client = client
        self._sleep = sleep

    def read(self, units: Sequence[Unit]) -> pa.Table:
        """Give all rows of these units in any order.

        Raises:
            RequestError: The table or a column is missing, or access is refused.
            StorageError: BigQuery did not answer, or a stream broke again and again.
        """
        session = self._create_session(row_restriction(units))
        schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
        batches = [batch for stream in session.streams for batch in self._read_stream(stream.name, schema)]
        return pa.Table.from_batches(batches, schema)

    def _create_session(self, restriction: str) -> types.ReadSession:
        where = f"{self._project}.{self._dataset}.{self._table}"
        options = types.ReadSession.TableReadOptions(selected_fields=self._columns, row_restriction=restriction)
        wanted = types.ReadSession(
            table=f"projects/{self._project}/datasets/{self._dataset}/tables/{self._table}",
            data_format=types.DataFormat.ARROW,
            read_options=options,
        )
        try:
            if self._client is None:
                self._client = BigQueryReadClient()
            return self._client.create_read_session(
                parent=f"projects/{self._project}", read_session=wanted, max_stream_count=1
            )
        except (exceptions.NotFound, exceptions.InvalidArgument) as error:
            raise RequestError(
                where,
                error.message,
                f"a table with the columns {', '.join(self._columns)}",
                "It may have expired: start a new run",
            ) from error
        except exceptions.Forbidden as error:
            raise RequestError(
                where,
                error.message,
                "an account with bigquery.readsessions.create and bigquery.tables.getData",
                "Grant them to the account that the job runs as",
            ) from error
        except (exceptions.GoogleAPICallError, GoogleAuthError) as error:
            raise StorageError(
                where, f"BigQuery did not answer: {error}", "a read session", "Start again: finished shards are kept"
            ) from error

    def _read_stream(self, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Give a stream's batches; after an error go on at the first row that did not arrive."""
        offset, failures = 0, 0
        while True:
            try:
                for message in self._messages(name, offset):
                    batch = pa.ipc.read_record_batch(
                        pa.py_buffer(message.arrow_record_batch.serialized_record_batch), schema
                    )
                    offset, failures = offset + batch.num_rows, 0
                    yield batch
                return
            except exceptions.GoogleAPICallError as error:
                failures += 1
                if failures >= _ATTEMPTS or not isinstance(error, _TRANSIENT):
                    raise StorageError(
                        f"read stream {name}",
                        f"broke at row {offset}: {error.message}",
                        "all its rows",
                        "Start again: finished shards are kept",
                    ) from error
                self._sleep(_FIRST_DELAY_S * 2 ** (failures - 1))

    def _messages(self, name: str, offset: int) -> Iterator[Any]:
        if self._client is None:
            self._client = BigQueryReadClient()
        messages: Iterator[Any] = self._client.read_rows(
            read_stream=name, offset=offset, retry=_ONCE, timeout=_STREAM_TIMEOUT_S
        )
        return messages


def row_restriction(units: Sequence[Unit]) -> str:
    """Give the filter for these units. Its literals are checked: ISO dates, known parts and whole numbers only.

    Raises:
        RequestError: A unit is something else.
    """
    return " OR ".join(_unit_restriction(unit) for unit in units)


def _unit_restriction(unit: Unit) -> str:
    try:
        day = datetime.date.fromisoformat(unit.span)
    except ValueError:
        raise RequestError("span", repr(unit.span), "a day like 2013-09-20") from None
    if unit.part not in _PARTS or not re.fullmatch(r"\d+", str(unit.shard)):
        raise RequestError("unit", f"{unit}", f"part {' or '.join(_PARTS)} and a shard number")
    return f"(span = DATE '{day.isoformat()}' AND part = '{unit.part}' AND shard = {int(unit.shard)})"


def rows_of(table: pa.Table, unit: Unit) -> pa.Table:
    """Give the rows of one unit.

    Raises:
        DataError: The run table's own columns are not what they should be.
    """
    try:
        chosen = pc.and_(
            pc.and_(
                pc.equal(table["span"], pa.scalar(datetime.date.fromisoformat(unit.span))),
                pc.equal(table["part"], pa.scalar(unit.part)),
            ),
            pc.equal(table["shard"], pa.scalar(unit.shard)),
        )
        return table.filter(chosen)
    except (pa.ArrowNotImplementedError, KeyError) as error:
        raise DataError(
            "run table", str(error), "columns span DATE, part STRING, shard INT64, row_hash INT64"
        ) from error
