"""The task `predict`: the batch prediction, made once, found again, by the same rules as every other job."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Predictions, ScoringInput, ScoringPlan
from retraining.core.errors import DataError
from retraining.core.jobs.requests import JobRequest
from retraining.core.scoring import answers, lines, requests
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.record.run_record import Record
from retraining.operators.scoring.lines import newest_lines
from retraining.operators.scoring.scoring_task import ScoringTask, claim_destination, newest_answers


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
