"""The export job: which shards are this replica's, writing them, and the documents that say they are complete.

Comes in: an export request. Goes out, in the span store: a file and a sidecar per shard, a `span.json` per span, and
the run's manifest. Everything is written once and with content that does not depend on who writes it, so any replica
may be killed and started again at any moment, and two that finish together cannot disagree.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from trainer.contract import parse, serialise
from trainer.documents import (
    ExportRequest,
    Span,
    SpanFile,
    SpanWork,
)
from trainer.errors import DataError, StorageError
from trainer.export.encode import Encoder
from trainer.export.manifest import build_manifest
from trainer.export.order import by_hash
from trainer.export.progress import Progress
from trainer.export.reader import RowReader, Unit, rows_of
from trainer.export.tfrecord import FileDigest, digest_bytes, write_shard
from trainer.export.types import require_mapped
from trainer.replica import Replica
from trainer.storage import Storage, in_parallel, join

_GROUP_ROWS = 65536  # rows read in one session; a unit with more is read alone
_GROUP_UNITS = 64
_SUFFIX = {"GZIP": ".tfrecord.gz", "NONE": ".tfrecord"}


@dataclass(frozen=True, kw_only=True)
class ExportSummary:
    """What one replica did.

    Attributes:
        rows: Rows of the shards it wrote.
        bytes: Bytes of them.
        manifest_written: Whether the manifest is there now.
    """

    rows: int
    bytes: int
    manifest_written: bool


@dataclass(frozen=True, kw_only=True)
class _Shard:
    """A unit with its place."""

    unit: Unit
    uri: str
    rows: int  # expected; of a part with several shards: on average


class SpanExport:
    """One replica's share of an export request.

    Args:
        request: What to export.
        storage: Where to.
        reader: Rows from where.
        replica: Which share is this process's.
        say: Takes one line of progress at a time.
    """

    def __init__(
        self,
        request: ExportRequest,
        storage: Storage,
        reader: RowReader,
        replica: Replica,
        say: Callable[[str], None] = print,
    ) -> None:
        self._request, self._storage, self._reader, self._replica = request, storage, reader, replica
        self._progress = Progress(say)
        self._local = threading.local()

    def run(self) -> ExportSummary:
        """Write this replica's shards that are missing, then the documents that can be completed.

        Raises:
            RequestError: A type without mapping; nothing was written.
            DataError: The table's rows are not those of the request, or a stored shard has other bytes.
        """
        require_mapped(self._request.schema, f"{self._request.kind} of run {self._request.run_key}, schema")
        shards = [shard for span in self._request.spans if span.action == "export" for shard in self._shards(span)]
        # Largest first: by span, a small part follows a large one, and one replica would get all of either.
        shards.sort(key=lambda shard: (-shard.rows, shard.uri))
        mine = [shard for index, shard in enumerate(shards) if index % self._replica.count == self._replica.index]
        stored = self._stored_bytes()
        todo = [shard for shard in mine if _sidecar_uri(shard.uri) not in stored]
        self._progress.begin(sum(shard.rows for shard in todo), len(todo), len(mine) - len(todo), self._replica)
        self._in_groups(todo)
        spans = self._complete_spans()
        written = spans is not None and self._write_manifest(spans)
        return ExportSummary(rows=self._progress.rows, bytes=self._progress.bytes, manifest_written=written)

    def _in_groups(self, todo: list[_Shard]) -> None:
        workers = min(2, os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
            groups = [pool.submit(self._export_group, group) for group in _groups(todo)]
            try:
                for group in concurrent.futures.as_completed(groups):
                    group.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _export_group(self, group: Sequence[_Shard]) -> None:
        table = self._reader.read([shard.unit for shard in group])
        for shard in group:
            rows = table if len(group) == 1 else rows_of(table, shard.unit)
            self._export_shard(shard, rows.combine_chunks())
        del table

    def _export_shard(self, shard: _Shard, rows: pa.Table) -> None:
        self._require_rows(shard, rows.num_rows)
        batch = _one_batch(rows)
        encoder = self._encoder(rows.schema)
        with self._storage.scratch(shard.uri) as file:
            try:
                digest = write_shard(encoder.encode(batch, by_hash(batch, encoder)), file, self._request.compression)
            except OSError as error:
                raise StorageError(
                    shard.uri, f"{error.strerror}", "room on the disk", "Make room and start again"
                ) from error
            if not self._storage.publish(shard.uri, file):
                self._require_same(shard.uri, digest)
        sidecar = {"rows": rows.num_rows, **asdict(digest)}
        self._storage.write_once(_sidecar_uri(shard.uri), _json(sidecar))
        self._progress.add(rows.num_rows, digest.bytes)

    def _encoder(self, schema: pa.Schema) -> Encoder:
        """Give this thread's encoder: its tables serve all shards."""
        if getattr(self._local, "schema", None) != schema:
            self._local.schema, self._local.encoder = schema, Encoder(schema)
        encoder: Encoder = self._local.encoder
        return encoder

    def _require_rows(self, shard: _Shard, found: int) -> None:
        part = next(
            part
            for span in self._request.spans
            if span.span == shard.unit.span
            for part in span.parts
            if part.part == shard.unit.part
        )
        if part.shards == 1 and found != part.rows:
            raise self._changed(shard.unit.span, shard.unit.part, found, part.rows)

    def _changed(self, span: str, part: str, found: int, expected: int) -> DataError:
        return DataError(
            f"{self._request.table}, span {span}, part {part}",
            f"{found} rows",
            f"{expected}, as when the snapshot was taken",
            "The run table changed or expired: start a new run",
        )

    def _require_same(self, uri: str, digest: FileDigest) -> None:
        stored = digest_bytes(self._storage.read(uri) or b"")
        if stored != digest:
            raise DataError(
                uri,
                f"holds other bytes (SHA-256 {stored.sha256})",
                f"those of its rows ({digest.sha256})",
                "Another version of the exporter wrote it; delete the span's folder and start again",
            )

    def _shards(self, span: SpanWork) -> Iterator[_Shard]:
        for part in span.parts:
            for shard in range(part.shards):
                name = f"{part.part}-{shard:05d}-of-{part.shards:05d}{_SUFFIX[self._request.compression]}"
                yield _Shard(
                    unit=Unit(span=span.span, part=part.part, shard=shard),
                    uri=join(self._folder(span), name),
                    rows=part.rows // part.shards,
                )

    def _folder(self, span: SpanWork) -> str:
        return join(self._request.spans_uri, span.span, span.fingerprint)

    def _stored_bytes(self) -> dict[str, int]:
        """Give the size of every object in the spans' folders, by address."""
        folders = [self._folder(span) + "/" for span in self._request.spans]
        return {item.uri: item.bytes for found in in_parallel(self._storage.list, folders) for item in found}

    def _complete_spans(self) -> list[Span] | None:
        """Write the `span.json` of every span whose shards are all there; None while any span lacks one."""
        stored = self._stored_bytes()
        spans = in_parallel(lambda span: self._complete_span(span, stored), self._request.spans)
        missing = sum(span is None for span in spans)
        if missing:
            self._progress.say(f"export: {missing} spans wait for other replicas")
        return None if missing else [span for span in spans if span is not None]

    def _complete_span(self, work: SpanWork, stored: Mapping[str, int]) -> Span | None:
        uri = join(self._folder(work), "span.json")
        shards = list(self._shards(work))
        if work.action == "reuse" or uri in stored:
            return self._stored_span(work, uri, stored)
        if not all(_sidecar_uri(shard.uri) in stored for shard in shards):
            return None
        files = tuple(self._span_file(shard) for shard in shards)
        for part in work.parts:
            found = sum(file.rows for file in files if file.part == part.part)
            if found != part.rows:
                raise self._changed(work.span, part.part, found, part.rows)
        span = Span(span=work.span, fingerprint=work.fingerprint, schema_hash=self._request.schema_hash, files=files)
        self._storage.write_once(uri, serialise(span))
        return span

    def _stored_span(self, work: SpanWork, uri: str, stored: Mapping[str, int]) -> Span:
        content = self._storage.read(uri)
        if content is None:
            raise DataError(
                uri,
                "is missing although the span was to be reused",
                "a complete span",
                "Clear the run's snapshot task: the span is exported again",
            )
        span = parse(Span, content, uri)
        for part in work.parts:
            found = sum(file.rows for file in span.files if file.part == part.part)
            if found != part.rows:
                raise DataError(
                    uri,
                    f"{found} rows in part {part.part}",
                    f"{part.rows}",
                    "Delete the span's folder and start a new run",
                )
        for file in span.files:
            file_uri = join(self._folder(work), file.file_name)
            if stored.get(file_uri) != file.bytes:
                found_bytes = stored.get(file_uri)
                raise DataError(
                    file_uri,
                    "is missing" if found_bytes is None else f"has {found_bytes} bytes",
                    f"the {file.bytes} bytes that {uri} lists",
                    "Delete the span's folder and clear the run's snapshot task: the span is exported again",
                )
        return span

    def _span_file(self, shard: _Shard) -> SpanFile:
        sidecar_uri = _sidecar_uri(shard.uri)
        try:
            sidecar = json.loads(self._storage.read(sidecar_uri) or b"")
            return SpanFile(
                part=shard.unit.part, shard=shard.unit.shard, file_name=shard.uri.rsplit("/", 1)[1], **sidecar
            )
        except (ValueError, TypeError) as error:
            raise DataError(
                sidecar_uri, f"is not a sidecar ({error})", "rows, bytes, crc32c, sha256", "Delete it and start again"
            ) from error

    def _write_manifest(self, spans: list[Span]) -> bool:
        manifest = build_manifest(self._request, spans, self._progress.seconds())
        self._storage.write_once(self._request.manifest_uri, serialise(manifest))
        sizes = ", ".join(
            f"{name} {split.rows} rows in {len(split.files)} files" for name, split in manifest.splits.items()
        )
        self._progress.say(f"export: manifest {self._request.manifest_uri}: {sizes}")
        return True


def _groups(shards: Sequence[_Shard]) -> Iterator[list[_Shard]]:
    """Put small shards together, so that a session's start is paid once for many."""
    group: list[_Shard] = []
    rows = 0
    for shard in shards:
        if group and (rows + shard.rows > _GROUP_ROWS or len(group) == _GROUP_UNITS):
            yield group
            group, rows = [], 0
        group.append(shard)
        rows += shard.rows
    if group:
        yield group


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.to_batches()
    if len(batches) > 1:  # Arrow keeps a column of more than 2 GB of text in several pieces
        raise DataError(
            "shard", f"{rows.nbytes / 1e9:.1f} GB in memory", "less than 2 GB per column", "Lower data.rows_per_shard"
        )
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def _sidecar_uri(uri: str) -> str:
    return f"{uri}.json"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
