"""Predictions for a table's rows, in a table.

Comes in: record batches of the Storage Read API. Goes out: Parquet files that a load job makes a table of: the input's
columns (or `key`) and `prediction`, a STRING with the prediction as JSON; of rows that failed another, with `errors`.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.cloud import bigquery
from google.cloud.aiplatform_v1.types import BatchPredictionJob
from pyarrow import parquet

from localcloud.vertex.jobs.batch.conversion import KEY, Batch, Conversion, Json
from localcloud.vertex.resources.tables import Column, RecordBatch, Tables
from localcloud.vertex.wire.errors import ApiError

PREDICTION, ERRORS = "prediction", "errors"
_ERROR_TYPE = pa.struct([("code", pa.int64()), ("message", pa.string())])
_ERROR_FIELDS = [bigquery.SchemaField("code", "INTEGER"), bigquery.SchemaField("message", "STRING")]
_ROWS_PER_GROUP, _BYTES_PER_GROUP = 16_384, 16 * 1024 * 1024
_PLAIN = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
# A column of a record batch: pyarrow publishes no types.
Array = Any


def read_batches(tables: Tables, table: str, conversion: Conversion, batch_size: int) -> Iterator[Batch]:
    """Return a table's rows in batches.

    Raises:
        ApiError: The table cannot be read.
    """
    for page in tables.read(table):
        sent, shown = conversion.sent(page.schema.names), _shown(page, conversion)
        for start in range(0, page.num_rows, batch_size):
            piece = page.slice(start, batch_size)
            values = [json_values(piece.column(field)) for field in sent]
            rows = zip(*values, strict=True)
            instances = [list(row) if conversion.is_array else dict(zip(sent, row, strict=True)) for row in rows]
            yield Batch(instances=instances, shown=shown.slice(start, batch_size))


def shown_columns(columns: list[Column], conversion: Conversion) -> list[Column]:
    """Return the columns that the output shows of the input."""
    if conversion.key_field:
        found = next(column for column in columns if column.name == conversion.key_field)
        return [bigquery.SchemaField.from_api_repr({**found.to_api_repr(), "name": KEY})]
    return [column for column in columns if not conversion.included or column.name in conversion.included]


def _shown(page: RecordBatch, conversion: Conversion) -> RecordBatch:
    if conversion.key_field:
        return page.select([conversion.key_field]).rename_columns([KEY])
    return page.select([name for name in page.schema.names if not conversion.included or name in conversion.included])


class TableOutput:
    """The tables of predictions and of errors, as files until the end.

    Args:
        tables: Where they go at the end.
        destination: `project.dataset`.
        names: Of the table of predictions and that of errors.
        columns: What stands beside the prediction.
        folder: Takes the files.
    """

    def __init__(
        self, *, tables: Tables, destination: str, names: tuple[str, str], columns: list[Column], folder: Path
    ) -> None:
        self._tables = tables
        self._destination = destination
        self._names = names
        self._columns = columns
        self._good = _Rows(folder / "predictions.parquet")
        self._bad = _Rows(folder / "errors.parquet")

    def add(self, batch: Batch, predictions: list[Json]) -> None:
        """Keep rows with their predictions."""
        texts = pa.array([json.dumps(prediction) for prediction in predictions], pa.string())
        self._good.add(batch.shown.append_column(PREDICTION, texts))

    def add_failed(self, batch: Batch, error: ApiError) -> None:
        """Keep rows that have none, with the reason."""
        reason = {"code": error.to_status().code, "message": error.message}
        self._bad.add(batch.shown.append_column(ERRORS, pa.array([reason] * batch.shown.num_rows, _ERROR_TYPE)))

    def finish(self) -> BatchPredictionJob.OutputInfo:
        """Write the tables; that of errors only when there are any.

        Raises:
            ApiError: BigQuery does not take them.
        """
        predictions, errors = self._names
        good, bad = self._good.close(), self._bad.close()
        columns = [*self._columns, bigquery.SchemaField(PREDICTION, "STRING")]
        self._tables.write(good, f"{self._destination}.{predictions}", columns)
        if bad:
            columns = [*self._columns, bigquery.SchemaField(ERRORS, "RECORD", fields=_ERROR_FIELDS)]
            self._tables.write(bad, f"{self._destination}.{errors}", columns)
        return BatchPredictionJob.OutputInfo(
            bigquery_output_dataset=f"bq://{self._destination}", bigquery_output_table=predictions
        )


class _Rows:
    """A Parquet file that grows by groups of rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: parquet.ParquetWriter | None = None
        self._waiting: list[RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, rows: RecordBatch) -> None:
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _ROWS_PER_GROUP or self._bytes >= _BYTES_PER_GROUP:
            self._flush()

    def close(self) -> Path | None:
        """Return the file, or None when there are no rows."""
        if self._waiting:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        return self._path

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)
        self._waiting, self._rows, self._bytes = [], 0, 0


def json_values(column: Array) -> list[Json]:
    """Return a column's values as the service writes them in an instance.

    https://cloud.google.com/vertex-ai/docs/predictions/get-batch-predictions#bigquery
    """
    values: list[Json] = column.to_pylist()
    return values if any(is_plain(column.type) for is_plain in _PLAIN) else [_to_json(value) for value in values]


def _to_json(value: Json) -> Json:
    match value:
        case datetime.datetime():
            return value.isoformat(" " if value.tzinfo else "T")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes():
            return {"b64": base64.b64encode(value).decode()}
        case list():
            return [_to_json(item) for item in value]
        case dict():
            return {name: _to_json(item) for name, item in value.items()}
    return value
