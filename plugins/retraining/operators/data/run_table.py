"""The run table of a plan: made, described and counted, by whoever asks (a task, or a preview)."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from retraining.core.checks import quarantine
from retraining.core.data import class_names, frozen_set, image_objects, snapshot, source_files, statistics
from retraining.core.data.columns import own_columns, schema_hash, top_columns
from retraining.core.data.snapshot import render_columns_sql
from retraining.core.data.sql import Query
from retraining.core.documents import Column, FrozenSet, GoldenWork, LeftOut, Plan, Snapshot, Span, Statistics
from retraining.core.documents.snapshot import SourceFilesRead, SourceTable
from retraining.core.naming import bigquery, storage
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.spans import MARKER, SpanPlace, marker_uri, place_of, span_uri
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.source_files import SourceFiles
from retraining.core.untyped import Row
from retraining.hooks.ports import CloudPort, WarehousePort
from retraining.hooks.source_files import list_files, look


def query_columns(warehouse: WarehousePort, spec: ModelSpec, sql: str) -> list[str]:
    """Return the names of the query's columns in its order; none, and nothing asked, of a spec without patterns.

    Raises:
        RetrainingError: BigQuery refuses the query.
    """
    if not spec.patterns:
        return []
    where = spec.data.source_name
    return [
        column.name for column in own_columns(warehouse.dry_run(render_columns_sql(spec, sql), where).schema, where)
    ]


class RunTable:
    """A plan's run table: made, described and counted by statements on BigQuery, in the order in which they depend.

    Nothing is written to storage but the frozen set's record. The source's files, and the listing
    of the images' folders, are loaded into tables first.

    Args:
        cloud: Who is asked.
        planned: The plan.
        attempt: What tells a wanted repetition of a query from a retry.
    """

    def __init__(self, cloud: CloudPort, planned: Plan, attempt: str) -> None:
        self._cloud = cloud
        self._plan = planned
        self._attempt = attempt

    def take_snapshot(self) -> Snapshot:
        """Make the run table and describe it."""
        plan, warehouse = self._plan, self._cloud.warehouse
        where = plan.query.path
        files = self._load_files(plan.spec.data.files) if plan.spec.data.files else None
        asked = warehouse.dry_run(snapshot.render_examples_check_sql(plan), where)
        class_names.require_texts(plan.spec, asked.schema, where)
        if folders := image_objects.folders_to_list(plan.spec):
            image_objects.require_addresses(plan.spec, asked.schema, where)
            self._list_objects(folders)
        frozen = self._find_frozen_set() if plan.golden_query else None
        answer = warehouse.run_query(snapshot.render_snapshot_sql(plan), self._job_id("snapshot"), where)
        schema = warehouse.table_schema(bigquery.run_table(plan)) or []
        counted = warehouse.run_query(
            snapshot.render_fingerprint_sql(plan), self._job_id("fingerprint"), "fingerprint"
        ).rows
        columns = own_columns(schema, where)
        spans_uri = storage.spans_uri(plan, schema_hash(columns, plan.spec))
        return snapshot.build_snapshot(
            plan,
            schema,
            counted,
            self._stored(spans_uri, counted),
            answer.bytes_processed,
            self._frozen_set_work(frozen, columns, spans_uri) if frozen else None,
            self._left_out() if plan.spec.data.event_time else None,
            files,
        ).model_copy(update={"sources": self._sources(asked.tables)})

    def delete(self) -> None:
        """Delete the run table, and what was loaded for it."""
        plan = self._plan
        for table in (bigquery.run_table(plan), bigquery.files_table(plan), bigquery.objects_table(plan)):
            self._cloud.warehouse.delete_table(table)

    def count(self, taken: Snapshot) -> Statistics:
        """Take the statistics; where days are bad and shall be left out, once more without them."""
        plan = self._plan
        rows = self._counted(statistics.render_statistics_sql(plan, taken), "statistics")
        days = statistics.build_days(plan, rows)
        bad = quarantine.days_to_leave_out(plan, days)
        if bad:
            rows = self._counted(statistics.render_statistics_sql(plan, taken, bad), "statistics of the rest")
        counted = statistics.build_statistics(plan, taken, rows, days, bad)
        if not class_names.has_unlisted(plan.spec, counted):
            return counted
        texts = self._counted(snapshot.render_unlisted_classes_sql(plan), "texts of labels")
        return class_names.with_unlisted(plan.spec, counted, class_names.unlisted_texts(texts))

    def _sources(self, names: Iterable[str]) -> tuple[SourceTable, ...]:
        """Describe the tables that the query reads, without those that were made for this run."""
        return tuple(
            SourceTable(name=name, columns=tuple(top_columns(self._cloud.warehouse.visible_columns(name)).values()))
            for name in names
            if not bigquery.is_run_table(name)
        )

    def _load_files(self, files: SourceFiles) -> SourceFilesRead:
        """Load the source's files into a table of this run, if each has the columns that the spec says."""
        plan, cloud = self._plan, self._cloud
        described = look(files, cloud.objects, cloud.artifacts)
        version = described.sha256[:8]  # files that changed since are other jobs
        made = self._job_id(f"files_table_{version}")
        load = source_files.build_load(plan)
        cloud.warehouse.run_query(source_files.render_files_table_sql(load), made, source_files.WHERE)
        cloud.warehouse.load_files(load, self._job_id(f"files_{version}"), source_files.WHERE)
        source_files.require_unchanged(described, list_files(files.uris, cloud.objects)[0])
        return described

    def _list_objects(self, folders: list[str]) -> None:
        """Load the listing of the images' folders into a table of this run."""
        cloud, where = self._cloud, image_objects.WHERE
        with tempfile.TemporaryFile() as lines:
            listed = (item for folder in folders for item in cloud.objects.walk(folder))
            version = image_objects.write_listing(lines, listed, folders)[:8]  # another listing is other jobs
            made = self._job_id(f"objects_table_{version}")
            cloud.warehouse.run_query(image_objects.render_objects_table_sql(self._plan), made, where)
            table = bigquery.objects_table(self._plan)
            cloud.warehouse.load_lines(lines, table, self._job_id(f"objects_{version}"), where)

    def _counted(self, query: Query, where: str) -> list[Row]:
        return self._cloud.warehouse.run_query(query, self._job_id(where.replace(" ", "_")), where).rows

    def _left_out(self) -> LeftOut:
        """Count what the query gives and no day can hold."""
        query = snapshot.render_left_out_sql(self._plan)
        return snapshot.left_out_of(
            self._cloud.warehouse.run_query(query, self._job_id("left_out"), "left out").rows[0]
        )

    def _find_frozen_set(self) -> FrozenSet:
        """Return the frozen set; the first run that asks for it makes it, the others find it unchanged."""
        plan, warehouse = self._plan, self._cloud.warehouse
        where = str(plan.spec.data.golden_query)
        asked = warehouse.dry_run(frozen_set.render_frozen_set_check_sql(plan), where)
        self._require_classes(asked.schema, where)
        warehouse.run_query(frozen_set.render_frozen_set_sql(plan), self._job_id("golden"), where)
        counted = warehouse.run_query(
            frozen_set.render_frozen_set_fingerprint_sql(plan), self._job_id("golden_fingerprint"), "fingerprint"
        )
        current, uri = frozen_set.build_frozen_set(plan, counted.rows), storage.frozen_set_uri(plan)
        recorded = FrozenSet.parse(self._cloud.artifacts.write_once(uri, current.to_bytes()), uri)
        frozen_set.require_frozen(current, recorded, uri)
        return recorded

    def _require_classes(self, schema: Iterable[Mapping[str, Any]], where: str) -> None:
        """Refuse a frozen set whose labels are no listed texts; once its table is made, they are."""
        plan, warehouse = self._plan, self._cloud.warehouse
        class_names.require_texts(plan.spec, schema, where)
        if class_names.named_labels(plan.spec) and warehouse.table_schema(bigquery.frozen_set_table(plan)) is None:
            query, name = frozen_set.render_frozen_set_unlisted_sql(plan), self._job_id("golden_texts_of_labels")
            frozen_set.require_listed(plan, warehouse.run_query(query, name, where).rows)

    def _frozen_set_work(self, frozen: FrozenSet, columns: tuple[Column, ...], spans_uri: str) -> GoldenWork:
        schema = self._cloud.warehouse.table_schema(frozen.table) or []
        frozen_set.require_same_columns(self._plan, columns, schema)
        uris = self._cloud.artifacts.list_uris(f"{spans_uri}/{frozen_set.SPAN}", suffix=f"/{MARKER}")
        return frozen_set.frozen_set_work(frozen, [place.fingerprint for place in self._places(uris)])

    def _stored(self, spans_uri: str, counted: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int | None]]:
        """Find what the span store has whole for the days of the window; of the changed days also how many rows."""
        window, artifacts = self._plan.window, self._cloud.artifacts
        uris = artifacts.list_uris(
            spans_uri, start=window.start.isoformat(), end=window.end.isoformat(), suffix=f"/{MARKER}"
        )
        stored: dict[str, dict[str, int | None]] = defaultdict(dict)
        for place in self._places(uris):
            stored[place.span][place.fingerprint] = None
        for day in snapshot.changed_spans(counted, stored):
            for fingerprint in stored[day]:
                uri = marker_uri(span_uri(spans_uri, day, fingerprint))
                data = artifacts.read_object(uri)
                if data is not None:
                    stored[day][fingerprint] = sum(file.rows for file in Span.parse(data, uri).files)
        return dict(stored)

    def _places(self, marker_uris: Iterable[str]) -> Iterator[SpanPlace]:
        settings = self._cloud.settings
        roots = storage.spans_roots(settings.bucket, settings.results_bucket, self._plan.model)
        places = (place_of(folder_of(uri), *roots) for uri in marker_uris)
        return (place for place in places if place is not None)

    def _job_id(self, purpose: str) -> str:
        return bigquery.query_job_id(self._plan, purpose, self._attempt)
