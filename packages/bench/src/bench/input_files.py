"""Files for `make bench-input`, written by the trainer's own exporter: its formats, layouts and compression.

In: a folder and how many rows. Out: sets of four shards with a description beside them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from bench import tables
from trainer.contract.documents import Column, ExportRequest, Manifest, ManifestFile, ManifestSplit, ShardLayout
from trainer.contract.reading import serialise
from trainer.export.encoding.formats import make_format
from trainer.export.encoding.tfrecord import ShardFile
from trainer.storage import Storage

SHARDS = 4
_PRE_BATCHED_ROWS = 256
_SPAN = "2013-01-01"


@dataclass(frozen=True, kw_only=True)
class Files:
    """A set of shards.

    Attributes:
        rows: Of all.
        compression: GZIP or NONE.
        format: `tfrecord` or `csv`.
        layout: How rows lie in a record.
        columns: BigQuery's types by name.
        files: As a manifest lists them.
    """

    rows: int
    compression: str
    format: str
    layout: ShardLayout
    columns: Mapping[str, str]
    files: Sequence[Mapping[str, Any]]

    @property
    def paths(self) -> list[str]:
        """Where they are."""
        return [file["uri"] for file in self.files]

    @property
    def tensorflow_compression(self) -> str:
        """As `tf.data.TFRecordDataset` names it."""
        return "GZIP" if self.compression == "GZIP" else ""

    @classmethod
    def load(cls, folder_path: Path, name: str) -> Files:
        """Read a set's description."""
        stored = json.loads(_description_path(folder_path, name).read_text())
        layout = stored.pop("layout")
        return cls(**stored, layout=ShardLayout(**{**layout, "numeric": tuple(layout["numeric"])}))


def write_files(folder_path: Path, flights_rows: int, wide_rows: int) -> None:
    """Write all sets."""
    flights, wide = tables.flights(flights_rows), tables.wide(wide_rows)
    write_set(folder_path, "flights", flights)
    write_set(folder_path, "flights GZIP", flights, compression="GZIP")
    write_set(folder_path, "flights CSV", flights, format_="csv")
    write_set(folder_path, "flights pre-batched", flights, layout=ShardLayout(rows_per_record=_PRE_BATCHED_ROWS))
    write_set(folder_path, "wide", wide)
    write_set(folder_path, "wide vector", wide, layout=ShardLayout(numeric=tuple(wide.column_names)))


def write_set(
    folder_path: Path,
    name: str,
    table: pa.Table,
    layout: ShardLayout | None = None,
    compression: Literal["GZIP", "NONE"] = "NONE",
    format_: Literal["tfrecord", "csv"] = "tfrecord",
) -> None:
    """Write a table as shards, and describe them."""
    columns = {field.name: _bigquery_type(field.type) for field in table.schema}
    request = make_request(columns, layout or ShardLayout(), compression, format_)
    size = -(-table.num_rows // SHARDS)
    files = [
        _write_shard(request, table.slice(index * size, size), folder_path / f"{name.replace(' ', '-')}-{index}")
        for index in range(SHARDS)
    ]
    description = {
        "rows": table.num_rows,
        "compression": compression,
        "format": format_,
        "layout": dataclasses.asdict(request.layout),
        "columns": columns,
        "files": files,
    }
    _description_path(folder_path, name).write_text(json.dumps(description))


def _write_shard(request: ExportRequest, rows: pa.Table, path: Path) -> dict[str, Any]:
    """Write one shard; give what a manifest says about it."""
    format_ = make_format(request, Storage())
    with path.open("wb") as file:
        shard = ShardFile(file, request.compression)
        shard.write(format_.head())
        for batch in rows.combine_chunks().to_batches():
            for piece in format_.encode(batch):
                shard.write(piece)
        digest = shard.finish()
    return {"uri": str(path), "span": _SPAN, "part": "train", "rows": rows.num_rows, **dataclasses.asdict(digest)}


def make_request(
    columns: Mapping[str, str],
    layout: ShardLayout,
    compression: Literal["GZIP", "NONE"],
    format_: Literal["tfrecord", "csv"],
) -> ExportRequest:
    """Return a request for files of such columns."""
    return ExportRequest(
        model="bench",
        run_key="bench",
        table="bench.bench.bench",
        columns=tuple(Column(name=name, type=type_, mode="NULLABLE") for name, type_ in columns.items()),
        schema_hash="0" * 16,
        compression=compression,
        spans_uri="/",
        spans=(),
        test_start=_SPAN,
        manifest_uri="/",
        format=format_,
        layout=layout,
    )


def _description_path(folder_path: Path, name: str) -> Path:
    return folder_path / f"{name.replace(' ', '-')}.json"


def _bigquery_type(type_: pa.DataType) -> str:
    if pa.types.is_floating(type_):
        return "FLOAT"
    if pa.types.is_string(type_):
        return "STRING"
    return "TIMESTAMP" if pa.types.is_timestamp(type_) else "INTEGER"


def write_manifest(folder_path: Path, run_key: str, compression: Literal["GZIP", "NONE"]) -> None:
    """Write `manifest.json` of the sets `train` and `validation` that lie in a folder."""
    written = {name: Files.load(folder_path, name) for name in ("train", "validation")}
    columns = written["train"].columns
    splits = {
        name: ManifestSplit(rows=files.rows, files=tuple(ManifestFile(**file) for file in files.files))
        for name, files in written.items()
    }
    manifest = Manifest(
        model="bench",
        run_key=run_key,
        schema_hash="0" * 16,
        compression=compression,
        columns=tuple(Column(name=name, type=type_, mode="NULLABLE") for name, type_ in columns.items()),
        table="bench.bench.bench",
        splits={**splits, "test": ManifestSplit(rows=0, files=())},
        spans=(),
        exported_rows=0,
        exported_bytes=0,
        seconds=0.0,
    )
    (folder_path / "manifest.json").write_bytes(serialise(manifest))
