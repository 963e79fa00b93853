"""The challenger: trained by a job, or the version of another stage, whose files are copied without one."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Plan, Report, TakenFrom
from retraining.core.jobs.adoption import require_taken_document, require_taken_model, taken_report
from retraining.core.naming import serving
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_training
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)


class TrainOperator(VertexJobOperator):
    """Have the challenger trained; of a run that takes a version over, copy that one, and pay nothing.

    Returns:
        As `VertexJobOperator`; a version that is taken over has no job.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(job_request=request_training, chain_task="train", **kwargs)

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Wait for the job; or copy the version in one go, which may be repeated from any line."""
        record = self.record(cloud, context)
        plan = record.read_document(Plan)
        if plan.taken_from is None:
            return super().look(cloud, context)
        return PokeReturnValue(True, take_version_over(cloud, record, plan, plan.taken_from))


def take_version_over(cloud: CloudPort, record: Record, plan: Plan, taken: TakenFrom) -> XCom:
    """Copy a version's files to where this run's own training would leave them, and its report to the record.

    Raises:
        ContractError: The copy is not the model that the training's report describes.
    """
    uri = record.taken_from().uri(Report)
    data = cloud.artifacts.read_object(uri)
    require_taken_document(taken, Report, uri, data)
    model_uri = serving.trained_model_uri(plan)
    copied = cloud.model_files.copy_missing(taken.model_uri, model_uri)
    LOGGER.info("%d files copied from %s to %s; the rest was there", copied, taken.model_uri, model_uri)
    require_taken_model(taken, model_uri, cloud.model_files.digest(model_uri))
    report = record.write_once(taken_report(plan, Report.parse(data or b"", uri), model_uri))
    return {"uri": record.uri(Report), "sha256": report.digest(), "job": None, "seconds": None, "spot_seconds": None}
