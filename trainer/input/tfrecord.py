"""Shards of a split: fetched, and proven against the manifest before TensorFlow sees them.

Comes in: a manifest's split. Goes out: local paths of files whose size and SHA-256 are those of the manifest. A split
too large to copy is read where it is: sizes are checked here, and TensorFlow checks each record's CRC32C.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.documents import ManifestFile, ManifestSplit
from trainer.errors import DataError
from trainer.storage import Storage, in_parallel

COPY_LIMIT_BYTES = 8 << 30
_READ_BYTES = 1 << 20
_WAY_OUT = "Delete the span's folder in the span store and start a new run: it is exported again"


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Files to read.

    Attributes:
        paths: Local paths or addresses, in the manifest's order, files without rows left out.
        rows: Of all of them.
        compression: As `tf.data.TFRecordDataset` names it.
    """

    paths: tuple[str, ...]
    rows: int
    compression: str


def fetch(split: ManifestSplit, compression: str, storage: Storage, folder_path: Path) -> Shards:
    """Make a split's files readable for TensorFlow.

    Args:
        split: Of a manifest.
        compression: GZIP or NONE.
        storage: Where the files are.
        folder_path: Where copies go; made if need be.

    Raises:
        DataError: A file is missing or is not the one in the manifest; names it.
        StorageError: Storage did not answer.
    """
    files = [file for file in split.files if file.rows]
    copy = sum(file.bytes for file in files) <= COPY_LIMIT_BYTES
    folder_path.mkdir(parents=True, exist_ok=True)

    def prepare(item: tuple[int, ManifestFile]) -> str:
        index, file = item
        if file.uri.startswith("/"):
            return _proven(file, Path(file.uri))
        if not copy:
            return _right_size(file, storage)
        path = folder_path / f"{index:05d}-{file.uri.rsplit('/', 1)[1]}"
        if not storage.download(file.uri, path):
            raise DataError(file.uri, "is missing", f"{file.bytes} bytes", _WAY_OUT)
        return _proven(file, path)

    paths = in_parallel(prepare, list(enumerate(files)))
    return Shards(paths=tuple(paths), rows=split.rows, compression="GZIP" if compression == "GZIP" else "")


def require_rows(shards: Shards, rows: int, files: Sequence[ManifestFile]) -> None:
    """Check how many examples were read.

    Raises:
        DataError: Not as many as the manifest says.
    """
    if rows != shards.rows:
        where = f"{len(files)} shards from {files[0].uri}" if files else "shards"
        raise DataError(where, f"{rows} examples", f"{shards.rows}, as in the manifest", _WAY_OUT)


def _right_size(file: ManifestFile, storage: Storage) -> str:
    size = storage.size(file.uri)
    if size != file.bytes:
        raise DataError(file.uri, "is missing" if size is None else f"{size} bytes", f"{file.bytes} bytes", _WAY_OUT)
    return file.uri


def _proven(file: ManifestFile, path: Path) -> str:
    if not path.is_file():
        raise DataError(file.uri, "is missing", f"{file.bytes} bytes", _WAY_OUT)
    size = path.stat().st_size
    if size != file.bytes:
        raise DataError(file.uri, f"{size} bytes", f"{file.bytes} bytes", _WAY_OUT)
    found = _sha256(path)
    if found != file.sha256:
        raise DataError(file.uri, f"SHA-256 {found}", f"SHA-256 {file.sha256}: the file is corrupt", _WAY_OUT)
    return str(path)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
