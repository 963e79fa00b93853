"""STRUCTs become columns with dots; rows stay what they were."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refusals import refuses
from trainer.bigquery.structs import flatten
from trainer.errors import DataError

PLACE = pa.struct([("city", pa.string()), ("at", pa.struct([("lat", pa.float64()), ("tags", pa.list_(pa.string()))]))])
STOP = pa.struct([("minute", pa.int64()), ("where", pa.struct([("gate", pa.string())]))])
SCHEMA = pa.schema([("id", pa.int64()), ("from", PLACE), ("stops", pa.list_(STOP)), ("scores", pa.list_(pa.float64()))])

PLACES = st.none() | st.fixed_dictionaries(
    {
        "city": st.none() | st.text(max_size=3),
        "at": st.none()
        | st.fixed_dictionaries(
            {"lat": st.none() | st.floats(allow_nan=False), "tags": st.none() | st.lists(st.text(max_size=2))}
        ),
    }
)
STOPS = st.none() | st.lists(
    st.fixed_dictionaries(
        {"minute": st.integers(0, 9), "where": st.none() | st.fixed_dictionaries({"gate": st.text(max_size=2)})}
    ),
    max_size=3,
)
ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 9), "from": PLACES, "stops": STOPS, "scores": st.just([0.5])}),
    max_size=6,
)


def flattened(row: dict[str, Any]) -> dict[str, Any]:
    """The same in plain Python."""
    place = row["from"] or {}
    at = place.get("at") or {}
    stops = row["stops"]
    return {
        "id": row["id"],
        "from.city": place.get("city"),
        "from.at.lat": at.get("lat"),
        "from.at.tags": at.get("tags"),
        "stops.minute": None if stops is None else [stop["minute"] for stop in stops],
        "stops.where.gate": None if stops is None else [(stop["where"] or {}).get("gate") for stop in stops],
        "scores": row["scores"],
    }


@settings(max_examples=200, deadline=None)
@given(ROWS, st.integers(0, 3))
def test_every_leaf_is_a_column_also_of_slices(rows: list[dict[str, Any]], start: int) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).slice(start)
    flat = flatten(batch)
    flat.validate(full=True)
    assert flat.to_pylist() == [flattened(row) for row in rows[start:]]
    assert flat.schema == flatten(pa.RecordBatch.from_pylist([], schema=SCHEMA)).schema


def test_a_batch_without_structs_is_itself() -> None:
    batch = pa.record_batch({"x": [1]})
    assert flatten(batch) is batch


def test_an_array_inside_an_array_is_refused_by_name() -> None:
    nested = pa.schema([("legs", pa.list_(pa.struct([("codes", pa.list_(pa.string()))])))])
    with refuses(DataError, where="column legs.codes", found="REPEATED STRUCT"):
        flatten(pa.RecordBatch.from_pylist([{"legs": []}], schema=nested))


def test_leaves_with_one_name_are_refused() -> None:
    schema = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    with pytest.raises(DataError, match=r"column a\.b: stands twice"):
        flatten(pa.RecordBatch.from_pylist([], schema=schema))
