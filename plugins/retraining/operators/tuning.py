"""The search for hyperparameters: decided once; then a job repeats the best of earlier studies, and another searches.

A night without a search ends here at once: the run trains with the champion's values.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Document, EvaluateRequest, Evaluation, Plan, Report, Trial, Tuning, TuningRequest
from retraining.core.errors import ContractError
from retraining.core.jobs.failures import OF_THE_SERVICE
from retraining.core.jobs.requests import Order
from retraining.core.naming import run_keys, storage, vertex
from retraining.core.spec.evaluation import HIGHER_IS_BETTER
from retraining.core.tuning import conclusion, decision, requests, warm_start
from retraining.hooks.airflow_exceptions import AirflowFailException
from retraining.hooks.cloud import Cloud
from retraining.hooks.vertex_jobs import Job, JobType
from retraining.operators.claimed_jobs import ClaimedJobs
from retraining.operators.edge import sleep_over_outages
from retraining.operators.job_identity import JobIdentity, job_identity
from retraining.operators.jobs import VertexJobOperator
from retraining.operators.leases import spans_are_there
from retraining.operators.links import JobLink, push_link, tuning_job_address
from retraining.operators.ownership import own_run
from retraining.operators.reconcile import JobOrder, Reconciler, failure_of
from retraining.operators.record import RUN_URI, Record

LOGGER = logging.getLogger(__name__)
# As many as are remembered, and some for those that cannot be read.
READ_STUDIES = 2 * warm_start.REMEMBERED_STUDIES
_D = TypeVar("_D", bound=Document)


class TuneOperator(VertexJobOperator):
    """Settle on the run's hyperparameters, by a study if it is time for one.

    Args:
        run_uri: Folder of the run's record.

    Returns:
        `{searched, trials, hyperparameters, words}`.
    """

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseSensorOperator's
        super().__init__(order=_no_order, run_uri=run_uri, **kwargs)

    @sleep_over_outages
    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Decide once; have the jobs done; conclude once."""
        cloud = self._cloud = self._cloud or Cloud()
        record = own_run(cloud, context, self.run_uri)
        plan, settled = record.read(Plan), record.find(Tuning)
        if settled is None:
            request = self._request(cloud, record, plan)
            settled = self._settle(cloud, record, plan, request, context)
        if settled is None:
            return False
        if settled.trials:
            uri = storage.study_uri(plan.bucket, plan.model, plan.run_key)
            cloud.artifacts.write_once(uri, settled.to_bytes())
            self._clear(cloud, plan)
        self.log.info("%s: %s", settled.words, settled.hyperparameters)
        result = {"searched": bool(settled.trials), "trials": len(settled.trials), "words": settled.words}
        return PokeReturnValue(True, {**result, "hyperparameters": dict(settled.to_json()["hyperparameters"])})

    def _request(self, cloud: Cloud, record: Record, plan: Plan) -> TuningRequest:
        request = record.find(TuningRequest)
        if request is None:
            higher = plan.spec.evaluation.metric in HIGHER_IS_BETTER
            champion = find_champion(cloud, plan) if plan.spec.tuning else None
            studies, earlier = find_studies(cloud, plan) if plan.spec.tuning else ([], 0)
            decided = decision.decide(plan, studies, champion, higher_is_better=higher, earlier=earlier)
            request = record.write_once(decided)
            self.log.info("%s", request.words)
        return request

    def _settle(
        self, cloud: Cloud, record: Record, plan: Plan, request: TuningRequest, context: Context
    ) -> Tuning | None:
        """The conclusion; None while a job works."""
        if not request.search or plan.spec.tuning is None:
            return record.write_once(conclusion.conclude(plan, request, ()))
        account, jobs, recalled = cloud.settings.service_account, list[str](), tuple[Trial, ...]()
        if request.recalled:
            order = requests.recall_order(plan, request, account)
            job = self._done(cloud, order, context, requests.bears_failure(plan, "recall", request))
            if job is None:
                return None
            jobs.append(job)
            recalled = requests.read_trials(plan, "recall", request, cloud.jobs.trials(job))
        space = warm_start.focus(plan.spec.tuning, recalled, request.focus)
        order = requests.search_order(plan, request, space, account)
        job = self._done(cloud, order, context, requests.bears_failure(plan, "search", request))
        if job is None:
            return None
        jobs.append(job)
        found = requests.read_trials(plan, "search", request, cloud.jobs.trials(job))
        self._say((*recalled, *found))
        return record.write_once(conclusion.conclude(plan, request, (*recalled, *found), searched=space, jobs=jobs))

    def _done(self, cloud: Cloud, order: Order, context: Context, bears_failure: bool) -> str | None:
        """Name of the order's job when it ended with trials to go on with; None while it works."""
        identity = job_identity(context, order.custom_job)
        if ended := self._ended(cloud, identity, bears_failure):
            return ended

        def on_job(job: Job) -> None:
            push_link(
                self, context, JobLink, tuning_job_address(cloud.settings.project, cloud.settings.region, job.job_id)
            )

        # Failed trials were borne with before: another study would pay for the same ones.
        record = own_run(cloud, context, self.run_uri)
        wanted = JobOrder(
            custom_job=order.custom_job,
            request=order.request,
            request_uri=order.request_uri,
            retries=0,
            way_out="Mend what they name and clear the task, or trigger the run with the Param tune on never",
            before_create=partial(spans_are_there, cloud, record, order.request, context),
        )
        try:
            result = Reconciler(cloud, wanted, identity, on_job).run()
        except AirflowFailException:
            if ended := self._ended(cloud, identity, bears_failure):
                return ended
            raise
        return None if result is None else str(result["job"])

    def _ended(self, cloud: Cloud, identity: JobIdentity, bears_failure: bool) -> str | None:
        """Name of the job that succeeded, or that failed by its trials where that is borne; None: there is none."""
        jobs = ClaimedJobs(cloud, identity, JobType.TUNING)
        standing = jobs.look().standing
        if (job := standing.counts) is not None:
            jobs.cancel(standing.surplus)
            return job.name if job.state == "JOB_STATE_SUCCEEDED" else None
        for job in standing.spent:
            if bears_failure and job.state == "JOB_STATE_FAILED" and failure_of(job) not in OF_THE_SERVICE:
                self.log.warning("%s failed, the study goes on without its trials: %s", job.job_id, job.error_message)
                return job.name
        return None

    def _clear(self, cloud: Cloud, plan: Plan) -> None:
        """Delete the checkpoints of trials that were stopped early: the jobs have ended, nobody resumes them."""
        for folder in requests.checkpoint_uris(plan):
            gone = sum(item.gone for item in cloud.objects.delete(cloud.objects.walk(folder)))
            if gone:
                self.log.info("%d files of trials that were stopped early deleted in %s", gone, folder)

    def _say(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            score = "no score" if trial.value is None else f"{trial.value:.4f}"
            self.log.info("trial %s: %s, %s %s", trial.trial_id, score, trial.hyperparameters, trial.words)


def find_studies(cloud: Cloud, plan: Plan) -> tuple[list[Tuning], int]:
    """The newest studies of runs before this one's time, newest last; and how many there are of any age.

    A document that cannot be read (another release wrote it) is passed over, with a warning.
    """
    before = plan.run_key.split("-")[0]
    uris = cloud.artifacts.list_uris(storage.studies_uri(plan.bucket, plan.model), end=before, suffix=".json")
    stored = cloud.artifacts.read_some(uris[-READ_STUDIES:])
    read = (_readable(partial(Tuning.parse, data, uri)) for uri, data in stored.items())
    return [study for study in read if study is not None], len(uris)


def _readable(read: Callable[[], _D | None]) -> _D | None:
    """What is read; None, with a warning, where another release wrote what cannot be."""
    try:
        return read()
    except ContractError as error:
        LOGGER.warning("not remembered: %s", error)
        return None


def find_champion(cloud: Cloud, plan: Plan) -> decision.ChampionRecord | None:
    """The champion's hyperparameters, and its metric when it was promoted and in the newest duel before this run."""
    version = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
    if version is None or run_keys.run_key_as_of(version.run_key) >= plan.as_of:
        return None
    made = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
    report, then = _readable(partial(made.find, Report)), _readable(partial(made.find, Plan))
    promoted, settled = _readable(partial(made.find, Evaluation)), _readable(partial(made.find, Tuning))
    if report is None or then is None:
        return None
    metric = plan.spec.evaluation.metric
    return decision.ChampionRecord(
        run_key=version.run_key,
        hyperparameters=report.hyperparameters,
        given=then.spec.training.hyperparameters,
        tuned=settled is not None and settled.source != "spec",
        then=getattr(promoted.challenger.metrics, metric) if promoted else None,
        now=_newest_duel(cloud, plan, version.run_key, metric),
    )


def _newest_duel(cloud: Cloud, plan: Plan, champion: str, metric: str) -> float | None:
    """The champion's metric in the newest duel that it was in, before this run."""
    folder = storage.runs_uri(plan.bucket, plan.model)
    uris = cloud.artifacts.list_uris(folder, start=champion, end=plan.run_key, suffix="/evaluate_request.json")
    for uri in reversed(uris):
        duel = Record(cloud.artifacts, uri.rsplit("/", 1)[0])
        request, found = _readable(partial(duel.find, EvaluateRequest)), _readable(partial(duel.find, Evaluation))
        known = request is not None and request.champion is not None and request.champion.run_key == champion
        if known and found is not None and found.champion is not None:
            value: float | None = getattr(found.champion.metrics, metric)
            return value
    return None


def _no_order(_cloud: Cloud, _record: Record) -> Order:
    raise AssertionError("the task makes its own orders")
