"""The span store: which shards are there, proof of each, and the `span.json` that says that a span is complete.

    <spans_uri>/<span>/<fingerprint>/<part>-00000-of-0000N.tfrecord.gz        a shard
                                     <part>-00000-of-0000N.tfrecord.gz.json   its sidecar: rows and digests
                                     span.json                                all of them

Objects are written once and their content does not depend on who writes them: when somebody was faster, his bytes are
compared with ours. Another compressor may give other bytes for the same content: then what is stored stays, and is what
the documents prove. A shard without its sidecar is not finished, and is written (and compared) again.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any

from trainer.contract.documents import ExportRequest, Span, SpanFile
from trainer.contract.json_text import read_json
from trainer.contract.reading import parse_document, serialise
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.export.encoding.tfrecord import FileDigest, digest_of
from trainer.export.work import Shard, Work, shards_of, works_of
from trainer.storage import Storage, in_parallel, join_uri

_PIECE_BYTES = 1 << 20
_WAY_OUT = f"Delete the span's folder. {NEW_ATTEMPT}: the span is exported again"


class SpanStore:
    """The spans of one request, in the store.

    Args:
        suffix: Of the shards' names, with its dots.
    """

    def __init__(self, request: ExportRequest, storage: Storage, suffix: str) -> None:
        self._request, self._storage = request, storage
        self.works = works_of(request)
        self._shards = {work.span: shards_of(work, suffix) for work in self.works}
        self._files: dict[str, SpanFile] = {}  # those that this process wrote or read already

    def shards(self) -> list[Shard]:
        """Return all shards that the request wants written, span by span."""
        return [shard for work in self.works if work.action == "export" for shard in self._shards[work.span]]

    def missing(self) -> list[Shard]:
        """Return those of them that are not there yet, in the same order."""
        stored = self._list_objects("export")
        return [shard for shard in self.shards() if not {shard.uri, shard.sidecar_uri} <= stored.keys()]

    def publish(self, shard: Shard, file: IO[bytes], rows: int, digest: FileDigest) -> None:
        """Make a shard appear, then its sidecar.

        Raises:
            DataError: There is a shard already, with other content.
            StorageError: Storage did not take it.
        """
        if not self._storage.publish(shard.uri, file):
            digest = self._digest_stored(shard.uri, file, digest)
        sidecar = {"rows": rows, **asdict(digest)}
        self._storage.write_once(shard.sidecar_uri, _json(sidecar))
        self._files[shard.uri] = _span_file(shard, sidecar)

    def require_reusable(self) -> None:
        """Check that spans which are to be reused are whole.

        Raises:
            DataError: A document or a file is missing or has another size; names it.
        """
        stored = self._list_objects("reuse")
        in_parallel(lambda work: self._read_span(work, stored), [w for w in self.works if w.action == "reuse"])

    def complete(self) -> list[Span]:
        """Write the `span.json` of each exported span, and give the documents of all spans, in the works' order.

        Call it when nothing is missing.

        Raises:
            DataError: The rows are not those of the request, or files are not what the documents say.
        """
        stored = {**self._list_objects("export"), **self._list_objects("reuse")}
        return in_parallel(lambda work: self._complete(work, stored), self.works)

    def _complete(self, work: Work, stored: Mapping[str, int]) -> Span:
        if work.action == "reuse" or work.span_uri in stored:
            return self._read_span(work, stored)
        files = tuple(self._file(shard) for shard in self._shards[work.span])
        span = Span(span=work.span, fingerprint=work.fingerprint, schema_hash=self._request.schema_hash, files=files)
        for part in work.parts:
            rows = _rows(span, part.part)
            if rows != part.rows:
                raise changed_rows(work.table, work.span, part.part, rows, part.rows)
        _require_sizes(work, span, stored)
        self._storage.write_once(work.span_uri, serialise(span))
        return span

    def _read_span(self, work: Work, stored: Mapping[str, int]) -> Span:
        content = self._storage.read_object(work.span_uri)
        if content is None:
            raise DataError(
                work.span_uri,
                "is missing although the span was to be reused",
                "a complete span",
                f"{NEW_ATTEMPT}: the span is exported again",
            )
        span = parse_document(Span, content, work.span_uri)
        for part in work.parts:
            rows = _rows(span, part.part)
            if rows != part.rows:
                raise DataError(work.span_uri, f"{rows} rows in part {part.part}", f"{part.rows}", _WAY_OUT)
        _require_sizes(work, span, stored)
        return span

    def _file(self, shard: Shard) -> SpanFile:
        """Return what the sidecar says."""
        if shard.uri not in self._files:
            content = self._storage.read_object(shard.sidecar_uri)
            try:
                sidecar: Any = read_json(content or b"")
                self._files[shard.uri] = _span_file(shard, sidecar)
            except (ValueError, TypeError) as error:
                raise DataError(
                    shard.sidecar_uri,
                    f"is not a sidecar ({error})",
                    "rows, bytes, crc32c, sha256",
                    "Delete it and start again",
                ) from error
        return self._files[shard.uri]

    def _digest_stored(self, uri: str, file: IO[bytes], digest: FileDigest) -> FileDigest:
        """Return how to prove what somebody else has stored, if it is what we would have.

        Args:
            uri: Of the shard.
            file: Ours.
            digest: Of ours.
        """
        stored_digest = self._storage.sha256(uri)
        if stored_digest == digest.sha256:
            return digest
        stored = self._storage.read_object(uri) if self._request.compression == "GZIP" else None
        if stored is not None and _same_content(stored, file):
            return digest_of(stored)
        raise DataError(
            uri,
            "is gone again" if stored_digest is None else f"holds other bytes (SHA-256 {stored_digest})",
            f"those of its rows ({digest.sha256})",
            "Another version of the exporter wrote it; delete the span's folder and start again",
        )

    def _list_objects(self, action: str) -> dict[str, int]:
        """Return the size of every object in the folders of the works with this action."""
        folders = [work.folder_uri + "/" for work in self.works if work.action == action]
        return {
            item.uri: item.bytes for objects in in_parallel(self._storage.list_objects, folders) for item in objects
        }


def changed_rows(table: str, span: str, part: str, rows: int, expected: int) -> DataError:
    """Make the error of a run table that does not have the rows of the request."""
    return DataError(
        f"{table}, span {span}, part {part}",
        f"{rows} rows",
        f"{expected}, as when the snapshot was taken",
        f"The run table changed. {NEW_ATTEMPT}",
    )


def _require_sizes(work: Work, span: Span, stored: Mapping[str, int]) -> None:
    for file in span.files:
        uri = join_uri(work.folder_uri, file.file_name)
        size = stored.get(uri)
        if size != file.bytes:
            source = work.span_uri if work.span_uri in stored else f"{uri}.json"
            raise DataError(
                uri,
                "is missing" if size is None else f"has {size} bytes",
                f"the {file.bytes} bytes that {source} lists",
                _WAY_OUT,
            )


def _rows(span: Span, part: str) -> int:
    return sum(file.rows for file in span.files if file.part == part)


def _span_file(shard: Shard, sidecar: Mapping[str, int | str]) -> SpanFile:
    name = shard.uri.rsplit("/", 1)[1]
    return SpanFile(part=shard.unit.part, shard=shard.unit.shard, file_name=name, **sidecar)  # type: ignore[arg-type]  # a sidecar with other keys is a TypeError, which is caught


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _same_content(stored: bytes, file: IO[bytes]) -> bool:
    """Return whether two gzip files hold the same; of broken ones none does. A piece of each is in memory at once."""
    file.seek(0)
    with gzip.GzipFile(fileobj=io.BytesIO(stored)) as theirs, gzip.GzipFile(fileobj=file) as ours:
        try:
            while (piece := ours.read(_PIECE_BYTES)) == theirs.read(_PIECE_BYTES):
                if not piece:
                    return True
        except (OSError, EOFError, zlib.error):
            pass
    return False
