"""The types of BigQuery's columns, a row each, and the parts that columns of them can play.

Types have the names of BigQuery's API, as in manifests; in SQL some are called differently. What checks a query, loads
files, renders SQL, writes shards, reads a run table or shows the docs reads it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RUN_COLUMNS = ("span", "part", "shard", "row_hash")
"""Columns of the run table that say where a row goes; they are not features."""
MAX_COLUMNS = 10_000 - len(RUN_COLUMNS)
"""BigQuery's limit per table (https://cloud.google.com/bigquery/quotas#all_tables), less the run table's own."""


@dataclass(frozen=True, kw_only=True)
class ColumnType:
    """A type, and what becomes of its values.

    Attributes:
        sql: Its name in SQL.
        aliases: Further ones.
        feature: List of `tf.train.Feature` that it goes to.
        value: What stands in the list.
        exact: What to select instead where the value is not exact; empty: it is.
        arrow: How the Storage Read API sends it.
        tensorflow: How tensorflow-io's client gives it; empty: it cannot.
        reading: How SQL reads it in the role of a feature: `number`, `truth`, `text` or `bytes`.
        is_key: Whether BigQuery casts it to STRING, which is how a key decides its split.
        in_files: Whether a column of `data.files` can be of it.
        is_time: Whether an event's time can be of it.
        in_csv: Whether a line of a CSV file can hold it.
    """

    sql: str
    aliases: tuple[str, ...] = ()
    feature: str
    value: str
    exact: str = ""
    arrow: str
    tensorflow: str = ""
    reading: str = "number"
    is_key: bool = True
    in_files: bool = True
    is_time: bool = False
    in_csv: bool = True


_DECIMAL = "rounded to float64, that to the nearest float32"

COLUMN_TYPES: Mapping[str, ColumnType] = {
    "INTEGER": ColumnType(sql="INT64", feature="int64_list", value="as it is", arrow="int64", tensorflow="int64"),
    "FLOAT": ColumnType(
        sql="FLOAT64",
        feature="float_list",
        value="rounded to the nearest float32; beyond its range ±infinity; NaN stays NaN",
        exact="`CAST(x AS STRING)`: its digits give the same float64 back",
        arrow="double",
        tensorflow="float64",
    ),
    "NUMERIC": ColumnType(
        sql="NUMERIC",
        aliases=("DECIMAL",),
        feature="float_list",
        value=_DECIMAL,
        exact="`CAST(x AS STRING)`, or whole cents: `CAST(x * 100 AS INT64)`",
        arrow="decimal128(38, 9)",
    ),
    "BIGNUMERIC": ColumnType(
        sql="BIGNUMERIC",
        aliases=("BIGDECIMAL",),
        feature="float_list",
        value=_DECIMAL,
        exact="`CAST(x AS STRING)`",
        arrow="decimal256(76, 38)",
    ),
    "BOOLEAN": ColumnType(
        sql="BOOL", feature="int64_list", value="0 or 1", arrow="bool", tensorflow="bool", reading="truth"
    ),
    "STRING": ColumnType(
        sql="STRING", feature="bytes_list", value="UTF-8", arrow="string", tensorflow="string", reading="text"
    ),
    "BYTES": ColumnType(
        sql="BYTES",
        feature="bytes_list",
        value="as it is; of a feature of `kind: image` see [Images](#images)",
        arrow="binary",
        tensorflow="string",
        reading="bytes",
        in_csv=False,
    ),
    "DATE": ColumnType(
        sql="DATE", feature="int64_list", value="days since 1970-01-01", arrow="date32[day]", is_time=True
    ),
    "DATETIME": ColumnType(
        sql="DATETIME",
        feature="int64_list",
        value="microseconds since 1970-01-01 00:00, no time zone",
        arrow="timestamp[us]",
        is_time=True,
    ),
    "TIME": ColumnType(sql="TIME", feature="int64_list", value="microseconds since midnight", arrow="time64[us]"),
    "TIMESTAMP": ColumnType(
        sql="TIMESTAMP",
        feature="int64_list",
        value="microseconds since 1970-01-01 00:00 UTC",
        arrow="timestamp[us, tz=UTC]",
        is_time=True,
    ),
    "JSON": ColumnType(
        sql="JSON",
        feature="bytes_list",
        value="its text as BigQuery writes it, UTF-8",
        arrow="string",
        is_key=False,
        in_files=False,
    ),
    "GEOGRAPHY": ColumnType(
        sql="GEOGRAPHY", feature="bytes_list", value="WKT, UTF-8", arrow="string", is_key=False, in_files=False
    ),
}
"""All that an export can hold, in the order of the docs."""
WAYS_OUT = {
    "STRUCT": "Select its fields one by one",
    "INTERVAL": "Select CAST(x AS STRING), or parts of it: EXTRACT(DAY FROM x)",
    "RANGE": "Select RANGE_START(x) and RANGE_END(x)",
}
"""What to do about types that are refused. A STRUCT is here only as a column that was not flattened."""
API_NAMES = {
    **{name: api for api, row in COLUMN_TYPES.items() for name in (row.sql, *row.aliases) if name != api},
    "STRUCT": "RECORD",
}
"""By each other name of a type."""
SQL_NAMES = {api: row.sql for api, row in COLUMN_TYPES.items()}

READ_FROM_TABLE = tuple(COLUMN_TYPES)
"""Scalars that a training reads from the run table itself (`training.input: bigquery`)."""
READ_BY_TENSORFLOW_IO = tuple(name for name, row in COLUMN_TYPES.items() if row.tensorflow)
"""Those of them that tensorflow-io's client reads."""
WITHOUT_CSV = tuple(name for name, row in COLUMN_TYPES.items() if not row.in_csv)
EVENT_TIME_TYPES = tuple(name for name, row in COLUMN_TYPES.items() if row.is_time)
KEY_TYPES = tuple(sorted(name for name, row in COLUMN_TYPES.items() if row.is_key))
NUMBERS = ("INTEGER", "BOOLEAN", "FLOAT", "NUMERIC", "BIGNUMERIC")
TEXTS = ("STRING", "INTEGER", "BOOLEAN")
"""What becomes the same text in files, in BigQuery's CAST(x AS STRING) and in a request; DATE and FLOAT do not."""
_AMOUNTS = ("INTEGER", "FLOAT", "NUMERIC", "BIGNUMERIC")

ROLE_TYPES: Mapping[str, tuple[str, ...]] = {
    "numeric": NUMBERS,
    "categorical": TEXTS,
    "image": ("BYTES",),
    "image_address": ("STRING",),
    "text": ("STRING",),
    "time": EVENT_TIME_TYPES,
    "bag": ("STRING",),
    "binary": ("INTEGER", "BOOLEAN", "FLOAT"),
    "multiclass": ("INTEGER",),
    "regression": _AMOUNTS,
    "slice": TEXTS,
    "weight": _AMOUNTS,
}
"""By the kind of a feature (of a sequence: of its elements) or of the label; slices of an evaluation, and weights."""
