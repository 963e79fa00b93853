"""The operator that has something done on Vertex AI.

Ours instead of the provider's `CreateCustomJobOperator`: that one makes a second paid job after a worker's death or one
failed poll, leaves the job running when the task is cleared, and shows none of its lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Plan
from retraining.core.documents.plan import JobTask
from retraining.core.jobs.chains import chained
from retraining.core.jobs.job import Job
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import pages
from retraining.core.untyped import ProtoJson, XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.airflow.cloud_task import CloudSensor, RunTask
from retraining.operators.airflow.links import JobLink, JobLogsLink, push_link
from retraining.operators.jobs.chain import ChainedJobs
from retraining.operators.jobs.identity import job_identity
from retraining.operators.jobs.places import JobPlace
from retraining.operators.jobs.reconcile import Reconciler
from retraining.operators.jobs.requests import JobRequestSource
from retraining.operators.record.ownership import leased_spans_exist
from retraining.operators.record.run_record import Record


class VertexJobOperator(RunTask, CloudSensor):
    """Have a job done exactly once, and show its lines in the task's log.

    Holds a worker slot only while it looks. A retry, a crash or a restarted scheduler finds the same job again; a
    cleared task ends its old job and makes a new one, unless the result is stored.

    There is no `on_kill`: a task's process is also stopped when its heartbeats fail, when a restarted scheduler resets
    it, or when its worker is shut down, and then the next try wants the job. `cancel_jobs` ends the jobs of a failed
    run, a cleared task's next poke those of its older generations, `maintain` the rest.

    Args:
        job_request: Makes it from the run's record: `request_export`, `request_training`, `request_evaluation`.
        custom_job: A whole `CustomJob` in proto-JSON instead, templated.
        chain_task: Which of a run's jobs it is, where the tasks that follow are those of `retrain`: then a model may
            have them done by one job (`jobs: chained`). None: each has a job of its own.

    Returns:
        `{uri, sha256, job, seconds, spot_seconds}` of the result: the last two over all jobs that the task needed. All
        three are None when another run had left it. Of a `custom_job` `{job, state, seconds}`.
    """

    template_fields = (*RunTask.template_fields, "custom_job")
    operator_extra_links = (JobLink(), JobLogsLink())
    ui_color = "#d7e8f7"

    def __init__(
        self,
        *,
        job_request: JobRequestSource | None = None,
        custom_job: ProtoJson | None = None,
        chain_task: JobTask | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        own = type(self).requested_job is not VertexJobOperator.requested_job
        if (job_request is None) == (custom_job is None) and not own:
            raise ValueError(f"{self.task_id}: expected job_request or custom_job, and not both")
        self.job_request = job_request
        self.custom_job = custom_job
        self.chain_task = chain_task
        if custom_job is not None:
            self.run_uri = ""

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Find, create, look: see `reconcile`."""
        result = self.poll_job(cloud, *self.requested_job(cloud, context), context)
        return False if result is None else PokeReturnValue(True, result)

    def poll_job(
        self, cloud: CloudPort, job_request: JobRequest, may_create: Callable[[], bool], context: Context
    ) -> XCom | None:
        """Return the result of a job; None while there is none."""

        def on_job(job: Job) -> None:
            push_link(self, context, JobLink, pages.job_address(job.name, cloud.settings.project))
            push_link(self, context, JobLogsLink, pages.job_logs_address(job.name, cloud.settings.project))

        identity = job_identity(context, job_request.custom_job)
        place = JobPlace(cloud, context, identity.key, job_request.custom_job)
        chain = job_request.chain
        jobs = ChainedJobs(cloud, job_request, chain, identity, may_create) if chain else None
        reconciler = Reconciler(cloud, job_request, identity, on_job, may_create, place, jobs)
        result = reconciler.poll_job()
        self.poke_interval = reconciler.sleep_s
        return result

    def requested_job(self, cloud: CloudPort, context: Context) -> tuple[JobRequest, Callable[[], bool]]:
        """Return the request, and what is asked before it is paid for; a subclass may know it without `job_request`."""
        if self.job_request is None:
            return JobRequest(custom_job=self.custom_job or {}), lambda: True
        record = self.record(cloud, context)
        job_request = self.job_request(cloud, record)
        if self.chain_task is not None:
            job_request = chained(record.read_document(Plan), job_request, self.chain_task)
        return job_request, partial(self.may_create, cloud, record, job_request, context)

    def may_create(self, cloud: CloudPort, record: Record, job_request: JobRequest, context: Context) -> bool:
        """Tell, before a job is paid for, whether what it reads is there; False: not yet.

        Raises:
            DataError: It is gone.
        """
        return leased_spans_exist(cloud, record, job_request.request, context)
