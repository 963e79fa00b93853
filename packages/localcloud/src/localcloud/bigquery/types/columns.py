"""What a stored column is: its type as BigQuery names it, and its values as the Storage Read API sends them.

In: DuckDB's types, which hold what Arrow loses (JSON, GEOGRAPHY, whole numbers of every width). Out: fields of a
table's schema, Arrow fields, and the SQL that turns stored values into them (and loaded text into stored values).

| BigQuery | stored as | Arrow |
|---|---|---|
| BOOLEAN | BOOLEAN | bool |
| INTEGER | BIGINT, and every other whole number | int64 |
| FLOAT | DOUBLE, FLOAT | double |
| NUMERIC | DECIMAL(38, 9) | decimal128(38, 9) |
| BIGNUMERIC | DECIMAL(38, 10): 28 digits before the point, 10 behind it | decimal256(76, 38) |
| STRING | VARCHAR | string |
| BYTES | BLOB | binary |
| DATE | DATE | date32 |
| TIME | TIME | time64[us] |
| DATETIME | TIMESTAMP | timestamp[us], extension google:sqlType:datetime |
| TIMESTAMP | TIMESTAMP WITH TIME ZONE | timestamp[us, UTC] |
| GEOGRAPHY | GEOMETRY | string (WKT), extension google:sqlType:geography |
| JSON | JSON | string, extension google:sqlType:json |
| INTERVAL | INTERVAL | interval[month, day, nano] |
| ARRAY | LIST | list<item>, never NULL |
| STRUCT | STRUCT | struct |

https://cloud.google.com/bigquery/docs/reference/storage#arrow_schema_details; the extensions are those that
google-cloud-bigquery expects (`_pandas_helpers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from localcloud.bigquery.types.intervals import interval_expression
from localcloud.statements import statement
from localcloud.untyped import Untyped

BIGNUMERIC = "DECIMAL(38, 10)"  # DuckDB ends at 38 digits; these leave room for the sum of 64-bit fingerprints
_NUMERIC_SCALE = 9
_SCALARS: dict[str, tuple[str, pa.DataType]] = {
    **dict.fromkeys(
        ("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint"),
        ("INTEGER", pa.int64()),
    ),
    **dict.fromkeys(("float", "double"), ("FLOAT", pa.float64())),
    "boolean": ("BOOLEAN", pa.bool_()),
    "varchar": ("STRING", pa.string()),
    "blob": ("BYTES", pa.binary()),
    "date": ("DATE", pa.date32()),
    "time": ("TIME", pa.time64("us")),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), ("DATETIME", pa.timestamp("us"))),
    "timestamp with time zone": ("TIMESTAMP", pa.timestamp("us", tz="UTC")),
    "interval": ("INTERVAL", pa.month_day_nano_interval()),
    "geometry": ("GEOGRAPHY", pa.string()),
}
_EXTENSIONS = {
    "DATETIME": {"ARROW:extension:name": "google:sqlType:datetime"},
    "GEOGRAPHY": {
        "ARROW:extension:name": "google:sqlType:geography",
        "ARROW:extension:metadata": '{"encoding": "WKT"}',
    },
    "JSON": {"ARROW:extension:name": "google:sqlType:json"},
}


@dataclass(frozen=True, kw_only=True)
class ColumnType:
    """A column's or a field's type.

    Attributes:
        name: Of the column or field; "" for an array's element.
        kind: BigQuery's name as tables.get gives it: INTEGER, RECORD, …; of an array: its element's.
        repeated: Whether it is an array.
        fields: Of a RECORD.
        arrow: The Arrow type it is sent as.
        stored: DuckDB's type.
    """

    name: str
    kind: str
    repeated: bool
    fields: tuple[ColumnType, ...]
    arrow: pa.DataType
    stored: str

    def arrow_field(self) -> pa.Field:
        """Return the Arrow field, with the extension that tells the type where Arrow's own does not."""
        return pa.field(self.name, self.arrow, metadata=None if self.repeated else _EXTENSIONS.get(self.kind))

    def rest_field(self, mode: str = "NULLABLE") -> dict[str, Any]:
        """Return the field of a table's schema (REST's TableFieldSchema)."""
        field: dict[str, Any] = {"name": self.name, "type": self.kind, "mode": "REPEATED" if self.repeated else mode}
        return field | ({"fields": [inner.rest_field() for inner in self.fields]} if self.fields else {})

    def prune(self, paths: set[tuple[str, ...]]) -> ColumnType:
        """Return the type with only some of a RECORD's fields, by their paths below it (lower case; (): all)."""
        if () in paths or not self.fields:
            return self
        kept = tuple(
            field.prune({path[1:] for path in paths if path[0] == field.name.lower()})
            for field in self.fields
            if any(path[0] == field.name.lower() for path in paths)
        )
        element = pa.struct([field.arrow_field() for field in kept])
        arrow = pa.list_(pa.field("item", element)) if self.repeated else element
        return ColumnType(
            name=self.name, kind=self.kind, repeated=self.repeated, fields=kept, arrow=arrow, stored=self.stored
        )

    def has_field(self, path: tuple[str, ...]) -> bool:
        """Return whether there is a field at a path below this one (lower case; (): itself)."""
        if not path:
            return True
        return any(field.has_field(path[1:]) for field in self.fields if field.name.lower() == path[0])


def column_type(name: str, stored: Untyped) -> ColumnType:
    """Return the type of a column.

    Args:
        stored: DuckDB's type (DuckDBPyType).
    """
    if stored.id in ("list", "array"):
        element = column_type("item", dict(stored.children)["child"])
        return ColumnType(
            name=name,
            kind=element.kind,
            repeated=True,
            fields=element.fields,
            arrow=pa.list_(element.arrow_field()),
            stored=str(stored),
        )
    if stored.id == "struct":
        fields = tuple(column_type(inner, kind) for inner, kind in stored.children)
        arrow = pa.struct([field.arrow_field() for field in fields])
        return ColumnType(name=name, kind="RECORD", repeated=False, fields=fields, arrow=arrow, stored=str(stored))
    kind, arrow = _scalar(stored)
    return ColumnType(name=name, kind=kind, repeated=False, fields=(), arrow=arrow, stored=str(stored))


def column_types(connection: Untyped, relation: str) -> list[ColumnType]:
    """Return the types of a stored table's or query's columns.

    Args:
        relation: What stands behind FROM, in DuckDB's SQL.
    """
    cursor = connection.execute(statement("SELECT * FROM {relation} LIMIT 0", relation=relation))
    return [column_type(name, kind) for name, kind, *_ in cursor.description]


def _scalar(stored: Untyped) -> tuple[str, pa.DataType]:
    if str(stored) == "JSON":
        return "JSON", pa.string()
    if stored.id == "decimal":
        scale = dict(stored.children)["scale"]
        return ("BIGNUMERIC", pa.decimal256(76, 38)) if scale > _NUMERIC_SCALE else ("NUMERIC", pa.decimal128(38, 9))
    return _SCALARS.get(stored.id, ("STRING", pa.string()))


def read_expression(column: ColumnType, sql: str, depth: int = 0) -> str:
    """Return the DuckDB expression whose Arrow form is `column.arrow` or can be cast to it; `sql` is stored values."""
    if column.repeated:
        element = f"e{depth}"
        inner = read_expression(_element(column), element, depth + 1)
        listed = sql if inner == element else f"list_transform({sql}, lambda {element}: {inner})"
        return f"coalesce({listed}, [])"  # an array column has no NULL
    if column.kind == "RECORD":
        parts = [(field, f"struct_extract({sql}, {text(field.name)})") for field in column.fields]
        inner_parts = [(field.name, read_expression(field, part, depth)) for field, part in parts]
        packed = ", ".join(f"{quoted(name)} := {part}" for name, part in inner_parts)
        return f"CASE WHEN {sql} IS NULL THEN NULL ELSE struct_pack({packed}) END"
    if column.kind == "GEOGRAPHY":  # BigQuery writes POINT(1 2), DuckDB POINT (1 2)
        return f"regexp_replace(ST_AsText({sql}), '([A-Z]) \\(', '\\1(', 'g')"
    if column.kind == "INTEGER" and column.stored != "BIGINT":
        return f"CAST({sql} AS BIGINT)"
    if column.kind == "NUMERIC" and column.stored != "DECIMAL(38,9)":
        return f"CAST({sql} AS DECIMAL(38, 9))"
    return f"CAST({sql} AS VARCHAR)" if column.kind in ("JSON", "STRING") and column.stored != "VARCHAR" else sql


def as_sent(reader: pa.RecordBatchReader, columns: Sequence[ColumnType]) -> pa.RecordBatchReader:
    """Return batches of `read_expression`s in the columns' Arrow types: names inside arrays, decimals, extensions."""
    schema = pa.schema([column.arrow_field() for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            arrays = [
                array if array.type.equals(field.type, check_metadata=True) else array.cast(field.type, safe=False)
                for array, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


_AS_TEXT = frozenset({"BYTES", "GEOGRAPHY", "INTERVAL"})
"""Kinds that JSON and CSV files hold in forms which DuckDB's readers do not take."""
JSON_AS_TEXT = _AS_TEXT | {"FLOAT", "TIMESTAMP"}
"""Those of JSON: infinity and NaN are in quotation marks, and a TIMESTAMP may be seconds since 1970."""


def load_type(column: ColumnType, as_text: frozenset[str] = _AS_TEXT) -> str:
    """Return the DuckDB type that a JSON file's values are read as, before `load_expression` makes them stored ones."""
    if column.repeated:
        return f"{load_type(_element(column), as_text)}[]"
    if column.kind == "RECORD":
        return f"STRUCT({', '.join(f'{quoted(field.name)} {load_type(field, as_text)}' for field in column.fields)})"
    return "VARCHAR" if column.kind in as_text else column.stored


def load_expression(column: ColumnType, sql: str, depth: int = 0, as_text: frozenset[str] = _AS_TEXT) -> str:
    """Return the DuckDB expression for the stored value of what was read as `load_type`.

    BYTES are base64 in JSON and CSV files, GEOGRAPHY is WKT, an INTERVAL is written as BigQuery does or by ISO 8601,
    and a missing array is an empty one. In JSON a FLOAT may be `+inf`, a TIMESTAMP may be seconds since 1970.
    """
    if column.repeated:
        element = f"e{depth}"
        inner = load_expression(_element(column), element, depth + 1, as_text)
        listed = sql if inner == element else f"list_transform({sql}, lambda {element}: {inner})"
        return f"coalesce({listed}, [])"
    if column.kind == "RECORD":
        parts = [
            (field.name, load_expression(field, f"struct_extract({sql}, {text(field.name)})", depth, as_text))
            for field in column.fields
        ]
        packed = ", ".join(f"{quoted(name)} := {part}" for name, part in parts)
        return f"CASE WHEN {sql} IS NULL THEN NULL ELSE struct_pack({packed}) END"
    return _from_text(column.kind, sql) if column.kind in as_text else sql


def _from_text(kind: str, sql: str) -> str:
    """Return the expression for a value that was read as text."""
    if kind == "BYTES":
        return f"from_base64({sql})"
    if kind == "FLOAT":
        return f"CAST({sql} AS DOUBLE)"
    if kind == "INTERVAL":
        return interval_expression(sql)
    if kind == "TIMESTAMP":
        moment = f"make_timestamptz(CAST(TRY_CAST({sql} AS DECIMAL(38, 6)) * 1000000 AS BIGINT))"
        is_number = rf"regexp_full_match({sql}, '-?\d+(\.\d+)?')"
        return f"CASE WHEN {is_number} THEN {moment} ELSE CAST({sql} AS TIMESTAMPTZ) END"
    return f"ST_GeomFromText({sql})"


def _element(column: ColumnType) -> ColumnType:
    return ColumnType(
        name="item",
        kind=column.kind,
        repeated=False,
        fields=column.fields,
        arrow=column.arrow.value_type,
        stored=column.stored.removesuffix("[]"),
    )


def quoted(name: str) -> str:
    """Return a name as an identifier in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(name: str) -> str:
    """Return a string as a literal in DuckDB's SQL."""
    return "'" + name.replace("'", "''") + "'"
