"""The order of rows in a shard: by `row_hash`, ties by their bytes, so that every export gives the same file.

Comes in: the record batches of a group of shards, as they arrived. Goes out: per shard its rows in file order, gathered
a piece at a time, so that a large group is never copied whole.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.contract.column_types import RUN_COLUMNS
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.export.encoding.arrays import integers
from trainer.export.work import FROZEN_SET, Unit

Ints = npt.NDArray[np.int64]
RowBytes = Callable[[pa.RecordBatch], list[bytes]]

COPIED_WHOLE_BYTES = 28 << 20
PIECE_BYTES = 2 << 20
_TIES_AT_ONCE = 4096
_TYPES = {"span": pa.date32(), "part": pa.string(), "shard": pa.int64(), "row_hash": pa.int64()}


class SortedRows:
    """One shard's rows in file order.

    Args:
        positions: Of the shard's rows in it, in file order. [n_rows]
    """

    def __init__(self, rows: GroupRows, positions: Ints) -> None:
        self._rows, self._positions = rows, positions

    def __len__(self) -> int:
        return len(self._positions)

    def pieces(self, multiple: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield all rows, some megabytes at a time.

        Args:
            multiple: Each piece but the last has a multiple of so many rows.
        """
        count = max(self._rows.piece_rows // multiple, 1) * multiple
        for start in range(0, len(self), count):
            yield self._rows.take(self._positions[start : start + count])


class GroupRows:
    """The rows of a group, without the run table's own columns.

    Args:
        batches: Of one schema. They are taken out of the list, so that each can go when it is copied.
    """

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        batches[:] = [_features(batch) for batch in batches]
        size = sum(batch.nbytes for batch in batches)
        if len(batches) > 1 and size <= COPIED_WHOLE_BYTES:
            batches[:] = pa.Table.from_batches(batches).combine_chunks().to_batches()
        self._batches = list(batches)
        batches.clear()
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        per_row = max(size // max(int(self._starts[-1]), 1), 1)
        # Random access to few rows of many columns fetches every cache line again for each piece: fewer, larger ones.
        self.piece_rows = max((COPIED_WHOLE_BYTES if len(self._batches) == 1 else PIECE_BYTES) // per_row, 1)

    def take(self, positions: Ints) -> pa.RecordBatch:
        """Return some rows in this order; a copy. [n] → n rows."""
        if len(self._batches) == 1:
            return self._batches[0].take(_indices(positions))
        batch_of = np.searchsorted(self._starts, positions, side="right") - 1
        parts, places = [], []
        for index in np.unique(batch_of):
            place = np.flatnonzero(batch_of == index)
            parts.append(self._batches[index].take(_indices(positions[place] - self._starts[index])))
            places.append(place)
        back = np.empty(len(positions), np.int64)
        back[np.concatenate(places)] = np.arange(len(positions))
        (joined,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
        return joined.take(_indices(back))


def sort_rows(batches: list[pa.RecordBatch], units: Sequence[Unit], row_bytes: RowBytes) -> list[SortedRows]:
    """Return each unit's rows in file order.

    Args:
        batches: All rows of these units, with the run table's own columns; emptied.
        units: Of one table.
        row_bytes: Gives each row's bytes as they become part of the file; for rows with equal hashes.

    Raises:
        DataError: The run table's own columns are not what they should be, or a row is of none of these units.
    """
    if not batches:
        return [SortedRows(GroupRows([]), np.empty(0, np.int64)) for _ in units]
    hashes = np.concatenate([_own(batch, "row_hash") for batch in batches])
    unit_of = np.concatenate([_unit_of(batch, units) for batch in batches])
    rows = GroupRows(batches)
    positions = np.argsort(hashes).astype(np.int64, copy=False)
    positions = positions[np.argsort(unit_of[positions], kind="stable")]  # of 16 bits: by radix, hardly any time
    _sort_ties(positions, hashes, unit_of, rows, row_bytes)
    ends = np.cumsum(np.bincount(unit_of, minlength=len(units)))
    return [SortedRows(rows, mine) for mine in np.split(positions, ends[:-1])]


def _sort_ties(
    positions: Ints, hashes: Ints, unit_of: npt.NDArray[np.uint16], rows: GroupRows, row_bytes: RowBytes
) -> None:
    """Sort, in place, each run of rows with the same hash by the rows' bytes."""
    same = (np.diff(hashes[positions]) == 0) & (np.diff(unit_of[positions].astype(np.int32)) == 0)
    if not same.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]])))
    starts, ends = edges[::2], edges[1::2] + 1
    for block in _blocks(ends - starts):
        tied = np.concatenate([np.arange(starts[run], ends[run]) for run in block])
        run_of = np.concatenate([np.full(ends[run] - starts[run], run) for run in block]).tolist()
        content = row_bytes(rows.take(positions[tied]))
        ranked = sorted(range(len(tied)), key=lambda row: (run_of[row], content[row]))
        positions[tied] = positions[tied][ranked]


def _blocks(lengths: Ints) -> Iterator[range]:
    """Put runs together so that each time some thousand rows are compared."""
    first, rows = 0, 0
    for run, length in enumerate(lengths.tolist()):
        if rows and rows + length > _TIES_AT_ONCE:
            yield range(first, run)
            first, rows = run, 0
        rows += length
    yield range(first, len(lengths))


def _unit_of(batch: pa.RecordBatch, units: Sequence[Unit]) -> npt.NDArray[np.uint16]:
    """Return each row's unit, by its place among the units. [n_rows]."""
    frozen = units[0].span == FROZEN_SET
    parts = sorted({unit.part for unit in units})
    known = np.array([_code(0 if frozen else _day(unit.span), parts.index(unit.part), unit.shard) for unit in units])
    codes = _own(batch, "shard")
    if not frozen:
        part_indices = pc.index_in(_own_column(batch, "part"), value_set=pa.array(parts, pa.string()))
        part_of = integers(part_indices.fill_null(pa.scalar(len(parts), pa.int32())))
        codes = _code(_own(batch, "span"), part_of, codes)
    by_code = np.argsort(known)
    place = np.minimum(np.searchsorted(known[by_code], codes), len(units) - 1)
    foreign = np.flatnonzero(known[by_code][place] != codes)
    if len(foreign):
        row = batch.slice(int(foreign[0]), 1).select([name for name in RUN_COLUMNS if name in batch.schema.names])
        raise DataError(
            "read session",
            f"gave {len(foreign)} rows that were not asked for, the first with {row.to_pylist()[0]}",
            f"rows of {len(units)} units, the first {units[0]}",
            "Start again; if it stays, the row restriction is not honoured",
        )
    return by_code[place].astype(np.uint16)


def _code(day: Ints | int, part: Ints | int, shard: Ints | int) -> Ints:
    """Put a unit into one number: 29 bits for the day, 2 for the part, 32 for the shard."""
    return np.asarray((day << 34) | (part << 32) | shard)


def _day(span: str) -> int:
    return (datetime.date.fromisoformat(span) - datetime.date(1970, 1, 1)).days


def _own(batch: pa.RecordBatch, name: str) -> Ints:
    return integers(_own_column(batch, name)).astype(np.int64, copy=False)


def _own_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch.column(name) if name in batch.schema.names else None
    if column is None or column.type != _TYPES[name] or column.null_count:
        actual = "missing" if column is None else f"{column.type} with {column.null_count} NULLs"
        raise DataError(
            "run table",
            f"column {name} is {actual}",
            f"{_TYPES[name]} without NULL",
            f"The snapshot makes it. {NEW_ATTEMPT}",
        )
    return column


def _features(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns([name for name in RUN_COLUMNS if name in batch.schema.names])


def _indices(positions: Ints) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(np.ascontiguousarray(positions))])
