"""CSV shards: a header line with the columns' names, then a line per row.

Columns stand in the schema's order and hold the values that TFRecords hold: DATE days, DATETIME and TIMESTAMP
microseconds since 1970-01-01, TIME microseconds since midnight, BOOLEAN 0 or 1. FLOAT is the shortest text that reads
back as the same double (`nan`, `inf` and `-inf` are such texts), NUMERIC its exact decimals. Text is quoted, quotes in
it are doubled; NULL is empty and not quoted, so that it differs from the empty string. No value holds a line break:
readers take a file line by line.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from trainer.contract.column_types import WITHOUT_CSV
from trainer.contract.documents import Column, ExportRequest
from trainer.errors import DataError, RequestError
from trainer.export.encoding.arrays import integers

_CHUNK_BYTES = 4 << 20
_FIRST_ROWS = 1024
_LINES = csv.WriteOptions(include_header=False, batch_size=8192)


class CsvFormat:
    """Lines of text.

    Args:
        request: Its schema says which columns there are.

    Raises:
        RequestError: A column has no form in CSV, or the request has options of TFRecords.
    """

    multiple = 1

    def __init__(self, request: ExportRequest, suffix: str) -> None:
        self.suffix = suffix
        where = f"{request.kind} of run {request.run_key}"
        _require_forms(request.columns, where)
        if request.layout.numeric or request.layout.rows_per_record > 1 or request.images:
            raise RequestError(
                where,
                "format csv with a layout or images",
                "those with format tfrecord only",
                "Set training.input to tfrecord" + ("" if request.images else ", or data.layout to its defaults"),
            )
        self._names = [column.name for column in request.columns]

    def head(self) -> bytes:
        """Return the header line."""
        empty = pa.record_batch([pa.array([], pa.int8()) for _ in self._names], names=self._names)
        return _text(empty, csv.WriteOptions(include_header=True))

    def encode(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """Yield lines, some megabytes at a time."""
        start, rows = 0, _FIRST_ROWS
        while start < batch.num_rows:
            text = self._lines(batch.slice(start, rows))
            start += rows
            rows = max(_CHUNK_BYTES * min(rows, batch.num_rows) // max(len(text), 1), 16)
            yield text

    def row_bytes(self, batch: pa.RecordBatch) -> list[bytes]:
        """Return each row's line."""
        return self._lines(batch).splitlines(keepends=True)

    def _lines(self, batch: pa.RecordBatch) -> bytes:
        columns = [_as_text(batch.column(name)) for name in self._names]
        text = _text(pa.record_batch(columns, names=self._names), _LINES)
        if text.count(b"\n") != batch.num_rows or b"\r" in text:
            raise _line_break(batch)
        return text


def _as_text(column: pa.Array) -> pa.Array:
    """Return the column as `write_csv` writes it right."""
    type_ = column.type
    if not pa.types.is_boolean(type_) and not pa.types.is_temporal(type_):
        return column
    return pc.if_else(column.is_valid(), pa.array(integers(column)), pa.scalar(None, pa.int64()))


def _line_break(batch: pa.RecordBatch) -> DataError:
    broken = [
        name
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if pa.types.is_string(column.type) and pc.any(pc.match_substring_regex(column, "[\\r\\n]")).as_py()
    ]
    return DataError(
        f"column {', '.join(broken)}",
        "a line break in a value",
        "text that stays on its line in a CSV file",
        "Remove it in the query, or set training.input to tfrecord",
    )


def _text(batch: pa.RecordBatch, options: csv.WriteOptions) -> bytes:
    sink = io.BytesIO()
    csv.write_csv(batch, sink, options)
    return sink.getvalue()


def _require_forms(schema: tuple[Column, ...], where: str) -> None:
    refused = [
        f"{column.name} ({column.mode} {column.type})"
        for column in schema
        if column.mode == "REPEATED" or column.type in WITHOUT_CSV
    ]
    if refused:
        raise RequestError(
            where,
            f"no form in CSV for column {', '.join(refused)}",
            "scalars other than BYTES",
            "Set training.input to tfrecord, or leave the columns out of the query",
        )
