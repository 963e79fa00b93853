"""What one core does in a second, piece by piece; each piece is a process of its own, in the trainer's environment.

    python -m bench.scaling_probes read TABLE COLUMNS    rows of a table through the Storage Read API, to Arrow batches
    python -m bench.scaling_probes resize FOLDER         JPEG files to 224 x 224 RGB pixels
    python -m bench.scaling_probes input FILES SPEC      records of TFRecord files to tensors, batch 1,024

In: command-line arguments. Out: one JSON object on standard output; CPU seconds are those of the whole process.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIDE_PIXELS = 224
_STREAMS = 2
_BATCH = 1024


def read_table(table: str, columns: str) -> dict[str, Any]:
    """Read a table's columns (comma-separated; empty: all) as the exporter does, and throw the rows away."""
    import pyarrow as pa
    from google.cloud.bigquery_storage_v1 import types
    from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

    client = BigQueryReadClient()
    project, dataset, name = table.split(".")
    request = types.ReadSession(
        table=f"projects/{project}/datasets/{dataset}/tables/{name}",
        data_format=types.DataFormat.ARROW,
        read_options=types.ReadSession.TableReadOptions(selected_fields=[part for part in columns.split(",") if part]),
    )
    session = client.create_read_session(parent=f"projects/{project}", read_session=request, max_stream_count=_STREAMS)
    schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
    rows = size = 0
    with _Measured() as measured:
        for stream in session.streams:
            for message in client.read_rows(read_stream=stream.name):
                content = pa.py_buffer(message.arrow_record_batch.serialized_record_batch)
                batch = pa.ipc.read_record_batch(content, schema)
                rows, size = rows + batch.num_rows, size + batch.nbytes
    return {"rows": rows, "bytes": size, **measured.seconds}


def resize(folder: str) -> dict[str, Any]:
    """Decode and shrink every JPEG file of a folder on one core, as `trainer.export.encoding.images` does."""
    from trainer.contract.documents import ImageColumn
    from trainer.export.encoding.images import resize as resize_one

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    column = ImageColumn(name="photo", height=SIDE_PIXELS, width=SIDE_PIXELS, channels=3, encoding="raw")
    contents = [path.read_bytes() for path in sorted(Path(folder).glob("*.jpg"))]
    with _Measured() as measured:
        for content in contents:
            resize_one(content, column)
    return {"rows": len(contents), "bytes": sum(map(len, contents)), **measured.seconds}


def read_input(pattern: str, spec: str) -> dict[str, Any]:
    """Parse shards as a training does: whole batches, files side by side, on one core.

    Args:
        pattern: Of GZIP files.
        spec: Features as `name:kind`, comma-separated: float, int, text, raw (an image's pixels) or jpeg.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import tensorflow as tf

    kinds = dict(part.split(":") for part in spec.split(","))
    types = {"float": (tf.float32, 0.0), "int": (tf.int64, 0), "text": (tf.string, "")}
    features = {name: tf.io.FixedLenFeature([], *types.get(kind, (tf.string, ""))) for name, kind in kinds.items()}

    def parse(records: Any) -> Any:  # noqa: ANN401 - TensorFlow publishes no types
        columns = tf.io.parse_example(records, features)
        for name, kind in kinds.items():
            if kind == "raw":
                pixels = tf.io.decode_raw(columns[name], tf.uint8)
                columns[name] = tf.reshape(pixels, [-1, SIDE_PIXELS, SIDE_PIXELS, 3])
            if kind == "jpeg":
                columns[name] = tf.map_fn(
                    lambda content: tf.io.decode_jpeg(content, channels=3), columns[name], fn_output_signature=tf.uint8
                )
        return columns

    images = any(kind in ("raw", "jpeg") for kind in kinds.values())
    batch = 64 if images else _BATCH
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    dataset = files.interleave(
        lambda file: tf.data.TFRecordDataset(file, "GZIP", buffer_size=8 << 20).batch(batch),
        cycle_length=2,
        num_parallel_calls=1,
    ).map(parse, num_parallel_calls=1)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 1
    dataset = dataset.with_options(options)
    next(iter(dataset))  # what is loaded and traced once
    rows = 0
    with _Measured() as measured:
        for columns in dataset:
            rows += int(next(iter(columns.values())).shape[0])
    return {"rows": rows, "bytes": sum(Path(file).stat().st_size for file in map(_text, files)), **measured.seconds}


def make_photos(folder: Path, count: int) -> None:
    """Write JPEG files of about 200 kB: 1024 x 768, smooth shapes with grain, as a camera's."""
    import numpy as np
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for index in range(count):
        pixels = np.zeros((768, 1024, 3), np.float32)
        for size, weight in ((4, 90), (16, 50), (64, 25), (256, 12)):
            noise = random.integers(0, 256, (size * 3 // 4, size, 3), np.uint8)
            pixels += np.asarray(Image.fromarray(noise).resize((1024, 768), Image.Resampling.BICUBIC)) * (weight / 177)
        pixels += random.normal(0, 7, pixels.shape)
        buffer = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=87)
        (folder / f"{index:05d}.jpg").write_bytes(buffer.getvalue())


class _Measured:
    """Wall and CPU seconds of a block."""

    def __enter__(self) -> _Measured:
        self._wall, self._cpu = time.perf_counter(), _cpu_s()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = {
            "wall_s": round(time.perf_counter() - self._wall, 4),
            "cpu_s": round(_cpu_s() - self._cpu, 4),
        }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _text(tensor: Any) -> str:  # noqa: ANN401 - TensorFlow publishes no types
    return str(tensor.numpy().decode())


_PROBES: dict[str, Callable[..., dict[str, Any]]] = {"read": read_table, "resize": resize, "input": read_input}


def main(arguments: list[str]) -> int:
    """Run one probe."""
    if arguments[0] == "photos":
        make_photos(Path(arguments[1]), int(arguments[2]))
        return 0
    print(json.dumps(_PROBES[arguments[0]](*arguments[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
