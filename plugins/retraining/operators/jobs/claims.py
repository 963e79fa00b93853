"""The jobs of one key: looked for, tidied up, created one at a time.

In: the hooks and an identity. Out: what is there, and a job. See `core.jobs.claims` for the rules; killed anywhere, the
next poke of the task, or another process of it, finds the same job.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from retraining.core.errors import ContractError
from retraining.core.jobs.claims import START_WITHIN, Claim, Standing, other_generations, sort_out
from retraining.core.jobs.failures import RESOURCE_EXHAUSTED, Failure, classify
from retraining.core.jobs.job import FAILED, Job, JobIdentity, JobType
from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import ObjectAddress
from retraining.hooks.ports import CloudPort
from retraining.hooks.session import is_exhausted, is_refused, may_have_worked

LOGGER = logging.getLogger(__name__)


class TaskJobsPort(Protocol):
    """Vertex AI's jobs as a task sees them; `JobsPort` says what each does."""

    def find_jobs(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """Return the jobs of some types that have these labels, oldest first."""

    def create(self, job: Mapping[str, Any]) -> Job:
        """Create a job from proto-JSON."""

    def get(self, name: str) -> Job:
        """Return a job as it stands."""

    def find_by_name(self, name: str) -> Job | None:
        """Return a job as it stands; None when it is gone."""

    def cancel(self, name: str) -> None:
        """Cancel a job."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One look.

    Attributes:
        everything: Jobs of the task instance, of any generation and order, oldest first.
        mine: Those of this key.
        standing: What they mean.
        claim: On the next job of this key, as it stood *before* the jobs were listed; None: there is none.
        generation: Of the claim's object.
        began: When the look began: what came since then may be missing from it.
    """

    everything: tuple[Job, ...]
    mine: tuple[Job, ...]
    standing: Standing
    claim: Claim | None
    generation: int
    began: datetime


class ClaimedJobs:
    """Jobs of a task instance.

    Args:
        cloud: The hooks.
        identity: Whose jobs.
        type_: Custom or tuning.
        jobs: The service as the task sees it; None: as it is.
    """

    def __init__(
        self, cloud: CloudPort, identity: JobIdentity, type_: JobType, jobs: TaskJobsPort | None = None
    ) -> None:
        self._cloud = cloud
        self._jobs = jobs or cloud.jobs
        self._identity = identity
        self._types = (type_,)
        self._uri = storage.claim_uri(cloud.settings.bucket, identity.dag_run, identity.key)

    def find_jobs(self, fresh: Job | None = None) -> Seen:
        """Look what is there. A job that the claim names is asked for where the list does not have it yet.

        Args:
            fresh: A job as it was just seen, which the list may have as it was.
        """
        while True:
            began = self._cloud.clock.now()
            claim, generation = self._read_claim()
            listed = self._jobs.find_jobs({vertex.OWNER_LABEL: self._identity.owner}, self._types)
            missing = set(claim.jobs if claim else ()).difference(job.name for job in listed)
            asked = [self._jobs.find_by_name(name) for name in sorted(missing)]
            jobs = (*listed, *(job for job in asked if job is not None))
            everything = tuple(fresh if fresh and job.name == fresh.name else job for job in jobs)
            mine = tuple(job for job in everything if job.labels.get(vertex.KEY_LABEL) == self._identity.key)
            noted = claim and claim.with_jobs(job.name for job in mine)
            if noted is None or noted == claim:
                break
            if (written := self._write_claim(noted, generation)) is not None:
                claim, generation = noted, written
                break  # else another process changed it meanwhile: its job may be missing from this list
        return Seen(
            everything=everything,
            mine=mine,
            standing=sort_out(mine),
            claim=claim,
            generation=generation,
            began=began,
        )

    def cancel_stale(self, seen: Seen, spared: Job | None) -> bool:
        """Cancel what is surplus, and what older generations left; False: a newer generation is at work.

        Args:
            seen: The look.
            spared: Is left alone, whatever it is: it left the result.
        """
        others = other_generations(seen.everything, self._identity, spared)
        for job in others.newer:
            LOGGER.warning("%s is of a newer generation of this task: it is left alone", job.job_id)
        for job in others.older:
            LOGGER.warning("%s is of an older generation of this task: it is cancelled", job.job_id)
            self._jobs.cancel(job.name)
        self.cancel_surplus(job for job in seen.standing.surplus if not spared or job.name != spared.name)
        return not others.newer

    def others_go_on(self, seen: Seen) -> bool:
        """Return whether a job of another key goes on, or ends: what it comes to is not known yet."""
        return any(job.active and job.labels.get(vertex.KEY_LABEL) != self._identity.key for job in seen.everything)

    def cancel_surplus(self, surplus: Iterable[Job]) -> None:
        """Cancel jobs that were made beside an older one."""
        for job in surplus:
            LOGGER.warning("%s was made beside an older job: it is cancelled", job.job_id)
            self._jobs.cancel(job.name)

    def create_job(self, custom_job: Mapping[str, Any], seen: Seen) -> Job | None:
        """Create the job under a claim; None: somebody else may be at it, or it is not known what became of it.

        Raises:
            Exception: The service refused it, but for missing quota and machines.
        """
        now = self._cloud.clock.now()
        if self._is_stale(seen):
            return None
        holder = f"try {self._identity.try_number}, {uuid.uuid4().hex}"
        if seen.claim:
            claim = seen.claim.next(holder, now)
        else:
            claim = Claim(holder=holder, since=now, jobs=tuple(job.name for job in seen.mine))
        generation = self._write_claim(claim, seen.generation)
        if generation is None:
            LOGGER.info("another process of this task is about to create the job; the next poke looks for it")
            return None
        if self._is_stale(seen):
            return None
        try:
            job = self._jobs.create({**custom_job, "labels": {**custom_job.get("labels", {}), **self._identity.labels}})
        except Exception as error:  # of any class: only whether a job may come of it counts; else it is raised again
            if may_have_worked(error):
                return self._look_after(error, claim)
            pooled = "persistent_resource_id" in custom_job.get("job_spec", {})
            if self._settle_claim(error, claim, generation, pooled=pooled):
                return None
            raise
        LOGGER.info("%s is created", job.job_id)
        self._note_jobs(job)
        return job

    def _is_stale(self, seen: Seen) -> bool:
        """Say whether this process was held up since its look: others may have gone on, the run may have ended."""
        stale = self._cloud.clock.now() - seen.began > START_WITHIN
        if stale:
            LOGGER.warning("%s: the look is of too long ago to create a job by it; a later poke does", self._uri)
        return stale

    def _look_after(self, error: Exception, claim: Claim) -> Job | None:
        """Find the job of a create without an answer, if it is in the list already."""
        jobs = self._jobs.find_jobs({vertex.KEY_LABEL: self._identity.key}, self._types)
        new = [job for job in jobs if job.name not in claim.jobs]
        LOGGER.warning("no answer to the create (%s): %s", error, new or "later pokes look for the job")
        if new:
            self._note_jobs(*new)
        return sort_out(new).counts

    def _settle_claim(self, error: Exception, claim: Claim, generation: int, *, pooled: bool) -> bool:
        """Note that the service said no, so the next create need not wait; True: for want of quota or machines.

        A pool may have closed since it was looked at: the next job has machines of its own, and is refused by itself.
        """
        if pooled and is_refused(error):
            LOGGER.warning("the pool did not take the job (%s): the next one has machines of its own", error)
            self._write_claim(claim.refused(Failure.PREEMPTED), generation)
            return True
        if not is_exhausted(error):
            self._write_claim(claim.closed(), generation)
            return False
        failure = classify(FAILED, RESOURCE_EXHAUSTED, str(error))
        LOGGER.warning("the create was refused: %s (%s)", failure, error)
        self._write_claim(claim.refused(failure), generation)
        return True

    def _note_jobs(self, *seen: Job) -> tuple[Claim, int]:
        """Write into the claim which jobs there are, whoever changes it meanwhile; return what is stored then."""
        while True:
            claim, generation = self._read_claim()
            if claim is None:
                claim = Claim(holder="", since=self._cloud.clock.now(), open=False)
            noted = claim.with_jobs(job.name for job in seen)
            written = generation if noted == claim else self._write_claim(noted, generation)
            if written is not None:
                return noted, written

    def _write_claim(self, claim: Claim, generation: int) -> int | None:
        return self._cloud.artifacts.write_if(self._uri, claim.to_bytes(), generation)

    def _read_claim(self) -> tuple[Claim | None, int]:
        return read_claim(self._cloud, self._uri)


def read_claim(cloud: CloudPort, uri: str) -> tuple[Claim | None, int]:
    """Return a claim and its object's generation; one of a clock that is ahead is written anew, with this time."""
    while True:
        data, generation = cloud.artifacts.read_generation(uri)
        claim = Claim.parse(data, uri) if data else None
        if claim is None:
            return None, generation
        dated = claim.dated(cloud.clock.now())
        if dated == claim:
            return claim, generation
        LOGGER.warning("%s is of %s, which is to come: it counts from now on", uri, claim.since)
        if (written := cloud.artifacts.write_if(uri, dated.to_bytes(), generation)) is not None:
            return dated, written


def cancel_all(
    cloud: CloudPort, dag_run: str, types: Collection[JobType]
) -> tuple[list[str], bool, list[ContractError]]:
    """Cancel every job of a DAG run; return their names, whether no other can come, and which claims are unreadable.

    Jobs that no list shows yet are known by their claims. While a create has no answer its job may come: whoever began
    it may be gone, and nobody else would look for it.

    Args:
        cloud: The hooks.
        dag_run: Its label.
        types: Of jobs that the run may have.
    """
    began = cloud.clock.now()  # a job that comes after the list, and before another look at the clock, is expected yet
    claims: dict[str, Claim] = {}
    unreadable: list[ContractError] = []
    for uri in cloud.artifacts.list_uris(storage.claims_uri(cloud.settings.bucket, dag_run)):
        try:
            claim, _ = read_claim(cloud, uri)
        except ContractError as error:  # the jobs that a list shows are cancelled all the same
            unreadable.append(error)
            continue
        if claim is not None:
            claims[ObjectAddress.parse(uri).stem] = claim
    jobs = {job.name: job for job in cloud.jobs.find_jobs({vertex.DAG_RUN_LABEL: dag_run}, types)}
    for name in {name for claim in claims.values() for name in claim.jobs}.difference(jobs):
        if (job := cloud.jobs.find_by_name(name)) is not None:
            jobs[name] = job
    left = [job.name for job in jobs.values() if job.active]
    for name in left:
        LOGGER.warning("%s is cancelled: nobody waits for it", name)
        cloud.jobs.cancel(name)
    certain = True
    for key, claim in claims.items():
        seen = [job.name for job in jobs.values() if job.labels.get(vertex.KEY_LABEL) == key]
        if claim.with_jobs(seen).may_bring_a_job(began):
            LOGGER.info("a create of this run has no answer: its job is looked for until %s", claim.settled())
            certain = False
    return left, certain, unreadable
