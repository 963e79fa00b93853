"""The export job of one replica: its share of the shards, and, for the chief, the documents that say it is whole.

Comes in: an export request. Goes out, in the span store: a file and a sidecar per shard, a `span.json` per span, and
the run's manifest. Everything is written once and with content that does not depend on who writes it, so any replica
may be killed and started again at any moment, and two that write the same cannot disagree. The service takes the
chief's end for the job's: so the chief waits until all is there, and writes itself what nobody else does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from trainer.cluster.replica import Replica
from trainer.contract.documents import ExportRequest
from trainer.contract.reading import serialise
from trainer.export.encoding.formats import make_format
from trainer.export.encoding.types import require_mapped
from trainer.export.manifest import build_manifest
from trainer.export.memory import PeakMemory
from trainer.export.progress import Progress
from trainer.export.reading.read_ahead import ReadAhead
from trainer.export.reading.reader import RowReader
from trainer.export.reading.sorting import sort_rows
from trainer.export.span_store import SpanStore
from trainer.export.work import Shard, share
from trainer.export.writer import ShardWriter
from trainer.storage import Storage

PATIENCE_S = 600.0
_FIRST_PAUSE_S = 1.0
_PAUSE_GROWTH = 1.5
_LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How the chief waits for the others.

    Attributes:
        seconds: Without a single new shard, after which it writes what is missing itself.
        clock: Seconds since some moment.
        sleep: Waits so many seconds.
    """

    seconds: float = PATIENCE_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class SpanExport:
    """One replica's share of an export request.

    Args:
        reader: Rows from where.
        patience: How long the chief waits for a replica that writes nothing.
        request_digest: SHA-256 of the request's bytes.
    """

    def __init__(
        self,
        request: ExportRequest,
        storage: Storage,
        reader: RowReader,
        replica: Replica,
        patience: Patience | None = None,
        request_digest: str | None = None,
    ) -> None:
        self._request_digest = request_digest
        self._request, self._storage, self._reader, self._replica = request, storage, reader, replica
        self._patience = patience or Patience()
        self._progress = Progress(replica, self._patience.clock)
        self._memory = PeakMemory()

    def write_spans(self) -> None:
        """Write this replica's shards that are missing; the chief also waits for the others and writes the documents.

        Raises:
            RequestError: A type without mapping; nothing was written.
            DataError: The table's rows are not those of the request, or the store's files are not what its documents
                say.
            StorageError: BigQuery or storage did not answer, or the disk is full.
        """
        require_mapped(self._request.columns, f"{self._request.kind} of run {self._request.run_key}, schema")
        self._format = make_format(self._request, self._storage)
        self._store = SpanStore(self._request, self._storage, self._format.suffix)
        if self._replica.is_chief:
            self._store.require_reusable()
        mine = share(self._store.shards(), self._replica.index, self._replica.count)
        missing = set(self._store.missing())
        todo = [shard for shard in mine if shard in missing]
        self._progress.begin(sum(shard.rows for shard in todo), len(todo), len(mine) - len(todo))
        self._write_shards(todo)
        if self._replica.is_chief:
            self._wait_for_others()
            self._write_manifest()
        self._progress.end(self._memory.grown())

    def _write_shards(self, shards: Sequence[Shard]) -> None:
        """Read, sort, encode and store these shards."""
        if not shards:
            return
        writer = ShardWriter(self._format, self._request.compression, self._store, self._storage, self._progress)
        with writer, ReadAhead(self._reader, shards) as groups:
            for group in groups:
                units = [shard.unit for shard in group.shards]
                for shard, rows in zip(
                    group.shards, sort_rows(group.batches, units, self._format.row_bytes), strict=True
                ):
                    writer.write(shard, rows)
                    del rows
                pa.default_memory_pool().release_unused()

    def _wait_for_others(self) -> None:
        """Wait until every shard is there; write what is missing when nothing new came for the stated time."""
        missing = self._store.missing()
        since, pause = self._patience.clock(), _FIRST_PAUSE_S
        if missing and self._replica.count > 1:
            self._progress.log(f"{len(missing)} shards are other replicas' and not there yet; waiting for them")
        while missing:
            waited = self._patience.clock() - since
            if self._replica.count == 1 or waited >= self._patience.seconds:
                self._progress.log(
                    f"{len(missing)} shards are missing and no new one came for {waited:.0f} s: now mine",
                    logging.WARNING,
                )
                self._progress.begin(sum(shard.rows for shard in missing), len(missing), 0)
                self._write_shards(missing)
            else:
                self._patience.sleep(pause)
                pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE_S)
            before, missing = len(missing), self._store.missing()
            if len(missing) < before:
                since = self._patience.clock()

    def _write_manifest(self) -> None:
        spans = self._store.complete()
        seconds = self._progress.seconds()
        manifest = build_manifest(self._request, self._store.works, spans, seconds, self._request_digest)
        self._storage.write_once(self._request.manifest_uri, serialise(manifest))
        sizes = ", ".join(
            f"{name} {split.rows} rows in {len(split.files)} files" for name, split in manifest.splits.items()
        )
        self._progress.log(f"manifest {self._request.manifest_uri}: {sizes}")
