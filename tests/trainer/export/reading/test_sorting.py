"""Rows of a group in file order, however they arrived."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refusals import refuses
from trainer.errors import DataError
from trainer.export.reading import sorting
from trainer.export.reading.sorting import sort_rows
from trainer.export.work import Unit

DAYS = ("1969-12-31", "2024-01-01", "2024-01-02")
UNITS = [Unit(span=day, part=part, shard=shard) for day in DAYS for part in ("train", "validation") for shard in (0, 7)]
ROW = st.tuples(st.integers(0, len(UNITS) - 1), st.integers(-3, 3), st.integers(0, 5), st.text(max_size=3))


def table_of(rows: list[tuple[int, int, int, str]]) -> pa.RecordBatch:
    """Make rows of (unit, hash, number, text)."""
    units = [UNITS[unit] for unit, *_ in rows]
    return pa.record_batch(
        {
            "number": pa.array([number for _, _, number, _ in rows], pa.int64()),
            "text": pa.array([text for *_, text in rows], pa.string()),
            "span": pa.array([datetime.date.fromisoformat(unit.span) for unit in units], pa.date32()),
            "part": pa.array([unit.part for unit in units], pa.string()),
            "shard": pa.array([unit.shard for unit in units], pa.int64()),
            "row_hash": pa.array([value for _, value, *_ in rows], pa.int64()),
        }
    )


def row_bytes(batch: pa.RecordBatch) -> list[bytes]:
    """Return something that stands for a row."""
    assert batch.schema.names == ["number", "text"]
    return [repr(tuple(row.values())).encode() for row in batch.to_pylist()]


def sorted_by_hand(rows: list[tuple[int, int, int, str]], unit: int) -> list[tuple[int, str]]:
    """Do the same with Python's sort."""
    mine = [(value, repr((number, text)).encode(), (number, text)) for u, value, number, text in rows if u == unit]
    return [row for *_, row in sorted(mine)]


@settings(deadline=None)
@given(st.lists(ROW, max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(1, 7))
def test_each_unit_has_its_rows_by_hash_then_bytes(
    rows: list[tuple[int, int, int, str]], cuts: list[int], multiple: int
) -> None:
    """Whatever the batches' borders; each piece but the last is a multiple of so many rows."""
    whole = table_of(rows)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = [whole.slice(start, end - start) for start, end in itertools.pairwise(edges)]
    made = sort_rows(batches, UNITS, row_bytes)
    assert batches == []
    for unit, found in enumerate(made):
        pieces = list(found.pieces(multiple))
        assert all(piece.num_rows % multiple == 0 for piece in pieces[:-1])
        values = [tuple(row.values()) for piece in pieces for row in piece.to_pylist()]
        assert values == sorted_by_hand(rows, unit)
        assert len(found) == len(values)


def test_a_large_group_is_gathered_in_pieces_without_a_copy_of_it(monkeypatch) -> None:
    """The way of groups that are not copied whole gives the same rows."""
    random = np.random.default_rng(3)
    rows = [(int(u), int(h), int(n), "x") for u, h, n in zip(*random.integers(0, 9, (3, 5000)), strict=True)]
    batches = [table_of(rows).slice(start, 700) for start in range(0, 5000, 700)]
    expected = [list(found.pieces()) for found in sort_rows(list(batches), UNITS, row_bytes)]
    monkeypatch.setattr(sorting, "COPIED_WHOLE_BYTES", 0)
    monkeypatch.setattr(sorting, "PIECE_BYTES", 2000)
    found = [list(found.pieces(3)) for found in sort_rows(list(batches), UNITS, row_bytes)]
    assert max(len(pieces) for pieces in found) > 3
    assert [
        pa.Table.from_batches(pieces, batches[0].schema.remove(5).remove(4).remove(3).remove(2)) for pieces in found
    ] == [
        pa.Table.from_batches(pieces, batches[0].schema.remove(5).remove(4).remove(3).remove(2)) for pieces in expected
    ]


def test_many_equal_hashes_are_compared_some_at_a_time() -> None:
    """A table of doubled rows needs neither a comparison per pair nor all rows' bytes at once."""
    rows = [(0, index % 5000, index % 3, "x") for index in range(15_000)]
    asked: list[int] = []

    def counted(batch: pa.RecordBatch) -> list[bytes]:
        asked.append(batch.num_rows)
        return row_bytes(batch)

    (found, *_) = sort_rows([table_of(rows)], UNITS, counted)
    (piece,) = found.pieces()
    assert [tuple(row.values()) for row in piece.to_pylist()] == sorted_by_hand(rows, 0)
    assert sum(asked) == 15_000
    assert max(asked) <= 4096


def test_the_frozen_set_has_neither_span_nor_part() -> None:
    units = [Unit(span="golden", part="golden", shard=shard) for shard in (0, 1)]
    batch = pa.record_batch({"x": [1, 2, 3], "shard": [1, 0, 1], "row_hash": [9, 8, 7]})
    first, second = sort_rows([batch], units, row_bytes)
    assert [piece["x"].to_pylist() for piece in first.pieces()] == [[2]]
    assert [piece["x"].to_pylist() for piece in second.pieces()] == [[3, 1]]


def test_without_rows_each_unit_is_empty() -> None:
    assert [len(found) for found in sort_rows([], UNITS[:2], row_bytes)] == [0, 0]


@pytest.mark.parametrize("change", [{"shard": 3}, {"span": datetime.date(2030, 1, 1)}, {"part": "golden"}])
def test_rows_that_were_not_asked_for_are_refused(change: dict[str, object]) -> None:
    """A service that does not understand a restriction must not fill shards with other rows."""
    batch = table_of([(0, 1, 2, "x")])
    for name, value in change.items():
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, name, pa.array([value], batch.schema.field(index).type))
    with refuses(DataError, found="1 rows"):
        sort_rows([table_of([(1, 1, 1, "y")]), batch], UNITS, row_bytes)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row_hash", None),
        ("row_hash", pa.array([None], pa.int64())),
        ("shard", pa.array(["0"])),
        ("part", pa.array([1])),
    ],
    ids=["missing", "null", "text", "number"],
)
def test_the_run_tables_own_columns_are_checked(name: str, values: pa.Array | None) -> None:
    batch = table_of([(0, 1, 2, "x")])
    index = batch.schema.get_field_index(name)
    batch = batch.remove_column(index) if values is None else batch.set_column(index, name, values)
    with pytest.raises(DataError, match=f"run table: column {name} is .* Expected .* without NULL"):
        sort_rows([batch], UNITS, row_bytes)
