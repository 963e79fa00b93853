"""The task that makes the run table, and finds which of its days the span store has already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow.sdk import Context

from retraining.core.data import frozen_set, snapshot
from retraining.core.data.columns import own_columns, schema_hash
from retraining.core.documents import Column, FrozenSet, GoldenWork, LeftOut, Manifest, Plan, Snapshot, Span
from retraining.core.naming import bigquery, storage
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.spans import MARKER, SpanPlace, marker_uri, place_of, span_uri
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.data.repetition import job_attempt
from retraining.operators.record.leases import renew_lease


class SnapshotOperator(RunTask, CloudOperator):
    """Make the run table, and find which of its spans the span store has already.

    Returns:
        `{table, rows, spans, exported_spans}`; the last one counts what is to be exported.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Ask BigQuery and the span store, unless an earlier try did; say what is done with each span."""
        record = self.record(cloud, context)
        planned, taken = record.read_document(Plan), record.find_document(Snapshot)
        renew_lease(cloud, planned.model, planned.run_key, context)  # before it is looked what the store has
        if taken is None:
            taken = record.write_once(_SnapshotTaking(cloud, planned, context).take_snapshot())
        elif record.find_document(Manifest) is None and cloud.warehouse.table_schema(taken.table) is None:
            self._take_again(_SnapshotTaking(cloud, planned, context), taken)
        for line in taken.explain:
            self.log.info(line)
        return {
            "table": taken.table,
            "rows": sum(part.rows for span in taken.spans for part in span.parts),
            "spans": len(taken.spans),
            "exported_spans": sum(span.action == "export" for span in taken.spans),
        }

    def _take_again(self, taking: _SnapshotTaking, recorded: Snapshot) -> None:
        """Make the run table, which expired before its export, again; refuse other data than was recorded."""
        self.log.warning("%s has expired: it is made again", recorded.table)
        snapshot.require_same_data(recorded, taking.take_snapshot())


class _SnapshotTaking:
    """Statements on BigQuery in the order in which they depend on each other.

    Nothing is written to storage but the frozen set's record.
    """

    def __init__(self, cloud: CloudPort, planned: Plan, context: Context) -> None:
        self._cloud = cloud
        self._plan = planned
        self._attempt = job_attempt(context)

    def take_snapshot(self) -> Snapshot:
        """Make the run table and describe it."""
        plan, warehouse = self._plan, self._cloud.warehouse
        where = plan.query.path
        warehouse.dry_run(snapshot.render_examples_check_sql(plan), where)
        frozen = self._find_frozen_set() if plan.golden_query else None
        answer = warehouse.run_query(snapshot.render_snapshot_sql(plan), self._job_id("snapshot"), where)
        schema = warehouse.table_schema(bigquery.run_table(plan)) or []
        counted = warehouse.run_query(
            snapshot.render_fingerprint_sql(plan), self._job_id("fingerprint"), "fingerprint"
        ).rows
        columns = own_columns(schema, where)
        spans_uri = storage.spans_uri(plan.bucket, plan.model, schema_hash(columns, plan.spec))
        return snapshot.build_snapshot(
            plan,
            schema,
            counted,
            self._stored(spans_uri, counted),
            answer.bytes_processed,
            self._frozen_set_work(frozen, columns, spans_uri) if frozen else None,
            self._left_out() if plan.spec.data.event_time else None,
        )

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
        warehouse.dry_run(frozen_set.render_frozen_set_check_sql(plan), where)
        warehouse.run_query(frozen_set.render_frozen_set_sql(plan), self._job_id("golden"), where)
        counted = warehouse.run_query(
            frozen_set.render_frozen_set_fingerprint_sql(plan), self._job_id("golden_fingerprint"), "fingerprint"
        )
        current, uri = frozen_set.build_frozen_set(plan, counted.rows), storage.frozen_set_uri(plan)
        recorded = FrozenSet.parse(self._cloud.artifacts.write_once(uri, current.to_bytes()), uri)
        frozen_set.require_frozen(current, recorded, uri)
        return recorded

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
        root = storage.spans_root(self._plan.bucket, self._plan.model)
        places = (place_of(folder_of(uri), root) for uri in marker_uris)
        return (place for place in places if place is not None)

    def _job_id(self, purpose: str) -> str:
        return bigquery.query_job_id(self._plan, purpose, self._attempt)
