"""The task that makes the run table, and finds which of its days the span store has already."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.data import snapshot
from retraining.core.documents import Manifest, Plan, Snapshot
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.airflow.dag_run import job_attempt
from retraining.operators.data.run_table import RunTable
from retraining.operators.record.ownership import renew_lease


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
            taken = record.write_once(RunTable(cloud, planned, job_attempt(context)).take_snapshot())
        elif record.find_document(Manifest) is None and cloud.warehouse.table_schema(taken.table) is None:
            self._take_again(RunTable(cloud, planned, job_attempt(context)), taken)
        for line in taken.explain:
            self.log.info(line)
        return {
            "table": taken.table,
            "rows": sum(part.rows for span in taken.spans for part in span.parts),
            "spans": len(taken.spans),
            "exported_spans": sum(span.action == "export" for span in taken.spans),
        }

    def _take_again(self, table: RunTable, recorded: Snapshot) -> None:
        """Make the run table, which expired before its export, again; refuse other data than was recorded."""
        self.log.warning("%s has expired: it is made again", recorded.table)
        snapshot.require_same_data(recorded, table.take_snapshot())
