"""Files for `make bench-input`, written by the trainer's own exporter: its encoder, framing, compression and layouts.

In: a folder and how many rows. Out: sets of four shards with a description beside them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench import tables
from trainer.documents import Layout
from trainer.export.encode import Encoder
from trainer.export.tfrecord import write_shard

SHARDS = 4
_PRE_BATCHED_ROWS = 256
_SPAN = "2013-01-01"


@dataclass(frozen=True, kw_only=True)
class Files:
    """A set of shards.

    Attributes:
        rows: Of all.
        compression: GZIP or NONE.
        layout: How rows lie in a record.
        columns: `int64`, `float32` or `string` by name.
        files: As a manifest lists them.
    """

    rows: int
    compression: str
    layout: Layout
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
        layout = Layout(**{**stored.pop("layout"), "numeric": tuple(stored["columns"]) if "vector" in name else ()})
        return cls(**stored, layout=layout)


def write_files(folder_path: Path, flights_rows: int, wide_rows: int) -> None:
    """Write all sets."""
    flights, wide = tables.flights(flights_rows), tables.wide(wide_rows)
    write_set(folder_path, "flights", flights)
    write_set(folder_path, "flights GZIP", flights, compression="GZIP")
    write_set(folder_path, "flights pre-batched", flights, layout=Layout(rows_per_record=_PRE_BATCHED_ROWS))
    write_set(folder_path, "wide", wide)
    write_set(folder_path, "wide vector", wide, layout=Layout(numeric=tuple(wide.column_names)))


def write_set(
    folder_path: Path, name: str, table: pa.Table, layout: Layout | None = None, compression: str = "NONE"
) -> None:
    """Write a table as shards, and describe them."""
    layout = layout or Layout()
    size = -(-table.num_rows // SHARDS)
    files = []
    for index in range(SHARDS):
        part = table.slice(index * size, size).combine_chunks()
        path = folder_path / f"{name.replace(' ', '-')}-{index:05d}-of-{SHARDS:05d}.tfrecord"
        with path.open("wb") as file:
            records = (buffer for batch in part.to_batches() for buffer in Encoder(part.schema, layout).encode(batch))
            digest = write_shard(records, file, "GZIP" if compression == "GZIP" else "NONE")
        place = {"uri": str(path), "span": _SPAN, "part": "train", "rows": part.num_rows}
        files.append({**place, **dataclasses.asdict(digest)})
    description = {
        "rows": table.num_rows,
        "compression": compression,
        "layout": {"rows_per_record": layout.rows_per_record},
        "columns": {field.name: _dtype(field.type) for field in table.schema},
        "files": files,
    }
    _description_path(folder_path, name).write_text(json.dumps(description))


def _description_path(folder_path: Path, name: str) -> Path:
    return folder_path / f"{name.replace(' ', '-')}.json"


def _dtype(type_: pa.DataType) -> str:
    if pa.types.is_floating(type_):
        return "float32"
    return "string" if pa.types.is_string(type_) else "int64"
