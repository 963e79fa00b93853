"""Read sessions of BigQuery's tables, as the trainer reads its rows: what a trial asks of them.

In: a table of whole numbers. Out: the numbers, stream by stream. Used by `retraining trial` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from retraining.hooks import limits
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

READ_ROWS = "BigQueryRead/ReadRows"


@dataclass(frozen=True, kw_only=True)
class Streams:
    """A read session.

    Attributes:
        names: Of its streams; none where the table has no rows.
        schema: Of their Arrow batches, serialized.
    """

    names: tuple[str, ...]
    schema: bytes


class TrialStreams:
    """Read sessions.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def open_streams(self, table: str, column: str) -> Streams:
        """Open a read session of one column of a table.

        Args:
            table: `project.dataset.table`.
            column: Of whole numbers.
        """
        from google.cloud.bigquery_storage_v1 import types

        project, dataset, name = table.split(".")
        wanted = types.ReadSession(
            table=f"projects/{project}/datasets/{dataset}/tables/{name}",
            data_format=types.DataFormat.ARROW,
            read_options=types.ReadSession.TableReadOptions(selected_fields=[column]),
        )
        request = {"parent": f"projects/{project}", "read_session": wanted, "max_stream_count": 4}
        made = call(lambda: self._client.create_read_session(request=request, retry=None))
        return Streams(names=tuple(each.name for each in made.streams), schema=made.arrow_schema.serialized_schema)

    def read_stream(self, name: str, schema: bytes, offset: int) -> list[int]:
        """Return the numbers of a stream, from a row on.

        Args:
            name: Of the stream.
            schema: Of its session.
            offset: The first row, from 0 on.
        """
        return call(lambda: self._read(name, schema, offset), timeout_s=limits.TRANSFER_S)

    def _read(self, name: str, schema: bytes, offset: int) -> list[int]:
        import pyarrow

        limit, found = limits.current(READ_ROWS), []
        request = {"read_stream": name, "offset": offset}
        for message in self._client.read_rows(request=request, retry=None, timeout=limit.left(READ_ROWS)):
            data = message.arrow_record_batch.serialized_record_batch
            limit.take(len(data), READ_ROWS)
            known = pyarrow.ipc.read_schema(pyarrow.py_buffer(schema))
            batch = pyarrow.ipc.read_record_batch(pyarrow.py_buffer(data), known)
            found.extend(batch.column(0).to_pylist())
        return found

    @cached_property
    def _client(self) -> BigQueryReadClient:
        from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

        from retraining.hooks.transports import grpc_client

        client: BigQueryReadClient = grpc_client(BigQueryReadClient, self._session)
        return client
