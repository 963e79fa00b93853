"""The evaluation: trainers of other frameworks score their models first, then the judge compares."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Champion, EvaluateRequest, Evaluation, Plan, Report
from retraining.core.jobs.requests import JobRequest
from retraining.core.jobs.scores import scoring_jobs, unscored_champion
from retraining.core.naming import storage, vertex
from retraining.hooks.airflow_exceptions import AirflowFailException
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_evaluation
from retraining.operators.record.run_record import Record


class EvaluateOperator(VertexJobOperator):
    """Have champion and challenger compared, each scored by a trainer that can ask it.

    Returns:
        As `VertexJobOperator`; seconds are those of all its jobs.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(job_request=request_evaluation, chain_task="evaluate", **kwargs)

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Have the scoring jobs done, one after the other; then the comparison."""
        record = self.record(cloud, context)
        if record.find_document(Evaluation) is None and not self._have_scores(cloud, record, context):
            return False
        return super().look(cloud, context)

    def _have_scores(self, cloud: CloudPort, record: Record, context: Context) -> bool:
        """Return whether every model of another framework has its scores; False: a job is at it."""
        asked = request_evaluation(cloud, record).request
        request = record.find_document(EvaluateRequest) or cast("EvaluateRequest", asked)
        champion = request.champion if request.champion and request.champion.scores_uri else None
        if champion is None and not request.challenger.scores_uri:
            return True
        request = record.write_once(request)  # who meets whom is settled before anybody is scored
        image = self._champion_image(cloud, request, champion) if champion else None
        if champion and image is None:
            self._leave_out(cloud, record, champion, "the plan of its run is gone, which names the image that made it")
        jobs = scoring_jobs(
            record.read_document(Plan),
            request,
            image,
            cloud.settings.service_account,
            best_image=self._champion_image(cloud, request, request.best) if request.best else None,
            with_digest=_with_digest(cloud, record, request),
        )
        for side, job_request in jobs.items():
            if cloud.artifacts.exists(job_request.adopted_uri):
                continue
            try:
                may_create = partial(self.may_create, cloud, record, job_request, context)
                if self.poll_job(cloud, job_request, may_create, context) is None:
                    return False
            except AirflowFailException as error:
                if side != vertex.CHAMPION or champion is None:
                    raise
                self._leave_out(cloud, record, champion, _reason(job_request, error))
        return True

    def _champion_image(self, cloud: CloudPort, request: EvaluateRequest, champion: Champion) -> str | None:
        """Return the image that made a champion, by the plan of its run; None: that is gone."""
        folder_uri = storage.run_uri(cloud.settings.bucket, request.model, champion.run_key)
        plan = Record(cloud.artifacts, folder_uri).find_document(Plan)
        return plan.spec.training.runtime.scoring_image if plan else None

    def _leave_out(self, cloud: CloudPort, record: Record, champion: Champion, reason: str) -> None:
        """Write down why there are no scores of the champion: the evaluation says so, and the floor judges.

        Where the judge looks for them, and then in the run's record, so that nobody asks for them again.
        """
        self.log.warning("the champion, version %s, is left out: %s", champion.version_id, reason)
        scores = unscored_champion(record.read_document(EvaluateRequest), champion, reason).to_bytes()
        for uri in (champion.scores_uri or "", storage.scores_document_uri(record.folder_uri, vertex.CHAMPION)):
            cloud.artifacts.write_once(uri, scores)


def _with_digest(cloud: CloudPort, record: Record, request: EvaluateRequest) -> list[str]:
    """Return the sides whose training reports have the digest of their request, so that their images write it."""
    records = {vertex.CHALLENGER: record}
    for side, model in ((vertex.CHAMPION, request.champion), (vertex.BEST, request.best)):
        if model:
            folder_uri = storage.run_uri(cloud.settings.bucket, request.model, model.run_key)
            records[side] = Record(cloud.artifacts, folder_uri)
    reports = {side: found.find_document(Report) for side, found in records.items()}
    return [side for side, report in reports.items() if report and report.request_digest]


def _reason(job_request: JobRequest, error: Exception) -> str:
    """Return the first line of a failure, with the image that failed."""
    image = job_request.custom_job["job_spec"]["worker_pool_specs"][0]["container_spec"]["image_uri"]
    return f"{image} failed: {str(error).splitlines()[0]}"
