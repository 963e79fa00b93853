"""What each BigQuery type becomes in a `tf.train.Example`. This is the documented table; nothing else decides it.

| BigQuery | Feature | value |
|---|---|---|
| INTEGER | int64_list | as it is |
| FLOAT | float_list | rounded to the nearest float32 (an Example has no double) |
| NUMERIC, BIGNUMERIC | float_list | rounded to float64, then to float32; for exact decimals use `CAST(x AS STRING)` |
| BOOLEAN | int64_list | 0 or 1 |
| STRING, GEOGRAPHY, JSON | bytes_list | UTF-8 |
| BYTES | bytes_list | as it is |
| DATE | int64_list | days since 1970-01-01 |
| DATETIME, TIMESTAMP | int64_list | microseconds since 1970-01-01 00:00 (UTC for TIMESTAMP) |
| TIME | int64_list | microseconds since midnight |
| REPEATED of these | same list | all values; an empty array is a list without values |
| NULL | - | the feature is absent |
| RECORD, INTERVAL, RANGE, … | - | refused by name before anything is written |
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from trainer.documents import Column
from trainer.errors import RequestError

RUN_COLUMNS = ("span", "part", "shard", "row_hash")
"""Columns of the run table that say where a row goes; they are not features."""


class FeatureKind(Enum):
    """The three lists of `tf.train.Feature`."""

    INT64 = "int64_list"
    FLOAT = "float_list"
    BYTES = "bytes_list"


KINDS: dict[str, FeatureKind] = {
    **dict.fromkeys(
        ("INTEGER", "INT64", "BOOLEAN", "BOOL", "DATE", "DATETIME", "TIMESTAMP", "TIME"), FeatureKind.INT64
    ),
    **dict.fromkeys(("FLOAT", "FLOAT64", "NUMERIC", "BIGNUMERIC"), FeatureKind.FLOAT),
    **dict.fromkeys(("STRING", "BYTES", "GEOGRAPHY", "JSON"), FeatureKind.BYTES),
}


def require_mapped(schema: Iterable[Column], where: str) -> None:
    """Refuse a schema that cannot be exported.

    Raises:
        RequestError: A column has a type without mapping or a name that the run table needs itself; names all of them.
    """
    columns = list(schema)
    unmapped = [f"{column.name} ({column.type})" for column in columns if column.type not in KINDS]
    if unmapped:
        raise RequestError(
            where,
            f"no TFRecord mapping for column {', '.join(unmapped)}",
            f"types {', '.join(sorted(KINDS))}",
            "Cast it in the query, or select the fields one by one",
        )
    taken = sorted({column.name for column in columns} & set(RUN_COLUMNS))
    if taken:
        raise RequestError(
            where, f"column name {', '.join(taken)} is taken", f"names other than {', '.join(RUN_COLUMNS)}", "Rename it"
        )
