"""The jobs of a task whose work the job of an earlier task may do (`jobs: chained`); see `core.jobs.chains`.

In: the hooks, what the task wants, whose it is. Out: jobs as `VertexJobs` has them, each as this task sees it. All that
is known of a chain lies in the run's record, and each write there may be repeated: killed anywhere, the next poke of
the task finds the same job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from retraining.core.jobs.chains import Going, Use, as_job_of, labels_of_use
from retraining.core.jobs.job import CANCELLING, Job, JobIdentity, JobType
from retraining.core.jobs.requests import Chain, JobRequest
from retraining.core.naming import storage, vertex
from retraining.hooks.ports import CloudPort

LOGGER = logging.getLogger(__name__)
SIGN = b'{"try_number": 0, "values": {}}'
"""What a task that goes on with another's job leaves where that one remembered what it had seen: it still waits."""


class ChainedJobs:
    """Jobs of a task instance, among them the one that an earlier task made and that goes on with this one's work.

    Args:
        cloud: The hooks.
        job_request: What the task wants.
        chain: Its place.
        identity: Whose jobs.
        may_create: Asked before a machine is given the work; while it says False none is.
    """

    def __init__(
        self,
        cloud: CloudPort,
        job_request: JobRequest,
        chain: Chain,
        identity: JobIdentity,
        may_create: Callable[[], bool],
    ) -> None:
        self._cloud = cloud
        self._job_request = job_request
        self._chain = chain
        self._identity = identity
        self._may_create = may_create
        self._note_uri = storage.chained_job_uri(chain.folder_uri)
        self._asked: set[str] = set()

    def find_jobs(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """Return the jobs of some types that have these labels as this task sees them, oldest first."""
        own = [self._seen(job) for job in self._cloud.jobs.find_jobs(labels, types)]
        going = self._going()
        self._note_newest(own, going)
        lent = self._lend(going) if going else None
        if lent is None or not labels.items() <= lent.labels.items():
            return own
        return [lent, *own]  # it was made by an earlier task

    def get(self, name: str) -> Job:
        """Return a job as it stands."""
        return self._seen(self._cloud.jobs.get(name))

    def find_by_name(self, name: str) -> Job | None:
        """Return a job as it stands; None when it is gone."""
        job = self._cloud.jobs.find_by_name(name)
        return None if job is None else self._seen(job)

    def create(self, job: Mapping[str, Any]) -> Job:
        """Create a job; later tasks learn of it in the next look, before this one ends."""
        return self._cloud.jobs.create(job)

    def cancel(self, name: str) -> None:
        """Cancel a job, with what it would do after this task's work."""
        self._cloud.jobs.cancel(name)

    def _going(self) -> Going | None:
        data = self._cloud.artifacts.read_object(self._note_uri)
        return None if data is None else Going.parse(data, self._note_uri)

    def _note_newest(self, own: Collection[Job], going: Going | None) -> None:
        """Note the job that goes on with the tasks after this one: it is the newest of this generation."""
        mine = [job for job in own if job.labels.get(vertex.KEY_LABEL) == self._identity.key]
        if not mine or len(self._chain.tasks) == 1:
            return
        note = Going(job=mine[-1].name, tasks=self._chain.tasks)
        if note != going:
            self._cloud.artifacts.overwrite(self._note_uri, note.to_bytes(), "application/json")

    def _lend(self, going: Going) -> Job | None:
        """Return the job of an earlier task as this one's; None: there is none that does this task's work."""
        if self._chain.task not in going.tasks[1:]:
            return None
        job = self._cloud.jobs.find_by_name(going.job)
        if job is None or job.labels.get(vertex.DAG_RUN_LABEL) != self._identity.dag_run:
            return None  # it is gone, or another run's, which this one must neither wait for nor end
        uri = self._use_uri(job)
        data = self._cloud.artifacts.read_object(uri)
        if data is None:
            if not job.active or job.state == CANCELLING or not self._may_create():
                return None
            use = Use(key=self._identity.key, generation=self._identity.generation)
            data = self._cloud.artifacts.write_once(uri, use.to_bytes())
        used = Use.parse(data, uri)
        if job.active and used.key == self._identity.key:
            self._ask(job)
        return self._seen(job, used)

    def _ask(self, job: Job) -> None:
        """Let the machine go on: write the request that it waits for, and a sign that somebody waits for it."""
        if job.name in self._asked:
            return
        self._asked.add(job.name)
        if self._job_request.request is not None:
            self._cloud.artifacts.write_once(self._job_request.request_uri, self._job_request.request.to_bytes())
        if key := job.labels.get(vertex.KEY_LABEL):
            uri = storage.poke_uri(self._cloud.settings.bucket, key)
            self._cloud.artifacts.overwrite(uri, SIGN, "application/json")
        LOGGER.info("%s goes on with %s", job.job_id, self._chain.task)

    def _seen(self, job: Job, used: Use | None = None) -> Job:
        """Return a job as this task sees it: its part alone."""
        labels, before = None, None
        if job.labels.get(vertex.OWNER_LABEL) != self._identity.owner:
            if used is None:
                data = self._cloud.artifacts.read_object(self._use_uri(job))
                used = None if data is None else Use.parse(data, self._use_uri(job))
            if used is None:
                return job
            labels = labels_of_use(self._job_request, self._identity.owner, used)
            before = self._created(self._chain.before_uri)
        return as_job_of(
            self._chain, job, labels=labels, before=before, result=self._created(self._job_request.result_uri)
        )

    def _created(self, uri: str) -> datetime | None:
        found = self._cloud.objects.find_object(uri)
        return None if found is None else found.created

    def _use_uri(self, job: Job) -> str:
        return storage.chained_use_uri(self._chain.folder_uri, self._chain.task, job.job_id)
