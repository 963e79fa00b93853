"""BigQuery in memory: prepared rows by purpose."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

from retraining.core.data.source_files import Load
from retraining.core.data.sql import Query, load_failure
from retraining.core.errors import DataError
from retraining.core.retention.jobs_and_tables import Table
from retraining.hooks.warehouse import Answer
from tests.support.fakes.bucket import FakeBucket
from tests.support.fakes.settings import SETTINGS

LOADED = datetime(2026, 1, 1, tzinfo=UTC)
"""When tables changed of which nothing else is said."""


class FakeWarehouse:
    """BigQuery that gives prepared rows by purpose, and notes which jobs it was asked for.

    `effects` has what a job does, by purpose, in the place of prepared rows: once for each id.
    """

    def __init__(self, bucket: FakeBucket) -> None:
        self._bucket = bucket
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.effects: dict[str, Callable[[Query], list[dict[str, Any]]]] = {}
        self.schemas: dict[str, list[dict[str, Any]]] = {}
        self.tables: list[Table] = []
        self.reads: dict[str, tuple[str, ...]] = {}
        self.bytes: dict[str, int] = {}
        self.changed: dict[str, datetime] = {}
        self.locations: dict[str, str] = {}
        self.asked: list[str] = []
        self.loaded: list[Load] = []
        self.lines: dict[str, list[dict[str, Any]]] = {}
        self.limits: dict[str, int | None] = {}
        self._done: dict[str, Answer | DataError] = {}

    def dry_run(self, query: Query, where: str) -> Answer:
        """As the hook."""
        self.asked.append(f"dry {where}")
        named = [name for name in self.schemas if f"`{name}`" in query.sql]
        return Answer(
            bytes_processed=self.bytes.get(where, 7),
            schema=self.schemas.get(where, []),
            tables=(*self.reads.get(where, ()), *sorted(named)),
        )

    def run_query(self, query: Query, job_id: str, where: str, max_bytes: int | None = None) -> Answer:
        """As the hook: a job of this id that is done gives its answer again."""
        assert max_bytes is None or self.bytes.get(where, 7) <= max_bytes
        self.limits[where] = max_bytes
        self.asked.append(job_id)
        if job_id not in self._done:
            try:
                rows = self.effects[where](query) if where in self.effects else self.rows.get(where, [])
                self._done[job_id] = Answer(rows=rows, bytes_processed=7)
            except DataError as error:  # the job failed, and is joined as such
                self._done[job_id] = error
        if isinstance(found := self._done[job_id], DataError):
            raise found
        return found

    def load_files(self, load: Load, job_id: str, where: str) -> None:
        """As the hook."""
        self.asked.append(job_id)
        for uri in load.files.uris:
            if not self._bucket.match(uri):
                raise load_failure(where, {"reason": "notFound", "message": f"Not found: URI {uri}"})
        self.loaded.append(load)

    def load_lines(self, lines: IO[bytes], table: str, job_id: str, where: str) -> None:
        """As the hook: they are kept by table."""
        del where
        self.asked.append(job_id)
        lines.seek(0)
        self.lines[table] = [json.loads(line) for line in gzip.GzipFile(fileobj=lines)]

    def dataset_location(self, dataset: str) -> str | None:
        """As the hook."""
        return self.locations.get(dataset)

    def dataset_key(self, dataset: str) -> str | None:
        """As the hook."""
        return "" if dataset == SETTINGS.dataset else None

    def table_schema(self, table: str) -> list[dict[str, Any]] | None:
        """As the hook."""
        return self.schemas.get(table)

    def table_changed(self, table: str) -> datetime | None:
        """As the hook."""
        return self.changed.get(table, LOADED if table in self.schemas else None)

    def visible_columns(self, table: str) -> list[dict[str, Any]]:
        """As the hook; the account may look at all of them."""
        return self.schemas.get(table, [])

    def delete_table(self, table: str) -> None:
        """As the hook."""
        self.schemas.pop(table, None)
        self.tables = [listed for listed in self.tables if listed.name != table]

    def list_tables(self, dataset: str) -> list[Table]:
        """As the hook."""
        return [table for table in self.tables if table.name.split(".")[1] == dataset]
