"""The search for hyperparameters: decided once; then a job repeats the best of earlier studies, and another searches.

A night without a search ends here at once: the run trains with the champion's values.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import (
    Document,
    EvaluateRequest,
    Evaluation,
    Plan,
    Report,
    Statistics,
    Trial,
    Tuning,
    TuningRequest,
)
from retraining.core.errors import ContractError
from retraining.core.jobs.job import Job, JobIdentity, JobType
from retraining.core.jobs.outcomes import goes_on_with
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import pages, storage, vertex
from retraining.core.naming.addresses import folder_of
from retraining.core.naming.run_keys import RunKey
from retraining.core.tuning import decision, requests, warm_start
from retraining.hooks.airflow_exceptions import AirflowFailException
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudSensor, RunTask
from retraining.operators.airflow.links import JobLink, push_link
from retraining.operators.jobs.claims import ClaimedJobs
from retraining.operators.jobs.identity import job_identity
from retraining.operators.jobs.places import JobPlace
from retraining.operators.jobs.reconcile import Reconciler
from retraining.operators.record.ownership import leased_spans_exist
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
# As many as are remembered, and some for those that cannot be read.
READ_STUDIES = 2 * warm_start.REMEMBERED_STUDIES
_D = TypeVar("_D", bound=Document)


def find_studies(cloud: CloudPort, plan: Plan) -> tuple[list[Tuning], int]:
    """Find the newest studies of runs before this one's time, newest last; and how many there are of any age.

    A document that cannot be read (another release wrote it) is passed over, with a warning.
    """
    before = RunKey.parse(plan.run_key).stamp
    uris = cloud.artifacts.list_uris(storage.studies_uri(plan.bucket, plan.model), end=before, suffix=".json")
    stored = cloud.artifacts.read_some(uris[-READ_STUDIES:])
    studies = (_readable(partial(Tuning.parse, data, uri)) for uri, data in stored.items())
    return [study for study in studies if study is not None], len(uris)


def _readable(read_document: Callable[[], _D | None]) -> _D | None:
    """Read a document; None, with a warning, where another release wrote what cannot be read."""
    try:
        return read_document()
    except ContractError as error:
        LOGGER.warning("not remembered: %s", error)
        return None


def find_champion(cloud: CloudPort, plan: Plan) -> decision.ChampionRecord | None:
    """Find the champion's hyperparameters, and its metric then and in its newest comparison before this run."""
    version = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
    if version is None or not decision.is_earlier(version.run_key, plan):
        return None
    record = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
    report, champion_plan = (
        _readable(partial(record.find_document, Report)),
        _readable(partial(record.find_document, Plan)),
    )
    promoted, settled = (
        _readable(partial(record.find_document, Evaluation)),
        _readable(partial(record.find_document, Tuning)),
    )
    if report is None or champion_plan is None:
        return None
    known = decision.champion_record(plan, version.run_key, report, champion_plan, promoted, settled)
    comparisons = _comparisons(cloud, plan, version.run_key)
    return dataclasses.replace(known, now=decision.newest_metric(plan, version.run_key, comparisons))


def _comparisons(
    cloud: CloudPort, plan: Plan, champion: str
) -> Iterator[tuple[EvaluateRequest | None, Evaluation | None]]:
    """Yield requests and evaluations of the runs between the champion's and this one, newest first."""
    folder = storage.runs_uri(plan.bucket, plan.model)
    uris = cloud.artifacts.list_uris(folder, start=champion, end=plan.run_key, suffix="/evaluate_request.json")
    for uri in reversed(uris):
        record = Record(cloud.artifacts, folder_of(uri))
        yield (
            _readable(partial(record.find_document, EvaluateRequest)),
            _readable(partial(record.find_document, Evaluation)),
        )


class TuneOperator(RunTask, CloudSensor):
    """Settle on the run's hyperparameters, by a study if it is time for one.

    Returns:
        `{searched, trials, hyperparameters, words}`.
    """

    operator_extra_links = (JobLink(),)
    ui_color = "#d7e8f7"

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Decide once; have the jobs done; conclude once."""
        record = self.record(cloud, context)
        plan, settled = record.read_document(Plan), record.find_document(Tuning)
        if settled is None:
            request = self._tuning_request(cloud, record, plan)
            settled = self._conclude(cloud, record, plan, request, context)
        if settled is None:
            return False
        if settled.trials:
            uri = storage.study_uri(plan.bucket, plan.model, plan.run_key)
            cloud.artifacts.write_once(uri, settled.to_bytes())
            self._delete_checkpoints(cloud, plan)
        self.log.info("%s: %s", settled.message, settled.hyperparameters)
        result = {"searched": bool(settled.trials), "trials": len(settled.trials), "words": settled.message}
        return PokeReturnValue(True, {**result, "hyperparameters": dict(settled.to_json()["hyperparameters"])})

    def _tuning_request(self, cloud: CloudPort, record: Record, plan: Plan) -> TuningRequest:
        request = record.find_document(TuningRequest)
        if request is None:
            champion = find_champion(cloud, plan) if plan.spec.tuning else None
            studies, earlier = find_studies(cloud, plan) if plan.spec.tuning else ([], 0)
            decided = decision.decide(plan, studies, champion, earlier=earlier)
            request = record.write_once(decided)
            self.log.info("%s", request.message)
        return request

    def _conclude(
        self, cloud: CloudPort, record: Record, plan: Plan, request: TuningRequest, context: Context
    ) -> Tuning | None:
        """Conclude the search; None while a job works."""
        if not request.search or plan.spec.tuning is None:
            return record.write_once(decision.conclude(plan, request, ()))
        account, jobs, recalled = cloud.settings.service_account, list[str](), tuple[Trial, ...]()
        statistics = record.find_document(Statistics)
        if request.recalled:
            job_request = requests.repetition_job(plan, request, account, statistics)
            job = self._finish_job(cloud, job_request, context, requests.bears_failure(plan, "recall", request))
            if job is None:
                return None
            jobs.append(job)
            recalled = requests.read_trials(plan, "recall", request, cloud.jobs.trials(job))
        space = warm_start.narrowed_space(plan.spec.tuning, recalled, request.focus)
        job_request = requests.search_job(plan, request, space, account, statistics)
        job = self._finish_job(cloud, job_request, context, requests.bears_failure(plan, "search", request))
        if job is None:
            return None
        jobs.append(job)
        searched = requests.read_trials(plan, "search", request, cloud.jobs.trials(job))
        self._log_trials((*recalled, *searched))
        return record.write_once(decision.conclude(plan, request, (*recalled, *searched), searched=space, jobs=jobs))

    def _finish_job(
        self, cloud: CloudPort, job_request: JobRequest, context: Context, bears_failure: bool
    ) -> str | None:
        """Return the name of the job when it ended with trials to go on with; None while it works."""
        identity = job_identity(context, job_request.custom_job)
        if ended := self._find_ended_job(cloud, identity, bears_failure):
            return ended

        def on_job(job: Job) -> None:
            push_link(self, context, JobLink, pages.job_address(job.name, cloud.settings.project))

        record = self.record(cloud, context)
        may_create = partial(leased_spans_exist, cloud, record, job_request.request, context)
        try:
            place = JobPlace(cloud, context, identity.key, job_request.custom_job)
            reconciler = Reconciler(cloud, job_request, identity, on_job, may_create, place)
            result = reconciler.poll_job()
            self.poke_interval = reconciler.sleep_s
        except AirflowFailException:
            if ended := self._find_ended_job(cloud, identity, bears_failure):
                return ended
            raise
        return None if result is None else str(result["job"])

    def _find_ended_job(self, cloud: CloudPort, identity: JobIdentity, bears_failure: bool) -> str | None:
        """Find the job that succeeded, or that failed by its trials where that is borne; None: there is none."""
        jobs = ClaimedJobs(cloud, identity, JobType.TUNING)
        standing = jobs.find_jobs().standing
        if (job := standing.counts) is not None:
            jobs.cancel_surplus(standing.surplus)
            return job.name if goes_on_with(job, bears_failure=False) else None
        for job in standing.spent:
            if goes_on_with(job, bears_failure=bears_failure):
                self.log.warning("%s failed, the study goes on without its trials: %s", job.job_id, job.error_message)
                return job.name
        return None

    def _delete_checkpoints(self, cloud: CloudPort, plan: Plan) -> None:
        """Delete the checkpoints of trials that were stopped early: the jobs have ended, nobody resumes them."""
        for folder in requests.checkpoint_uris(plan):
            gone = sum(item.gone for item in cloud.objects.delete(cloud.objects.walk(folder)))
            if gone:
                self.log.info("%d files of trials that were stopped early deleted in %s", gone, folder)

    def _log_trials(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            score = "no score" if trial.value is None else f"{trial.value:.4f}"
            self.log.info("trial %s: %s, %s %s", trial.trial_id, score, trial.hyperparameters, trial.message)
