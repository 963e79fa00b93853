"""The tasks `snapshot` and `predict` of a scoring: the rows as the model is sent them, and the batch prediction.

The prediction is made once and found again, by the same rules as every other job.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Predictions, ScoringInput, ScoringPlan, ScoringResult
from retraining.core.errors import DataError
from retraining.core.jobs.requests import JobRequest
from retraining.core.scoring import answers, lines, requests, source
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.record.run_record import Record
from retraining.operators.scoring.lines import newest_lines, take_lines
from retraining.operators.scoring.scoring_task import (
    ScoringTask,
    claim_destination,
    make_claims,
    make_destination,
    newest_answers,
    statement_id,
)


class SnapshotInstancesOperator(ScoringTask, CloudOperator):
    """Check source and destination, and make the table of instances: nothing is paid for a job before.

    Returns:
        `{table, rows}`.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Ask BigQuery, unless an earlier try did."""
        record = self.record(cloud, context)
        planned, found = record.read_document(ScoringPlan), record.find_document(ScoringInput)
        if record.find_document(ScoringResult) is None:
            claim_destination(cloud, planned, context)
        if found is None:
            found = record.write_once(self._take(cloud, planned, context))
        elif self._is_needed(planned, record) and cloud.warehouse.table_schema(found.table) is None:
            self.log.warning("%s has expired: it is made again", found.table)
            source.require_same_rows(found, self._take(cloud, planned, context))
        self.log.info("%d rows to score in %s", found.rows, found.table)
        return {"table": found.table, "rows": found.rows}

    @staticmethod
    def _is_needed(planned: ScoringPlan, record: Record) -> bool:
        if planned.source.files is not None:
            return False
        return record.find_document(Predictions) is None and record.find_document(ScoringResult) is None

    def _take(self, cloud: CloudPort, planned: ScoringPlan, context: Context) -> ScoringInput:
        if planned.source.files is not None:
            answers.require_newest(planned, newest_lines(cloud, planned), lines.current_uri(planned))
            return take_lines(cloud, planned)
        warehouse, where = cloud.warehouse, source.where_of(planned)
        columns = source.require_columns(planned, warehouse.dry_run(source.render_source_sql(planned), where).schema)
        key_type = columns[planned.key].type
        make_destination(cloud, planned, key_type, "destination", context)
        make_claims(cloud, planned, "claims", context)
        answers.require_newest(planned, newest_answers(cloud, planned, "newest_before", context))
        made = warehouse.run_query(
            source.render_input_sql(planned, columns), statement_id(planned, "instances", context), where
        )
        counted = warehouse.run_query(
            source.render_count_sql(planned), statement_id(planned, "count", context), "instances"
        )
        return source.build_input(planned, columns, counted.rows[0], made.bytes_processed)


class PredictOperator(ScoringTask, VertexJobOperator):
    """Have the instances scored exactly once.

    Returns:
        `{table, job, seconds}`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"job_request": request_predictions, **kwargs})

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Find, create, look; then write down once what the job left."""
        record = self.record(cloud, context)
        found = record.find_document(Predictions)
        if found is None:
            done = super().look(cloud, context)
            if not isinstance(done, PokeReturnValue):
                return done
            result: XCom = done.xcom_value or {}
            job = cloud.jobs.get(result["job"])
            found = record.write_once(requests.predictions_of(record.read_document(ScoringPlan), job))
        return PokeReturnValue(True, _result(found))

    def may_create(self, cloud: CloudPort, record: Record, job_request: JobRequest, context: Context) -> bool:
        """As the base; and the destination is still this run's, and holds nothing newer.

        Raises:
            ConflictError: It is another run's.
            DataError: The table of instances has expired, or the answers could not be written.
        """
        del job_request
        planned = record.read_document(ScoringPlan)
        claim_destination(cloud, planned, context)
        if planned.source.files is not None:
            answers.require_newest(planned, newest_lines(cloud, planned), lines.current_uri(planned))
            return True
        answers.require_newest(planned, newest_answers(cloud, planned, "newest_predict", context))
        table = record.read_document(ScoringInput).table
        if cloud.warehouse.table_schema(table) is None:
            raise DataError(table, "it has expired", "the table that snapshot made", "Clear snapshot and what follows")
        return True


def request_predictions(cloud: CloudPort, record: Record) -> JobRequest:
    """Request the batch prediction of a scoring."""
    planned, instances = record.read_document(ScoringPlan), record.read_document(ScoringInput)
    return requests.batch_job(planned, instances, planned.service_account or cloud.settings.service_account)


def _result(found: Predictions) -> XCom:
    return {"table": found.table, "job": found.job, "seconds": found.seconds}
