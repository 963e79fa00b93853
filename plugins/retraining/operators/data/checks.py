"""The task that judges the data before anything is paid for."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.checks import dataset, quarantine
from retraining.core.data import statistics
from retraining.core.documents import Checks, Plan, Snapshot, Statistics
from retraining.core.naming import bigquery
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.data.earlier_runs import read_history
from retraining.operators.data.repetition import job_attempt


class CheckDataOperator(RunTask, CloudOperator):
    """Take the statistics of the run table and judge them, before anything is paid for.

    Returns:
        `{passed, warnings, quarantined}`: the days that the run goes on without; a run whose data does not pass fails
        here.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Take the statistics and judge them; refuse the run where a finding blocks it."""
        record = self.record(cloud, context)
        planned, taken = record.read_document(Plan), record.read_document(Snapshot)
        counted = record.find_document(Statistics) or record.write_once(self._count(cloud, planned, taken, context))
        judged = record.find_document(Checks)
        if judged is None:
            judged = record.write_once(
                dataset.check_data(planned, taken, counted, read_history(cloud.artifacts, planned))
            )
        for finding in judged.findings:
            self.log.warning(
                "%s: %s (found %s, expected %s)", finding.check, finding.words, finding.found, finding.expected
            )
        dataset.require_passed(judged, record.uri(Checks))
        return {
            "passed": True,
            "warnings": [finding.words for finding in judged.findings],
            "quarantined": [day.isoformat() for day in judged.quarantined],
        }

    @staticmethod
    def _count(cloud: CloudPort, planned: Plan, taken: Snapshot, context: Context) -> Statistics:
        """Take the statistics; where days are bad and shall be left out, once more without them."""
        attempt = job_attempt(context)
        query = statistics.render_statistics_sql(planned, taken)
        rows = cloud.warehouse.run_query(
            query, bigquery.query_job_id(planned, "statistics", attempt), "statistics"
        ).rows
        days = statistics.build_days(planned, rows)
        bad = quarantine.days_to_leave_out(planned, days)
        if bad:
            query = statistics.render_statistics_sql(planned, taken, bad)
            job_id = bigquery.query_job_id(planned, "statistics_of_the_rest", attempt)
            rows = cloud.warehouse.run_query(query, job_id, "statistics of the rest").rows
        return statistics.build_statistics(planned, taken, rows, days, bad)
