"""`python -m trainer.tools.tfrecords --from gs://b/old/*.tfrecord --to gs://b/new`: TFRecord files as Parquet files.

BigQuery loads no TFRecord files, so a model's `data.files` names what this makes of them. Comes in: files of
`tf.train.Example`s, gzipped or not. Goes out: a Parquet file of each, and their columns in the words of `data.files`.
One file's copy is on the disk at a time, one row group in memory. Again, it makes the same files and leaves them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf
from google.protobuf.message import DecodeError

from trainer.errors import DataError, RequestError, TrainerError
from trainer.input.files import Shard
from trainer.input.tfrecord import Record, compression_of, read_records
from trainer.storage import Storage, join_uri, room_for
from trainer.storage.backend import sha256_of
from trainer.tools.example_columns import ExampleColumn, find_columns, parse_columns, require_known

LOOKED_AT = 10_000
"""Examples that say what the columns are, where SCHEMA does not."""
GROUP_ROWS, GROUP_BYTES = 50_000, 64 << 20
WAY_OUT = "Write that file anew, or name the others"


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """What becomes what.

    Attributes:
        source: Address of files; a `*` in it stands for any text, slashes too.
        target: Folder of the Parquet files, which holds nothing else.
        schema: As `parse_columns` takes it; empty: the first examples say it, and all have to be like them.
    """

    source: str
    target: str
    schema: str = ""


def convert(wanted: Conversion, storage: Storage, say: Callable[[str], None]) -> tuple[ExampleColumn, ...]:
    """Write the Parquet files; give their columns.

    Raises:
        RequestError: There is no file, or the schema is said wrong.
        DataError: A record is broken or has other values than its columns; names file, record and byte. Or the target
            holds other files.
    """
    files = _targets(wanted, storage)
    columns = parse_columns(wanted.schema) or find_columns(_first_examples(files, storage))
    for source, target in files.items():
        with storage.scratch(target) as file:
            groups = _groups(_examples(source, storage), columns, all_known=not wanted.schema)
            with room_for(target):
                rows = _write(file, columns, groups)
            _publish(target, file, storage)
        say(f"{target}: {rows} rows of {source}")
    return columns


def _targets(wanted: Conversion, storage: Storage) -> dict[str, str]:
    """Return the files, and what each becomes."""
    beginning = wanted.source.partition("*")[0]
    folder, target = beginning.rpartition("/")[0] + "/", wanted.target.rstrip("/") + "/"
    pattern = re.compile(".*".join(map(re.escape, wanted.source.split("*"))))
    found = [item.uri for item in storage.list_objects(beginning) if not item.uri.startswith(target)]
    files = [uri for uri in found if pattern.fullmatch(uri)]
    if not files:
        raise RequestError("FROM", f"no file {wanted.source}", "one or more", "Correct the address")
    made = {uri: f"{join_uri(target, uri.removeprefix(folder))}.parquet" for uri in files}
    others = [item.uri for item in storage.list_objects(target) if item.uri not in made.values()]
    if others:
        found_there = f"{len(others)} other files, {others[0]} first"
        raise DataError(
            f"TO, {target}", found_there, "a folder for these files alone", "Name another folder, or empty it"
        )
    return made


def _first_examples(files: dict[str, str], storage: Storage) -> Iterator[tf.train.Example]:
    found = chain.from_iterable(_examples(source, storage) for source in files)
    return (example for _, example in islice(found, LOOKED_AT))


def _examples(uri: str, storage: Storage) -> Iterator[tuple[Record, tf.train.Example]]:
    """Yield a file's records, and the examples that they are."""
    with _local(uri, storage) as path:
        try:
            for record in read_records(Shard(uri=uri, path=path, rows=0), compression_of(path)):
                try:
                    yield record, tf.train.Example.FromString(record.data)
                except DecodeError as error:
                    raise DataError(record.where, "is not a tf.train.Example", "one, serialised") from error
        except DataError as fault:
            raise DataError(fault.where, fault.found, fault.expected, WAY_OUT) from fault


@contextmanager
def _local(uri: str, storage: Storage) -> Iterator[str]:
    if uri.startswith("/"):
        yield uri
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        if not storage.download(uri, path):
            raise RequestError(uri, "is gone", "a file that stays while it is read", "Start again")
        yield str(path)


def _write(file: IO[bytes], columns: Sequence[ExampleColumn], groups: Iterable[pa.Table]) -> int:
    """Write groups of rows; give how many rows there are."""
    rows = 0
    with pq.ParquetWriter(file, pa.schema([column.field for column in columns])) as writer:
        for group in groups:
            writer.write_table(group)
            rows += group.num_rows
    return rows


def _groups(
    records: Iterable[tuple[Record, tf.train.Example]], columns: Sequence[ExampleColumn], *, all_known: bool
) -> Iterator[pa.Table]:
    """Yield the rows of records, no more at once than memory should hold."""
    by_feature = {column.feature: column for column in columns}
    rows: list[list[object]] = []
    held = 0
    for record, example in records:
        if all_known:
            require_known(example, by_feature, record.where)
        rows.append([column.value_of(example, record.where) for column in columns])
        held += len(record.data)
        if len(rows) >= GROUP_ROWS or held >= GROUP_BYTES:
            yield _table(rows, columns)
            rows, held = [], 0
    if rows:
        yield _table(rows, columns)


def _table(rows: Sequence[Sequence[object]], columns: Sequence[ExampleColumn]) -> pa.Table:
    schema = pa.schema([column.field for column in columns])
    arrays = [pa.array(values, part.type) for values, part in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _publish(uri: str, file: IO[bytes], storage: Storage) -> None:
    if not storage.publish(uri, file):
        file.seek(0)
        if storage.sha256(uri) != sha256_of(file):
            raise DataError(uri, "another file of that name", "none, or the same", "Name another folder, or empty it")


def render_files(columns: Sequence[ExampleColumn], target: str) -> str:
    """Return `data.files` of a model's YAML that reads the Parquet files."""
    lines = ["files:", f"  uris: {join_uri(target, '*.parquet')}", "  format: parquet", "  columns:"]
    return "\n".join(
        [*lines, *(f"    - {{name: {json.dumps(column.name)}, type: {column.type_in_spec}}}" for column in columns)]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert, and print what to write into the YAML; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.tools.tfrecords", description="Make Parquet files of TFRecord files."
    )
    parser.add_argument(
        "--from", required=True, dest="source", help="gs://… or an absolute path; * stands for any text"
    )
    parser.add_argument("--to", required=True, dest="target", help="folder of the Parquet files")
    parser.add_argument("--schema", default="", help="id:STRING, seen:INT64, pixels:FLOAT64[784], tags:STRING[]")
    options = parser.parse_args(arguments)
    try:
        columns = convert(Conversion(**vars(options)), Storage(), print)
    except TrainerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    print(f"\n{render_files(columns, options.target)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
