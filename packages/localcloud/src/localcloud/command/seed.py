"""The command `seed`: a folder's files become tables of BigQuery and objects of Cloud Storage.

In: `bigquery/<dataset>/<table>.csv`, `.jsonl`, `.parquet` or `.avro`, with `<table>.schema.json` beside it where the
file does not say its types (a list of fields as `bq show --schema` prints it; without one they are found out, as by a
load job with autodetect); `storage/<bucket>/<object>`. Out: the same in a running local cloud. A table or object that
came from the same bytes before is left alone; another of its name is replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localcloud.errors import LocalCloudError
from localcloud.state import Settings

if TYPE_CHECKING:
    from google.cloud import bigquery, storage

FORMATS = {".csv": "CSV", ".jsonl": "NEWLINE_DELIMITED_JSON", ".parquet": "PARQUET", ".avro": "AVRO"}
SCHEMA_ENDING = ".schema.json"
LABEL = "localcloud_seed"
"""Of a table and in an object's metadata: the digest of what it came from."""
_NAME = re.compile(r"[A-Za-z0-9_]{1,1024}")
_LAYOUT = "bigquery/<dataset>/<table>.csv, .jsonl, .parquet or .avro, storage/<bucket>/<object>"


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """A file that becomes a table, and the file of its schema, if it has one."""

    dataset: str
    table: str
    path: Path
    schema_path: Path | None

    @property
    def digest(self) -> str:
        """Of both files, short enough for a label."""
        schema = self.schema_path.read_bytes() if self.schema_path else b""
        return _digest(self.path.read_bytes(), schema)


@dataclass(frozen=True, kw_only=True)
class ObjectFile:
    """A file that becomes an object."""

    bucket: str
    name: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Folder:
    """What a folder has to load: the datasets, also those without a table, the tables, the objects."""

    datasets: tuple[str, ...]
    tables: tuple[TableFile, ...]
    objects: tuple[ObjectFile, ...]


def read_folder(path: Path) -> Folder:
    """Look at a folder; nothing is loaded yet.

    Raises:
        LocalCloudError: It is none, or has something that is neither a table nor an object.
    """
    if not path.is_dir():
        raise _refused(path, "no folder")
    strange = [each for each in sorted(path.iterdir()) if each.name not in ("bigquery", "storage") or each.is_file()]
    if strange:
        raise _refused(strange[0], "it is neither bigquery/ nor storage/")
    bigquery_path, storage_path = path / "bigquery", path / "storage"
    datasets = sorted(bigquery_path.iterdir()) if bigquery_path.is_dir() else []
    objects = sorted(each for each in storage_path.rglob("*") if each.is_file()) if storage_path.is_dir() else []
    return Folder(
        datasets=tuple(each.name for each in datasets),
        tables=tuple(table for each in datasets for table in _tables(each)),
        objects=tuple(_object(each, storage_path) for each in objects),
    )


def seed(folder: Folder, settings: Settings) -> Iterator[str]:
    """Load what is not there yet; give one line for each table and object.

    Args:
        folder: From `read_folder`.
        settings: Of the local cloud, to which this process's environment must lead.

    Raises:
        LocalCloudError: A file could not be loaded as what it says it is.
    """
    from google.cloud import bigquery, storage

    if folder.datasets:
        client = bigquery.Client(project=settings.project)
        for name in folder.datasets:
            dataset = bigquery.Dataset(f"{settings.project}.{name}")
            dataset.location = settings.region
            client.create_dataset(dataset, exists_ok=True)
        for table in folder.tables:
            yield _load(client, table, settings.project)
    if folder.objects:
        objects = storage.Client(project=settings.project)
        for each in folder.objects:
            yield _upload(objects, each, settings.region)


def _tables(dataset_path: Path) -> Iterator[TableFile]:
    if not dataset_path.is_dir() or not _NAME.fullmatch(dataset_path.name):
        raise _refused(dataset_path, "no folder with the name of a dataset")
    files = sorted(dataset_path.iterdir())
    schemas = {each.name.removesuffix(SCHEMA_ENDING): each for each in files if each.name.endswith(SCHEMA_ENDING)}
    data = [each for each in files if not each.name.endswith(SCHEMA_ENDING)]
    for path in data:
        if path.suffix not in FORMATS or not _NAME.fullmatch(path.stem) or not path.is_file():
            raise _refused(path, "no file with the name of a table")
    names = [each.stem for each in data]
    twice = next((each for each in data if names.count(each.stem) > 1), None)
    if twice:
        raise _refused(twice, "another file is of the same table")
    alone = next((each for name, each in schemas.items() if name not in names), None)
    if alone:
        raise _refused(alone, "a schema without its table")
    for path in data:
        yield TableFile(dataset=dataset_path.name, table=path.stem, path=path, schema_path=schemas.get(path.stem))


def _object(path: Path, storage_path: Path) -> ObjectFile:
    bucket, *names = path.relative_to(storage_path).parts
    if not names:
        raise _refused(path, "a file beside the buckets")
    return ObjectFile(bucket=bucket, name="/".join(names), path=path)


def _load(client: bigquery.Client, file: TableFile, project: str) -> str:
    from google.api_core.exceptions import GoogleAPICallError, NotFound
    from google.cloud import bigquery

    name, digest = f"{project}.{file.dataset}.{file.table}", file.digest
    try:
        there = client.get_table(name)
    except NotFound:
        there = None
    if there is not None and there.labels.get(LABEL) == digest:
        return f"{name}: {there.num_rows} rows are there"
    config = bigquery.LoadJobConfig(
        source_format=FORMATS[file.path.suffix], write_disposition=bigquery.WriteDisposition.WRITE_TRUNCATE
    )
    if file.schema_path:
        config.schema = _schema(file.schema_path)
    else:
        config.autodetect = file.path.suffix in (".csv", ".jsonl")
    if file.path.suffix == ".csv":
        config.skip_leading_rows = 1
    try:
        with file.path.open("rb") as data:
            client.load_table_from_file(data, name, job_config=config).result()
    except GoogleAPICallError as error:
        raise _refused(file.path, str(error.message)) from error
    table = client.get_table(name)
    table.labels = {LABEL: digest}
    client.update_table(table, ["labels"])
    return f"{name}: {table.num_rows} rows loaded"


def _schema(path: Path) -> list[bigquery.SchemaField]:
    from google.cloud import bigquery

    try:
        fields: list[Any] = json.loads(path.read_text(encoding="utf-8"))
        return [bigquery.SchemaField.from_api_repr(each) for each in fields]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refused(path, f"{type(error).__name__}: {error}") from error


def _upload(client: storage.Client, file: ObjectFile, region: str) -> str:
    address = f"gs://{file.bucket}/{file.name}"
    bucket = client.bucket(file.bucket)
    if not bucket.exists():
        bucket = client.create_bucket(file.bucket, location=region)
    data = file.path.read_bytes()
    digest, blob = _digest(data), bucket.get_blob(file.name)
    if blob is not None and (blob.metadata or {}).get(LABEL) == digest:
        return f"{address}: {len(data)} bytes are there"
    new = bucket.blob(file.name)
    new.metadata = {LABEL: digest}
    new.upload_from_filename(str(file.path))
    return f"{address}: {len(data)} bytes loaded"


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()[:32]


def _refused(path: Path, found: str) -> LocalCloudError:
    return LocalCloudError(
        str(path), found=found, expected=_LAYOUT, way_out="Move or correct it: docs/localcloud.md has an example"
    )
