"""Rows as the files that the service writes: CSV, newline-delimited JSON, Parquet, Avro.

In: batches of Arrow as the Storage Read API sends them, their columns, the job's options. Out: one local file. Texts
follow https://cloud.google.com/bigquery/docs/exporting-data#export_limitations: INT64 is a string in JSON, a TIMESTAMP
says UTC, BYTES are base64, NULL is an empty field or no field.
"""

from __future__ import annotations

import base64
import csv
import datetime as dt
import decimal
import gzip
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import pyarrow.parquet as pq

from localcloud.bigquery.types.columns import ColumnType
from localcloud.untyped import Untyped

Reader: TypeAlias = Untyped
"""A pyarrow.RecordBatchReader."""
JsonValue: TypeAlias = str | float | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, kw_only=True)
class ExtractOptions:
    """How files are written.

    Attributes:
        format: CSV, NEWLINE_DELIMITED_JSON, PARQUET or AVRO.
        compression: NONE, or one that `COMPRESSIONS` has for the format.
        delimiter: Between CSV's fields.
        header: Whether CSV begins with the columns' names.
    """

    format: str
    compression: str = "NONE"
    delimiter: str = ","
    header: bool = True


COMPRESSIONS = {
    "CSV": ("NONE", "GZIP"),
    "NEWLINE_DELIMITED_JSON": ("NONE", "GZIP"),
    "PARQUET": ("NONE", "SNAPPY", "GZIP", "ZSTD"),
    "AVRO": ("NONE", "DEFLATE"),
}
CONTENT_TYPES = {
    "CSV": "text/csv",
    "NEWLINE_DELIMITED_JSON": "application/json",
    "PARQUET": "application/octet-stream",
    "AVRO": "application/octet-stream",
}


def write(path: Path, reader: Reader, columns: Sequence[ColumnType], options: ExtractOptions) -> int:
    """Write a file; gives how many rows it has."""
    return _WRITERS[options.format](path, reader, columns, options)


def _write_csv(path: Path, reader: Reader, columns: Sequence[ColumnType], options: ExtractOptions) -> int:
    count = 0
    with _open_text(path, options) as file:
        writer = csv.writer(file, delimiter=options.delimiter, lineterminator="\n")
        if options.header:
            writer.writerow([column.name for column in columns])
        for row in _rows(reader):
            writer.writerow([_csv_text(row[column.name], column) for column in columns])
            count += 1
    return count


def _write_json(path: Path, reader: Reader, columns: Sequence[ColumnType], options: ExtractOptions) -> int:
    count = 0
    with _open_text(path, options) as file:
        for row in _rows(reader):
            file.write(json.dumps(_json_record(row, columns), ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def _write_parquet(path: Path, reader: Reader, columns: Sequence[ColumnType], options: ExtractOptions) -> int:
    del columns  # the reader has their types
    count = 0
    with pq.ParquetWriter(str(path), reader.schema, compression=options.compression.lower()) as writer:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _write_avro(path: Path, reader: Reader, columns: Sequence[ColumnType], options: ExtractOptions) -> int:
    import fastavro  # type: ignore[import-not-found]  # only in the local cloud environment
    from bqemulator.streaming.avro_serializer import arrow_schema_to_avro_json

    del columns
    count = 0

    def counted() -> Iterator[dict[str, Untyped]]:
        nonlocal count
        for row in _rows(reader):
            count += 1
            yield row

    schema = fastavro.parse_schema(json.loads(arrow_schema_to_avro_json(reader.schema)))
    with path.open("wb") as file:
        fastavro.writer(file, schema, counted(), codec="deflate" if options.compression == "DEFLATE" else "null")
    return count


_WRITERS: dict[str, Callable[[Path, Reader, Sequence[ColumnType], ExtractOptions], int]] = {
    "CSV": _write_csv,
    "NEWLINE_DELIMITED_JSON": _write_json,
    "PARQUET": _write_parquet,
    "AVRO": _write_avro,
}


def _open_text(path: Path, options: ExtractOptions) -> IO[str]:
    if options.compression == "GZIP":
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


def _rows(reader: Reader) -> Iterator[dict[str, Untyped]]:
    for batch in reader:
        yield from batch.to_pylist()


def _csv_text(value: object, column: ColumnType) -> object:
    return "" if value is None else _text(value, column.kind)


def _json_record(row: dict[str, Untyped], columns: Sequence[ColumnType]) -> dict[str, JsonValue]:
    return {
        column.name: _json_value(row[column.name], column) for column in columns if row.get(column.name) is not None
    }


def _json_value(value: Untyped, column: ColumnType) -> JsonValue:
    if column.repeated:
        return [_json_scalar(each, column) for each in value]
    return _json_scalar(value, column)


def _json_scalar(value: Untyped, column: ColumnType) -> JsonValue:
    if column.kind == "RECORD":
        return _json_record(value, column.fields)
    if isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _text(value, column.kind)


def _text(value: object, kind: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, decimal.Decimal):
        plain = f"{value:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if isinstance(value, dt.datetime) and kind == "TIMESTAMP":
        return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(sep=' ')} UTC"
    if isinstance(value, dt.date | dt.time):  # a DATETIME, too
        return value.isoformat()
    return str(value)
