"""Shards of a split: fetched, and proven against the manifest before TensorFlow sees them.

Comes in: a manifest's split. Goes out: local paths of files whose size and SHA-256 are those of the manifest. A split
that is too large to copy, or that other machines read too, is read where it is: sizes are checked here, and TensorFlow
checks each record's CRC32C.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from trainer.contract.documents import ManifestFile, ManifestSplit
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.input.source import Share
from trainer.storage import Storage, in_parallel

COPY_LIMIT_BYTES = 8 << 30
WAY_OUT = f"Delete the span's folder in the span store. {NEW_ATTEMPT}: the span is exported again"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One file.

    Attributes:
        uri: As the manifest names it.
        path: Where TensorFlow reads it: a local path, or the address.
        rows: As the manifest says.
    """

    uri: str
    path: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Files to read.

    Attributes:
        files: In the manifest's order, those without rows left out.
        compression: As `tf.data.TFRecordDataset` names it.
        within: Which records of each file to read, by their number modulo; None: all.
    """

    files: tuple[Shard, ...]
    compression: str
    within: Share | None = None

    @property
    def paths(self) -> list[str]:
        """Where TensorFlow reads them."""
        return [file.path for file in self.files]


def fetch(
    split: ManifestSplit, compression: str, storage: Storage, folder_path: Path, share: Share, *, in_place: bool = False
) -> Shards:
    """Make a split's files readable for TensorFlow.

    Args:
        compression: GZIP or NONE.
        storage: Where the files are.
        folder_path: Where copies go; made if need be.
        share: File i belongs to the pipeline i mod count. With fewer files than pipelines each pipeline reads every
            file, and of its records those whose number is index mod count.
        in_place: Copy nothing: other machines read the files too.

    Raises:
        DataError: A file is missing or is not the one in the manifest; names it.
        StorageError: Storage did not answer.
    """
    files = [file for file in split.files if file.rows]
    by_file = len(files) >= share.count
    if by_file:
        files = files[share.index :: share.count]
    copy = not in_place and sum(file.bytes for file in files) <= COPY_LIMIT_BYTES
    folder_path.mkdir(parents=True, exist_ok=True)

    def prepare(item: tuple[int, ManifestFile]) -> Shard:
        index, file = item
        path = folder_path / f"{index:05d}-{file.uri.rsplit('/', 1)[1]}"
        return Shard(uri=file.uri, path=_readable(file, storage, path if copy else None), rows=file.rows)

    return Shards(
        files=tuple(in_parallel(prepare, list(enumerate(files)))),
        compression="GZIP" if compression == "GZIP" else "",
        within=None if by_file else share,
    )


def _readable(file: ManifestFile, storage: Storage, copy_path: Path | None) -> str:
    """Return the path or the address under which a proven file can be read; None as a copy's path: it is not copied."""
    if file.uri.startswith("/"):
        return _proven(file, Path(file.uri))
    if copy_path is None:
        return _right_size(file, storage)
    if not storage.download(file.uri, copy_path):
        raise _missing(file)
    return _proven(file, copy_path)


def _right_size(file: ManifestFile, storage: Storage) -> str:
    size = storage.size(file.uri)
    if size is None:
        raise _missing(file)
    if size != file.bytes:
        raise DataError(file.uri, f"{size} bytes", f"{file.bytes} bytes", WAY_OUT)
    return file.uri


def _proven(file: ManifestFile, path: Path) -> str:
    if not path.is_file():
        raise _missing(file)
    size = path.stat().st_size
    if size != file.bytes:
        raise DataError(file.uri, f"{size} bytes", f"{file.bytes} bytes", WAY_OUT)
    digest = _sha256(path)
    if digest != file.sha256:
        raise DataError(file.uri, f"SHA-256 {digest}", f"SHA-256 {file.sha256}: the file is corrupt", WAY_OUT)
    return str(path)


def _missing(file: ManifestFile) -> DataError:
    return DataError(file.uri, "is missing", f"{file.bytes} bytes", WAY_OUT)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_READ_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
