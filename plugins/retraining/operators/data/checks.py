"""The task that judges the data before anything is paid for, beside what earlier runs counted."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.checks import dataset
from retraining.core.data import tfdv
from retraining.core.documents import Checks, Plan, Snapshot, Statistics
from retraining.core.naming import storage
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.airflow.dag_run import end_run, job_attempt
from retraining.operators.data.assertions import ask_assertions
from retraining.operators.data.earlier_runs import find_repetition, read_history
from retraining.operators.data.run_table import RunTable
from retraining.operators.record.run_record import Record


class CheckDataOperator(RunTask, CloudOperator):
    """Take the statistics of the run table and judge them, before anything is paid for.

    Returns:
        `{passed, warnings, quarantined}`: the days that the run goes on without; a run whose data does not pass fails
        here, and one that would come out as an earlier one did ends here.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Take the statistics and judge them; refuse the run where a finding blocks it."""
        record = self.record(cloud, context)
        planned, taken = record.read_document(Plan), record.read_document(Snapshot)
        counted = record.find_document(Statistics) or record.write_once(
            RunTable(cloud, planned, job_attempt(context)).count(taken)
        )
        write_tfdv(cloud, record, planned, taken, counted)
        judged = record.find_document(Checks)
        if judged is None:
            asked = ask_assertions(cloud, planned, counted.quarantined, job_attempt(context))
            found = dataset.check_data(planned, taken, counted, read_history(cloud.artifacts, planned), asked)
            repeats = find_repetition(cloud, planned, taken, found) if found.passed else None
            judged = record.write_once(found.model_copy(update={"repeats": repeats}))
        for finding in judged.findings:
            self.log.warning(
                "%s: %s (found %s, expected %s)", finding.check, finding.message, finding.found, finding.expected
            )
        dataset.require_passed(judged, record.uri(Checks))
        if judged.repeats is not None:
            self.log.warning(judged.repeats.message)
            end_run(self, context, judged.repeats.message)
        return {
            "passed": True,
            "warnings": [finding.message for finding in judged.findings],
            "quarantined": [day.isoformat() for day in judged.quarantined],
        }


def write_tfdv(cloud: CloudPort, record: Record, plan: Plan, snapshot: Snapshot, statistics: Statistics) -> None:
    """Store schema and statistics as TensorFlow Data Validation reads them, where a shard holds plain examples."""
    if tfdv.are_plain_examples(plan):
        for what, render in (("schema", tfdv.render_schema), ("statistics", tfdv.render_statistics)):
            text = render(plan, snapshot, statistics).encode()
            uri = storage.tfdv_uri(record.folder_uri, what)
            cloud.artifacts.write_once(uri, text, "text/plain; charset=utf-8")
