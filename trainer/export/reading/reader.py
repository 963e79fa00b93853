"""Rows of the run table, by units, as Arrow record batches.

Comes in: a table, columns, and the units (span, part, shard) wanted. Goes out: streams of record batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

from trainer.bigquery.streams import TableReader
from trainer.contract.column_types import RUN_COLUMNS
from trainer.export.reading.restriction import row_restriction
from trainer.export.work import FROZEN_SET, Unit


class RowReader(Protocol):
    """Where the exporter gets rows from."""

    def open_streams(self, table: str, units: Sequence[Unit], streams: int) -> Sequence[Iterator[pa.RecordBatch]]:
        """Start reading the rows of some units.

        Args:
            table: project.dataset.table
            streams: At most so many at once.

        Returns:
            Iterators over disjoint shares of all these rows, in any order, the run table's own columns included. They
            may be read at the same time, each by one thread.
        """


class BigQueryReader:
    """Reads run tables.

    Args:
        columns: Wanted beside the run table's own; a field of a STRUCT as `outer.inner`.
        client: Default: Google's client with credentials and hosts from the environment.
        sleep: Waits this many seconds between attempts.
    """

    def __init__(
        self,
        columns: Sequence[str],
        client: BigQueryReadClient | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._columns = list(columns)
        self._reader = TableReader(client, sleep)

    def open_streams(self, table: str, units: Sequence[Unit], streams: int) -> Sequence[Iterator[pa.RecordBatch]]:
        """Start reading the rows of some units.

        Raises:
            RequestError: The table or a column is missing, or access is refused.
            StorageError: BigQuery did not answer; of the iterators: a stream broke again and again.
        """
        own = RUN_COLUMNS[2:] if units[0].span == FROZEN_SET else RUN_COLUMNS  # it has neither
        return self._reader.open_session(table, [*self._columns, *own], row_restriction(units), streams).streams
