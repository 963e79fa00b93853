"""Rows of the run table, by units, as Arrow record batches.

Comes in: a table, columns, and the units (span, part, shard) wanted. Goes out: streams of record batches.

A read session has a row filter, a condition in GoogleSQL. The API takes no query parameters, so its literals are
checked instead: ISO dates, known parts and whole numbers only. Spans that want the same shards are named together: a
short condition is quick to read for the service too, and lets it skip the blocks of other spans (the table is
clustered).
"""

from __future__ import annotations

import datetime
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

from trainer.bigquery.streams import TableReader
from trainer.contract.column_types import RUN_COLUMNS
from trainer.errors import RequestError
from trainer.export.work import FROZEN_SET, Unit

_PARTS = ("train", "validation")


def row_restriction(units: Sequence[Unit]) -> str:
    """Return the filter for these units, all of one table.

    Raises:
        RequestError: A unit's span, part or shard is not what it should be.
    """
    for unit in units:
        _check_unit(unit)
    if units[0].span == FROZEN_SET:
        return _shards(unit.shard for unit in units)
    pairs_of: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for unit in units:
        pairs_of[unit.span].add((unit.part, unit.shard))
    spans: dict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
    for span, pairs in pairs_of.items():
        spans[tuple(sorted(pairs))].append(span)
    return " OR ".join(f"({_spans(days)} AND {_parts(pairs)})" for pairs, days in spans.items())


def _spans(days: Sequence[str]) -> str:
    dates = [f"DATE '{day}'" for day in sorted(days)]
    return f"span = {dates[0]}" if len(dates) == 1 else f"span IN ({', '.join(dates)})"


def _parts(pairs: Sequence[tuple[str, int]]) -> str:
    shards: dict[str, list[int]] = defaultdict(list)
    for part, shard in pairs:
        shards[part].append(shard)
    conditions = [f"part = '{part}' AND {_shards(numbers)}" for part, numbers in shards.items()]
    return conditions[0] if len(conditions) == 1 else "(" + " OR ".join(f"({each})" for each in conditions) + ")"


def _shards(numbers: Iterable[int]) -> str:
    shards = sorted(numbers)
    return f"shard = {shards[0]}" if len(shards) == 1 else f"shard IN ({', '.join(map(str, shards))})"


def _check_unit(unit: Unit) -> None:
    if unit.span == unit.part == FROZEN_SET:
        right = True
    else:
        try:
            right = datetime.date.fromisoformat(unit.span).isoformat() == unit.span and unit.part in _PARTS
        except ValueError:
            raise RequestError("span", repr(unit.span), "a day like 2013-09-20, or golden") from None
    if not right or not isinstance(unit.shard, int) or unit.shard < 0:
        raise RequestError("unit", f"{unit}", f"a day, part {' or '.join(_PARTS)}, and a shard number; or golden")


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
