"""Exactly one job per wish: who may create it and when, and which of several counts.

Vertex AI has no request id for a create, a create may be done after its caller gave up, and a list may lag. So each
create has a claim on storage before it: written by generation, completed with the job's name, and taken over when
nothing was heard of it for `SETTLED_AFTER`. What comes even later is a second job beside an older one: the oldest
stays, the others are cancelled at every poke. In: jobs and the claim. Out: what they mean; nothing here asks anybody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError
from retraining.core.jobs.failures import Failure, pause
from retraining.core.jobs.job import CANCELLED, CANCELLING, Job, JobIdentity
from retraining.core.naming.vertex import GENERATION_LABEL, KEY_LABEL

START_WITHIN = timedelta(seconds=60)
"""From the look at what is there, over the claim, to the create: whoever was held up for longer creates nothing."""

CREATE_TIMEOUT = timedelta(seconds=60)
"""Deadline of the create, which its server is told too."""

LAND_WITHIN = timedelta(seconds=180)
"""From there to a place in the list: a server that goes on after its caller's deadline, lists that lag, two clocks."""

WAY_OUT = "Look for jobs of this run in Vertex AI, end those that nobody waits for, delete this object, clear the task"

CLOCKS_APART = timedelta(seconds=60)
"""How far a claim may lie ahead of the clock that reads it. One further ahead is of a clock that is wrong: it counts as
made now, so that it holds nothing for longer than any other."""

SETTLED_AFTER = START_WITHIN + CREATE_TIMEOUT + LAND_WITHIN
"""From a claim to the time when no job of it can be expected any more, and another create may be tried."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the jobs of one key mean.

    Attributes:
        counts: The job to wait for, or whose result it is; None: there is none.
        surplus: Those that go on beside it: to be cancelled.
        spent: Those that failed, oldest first, without those that were cancelled as surplus.
    """

    counts: Job | None
    surplus: tuple[Job, ...]
    spent: tuple[Job, ...]


def sort_out(jobs: Iterable[Job]) -> Standing:
    """Return which of the jobs of one key counts: one that succeeded, else the oldest that goes on.

    Whoever sees the oldest keeps it, so that two who see different parts of a lagging list never end it.
    """
    ordered = sorted(jobs, key=lambda job: (job.created is None, job.created, job.name))
    succeeded = [job for job in ordered if job.succeeded]
    going = [job for job in ordered if job.active and job.state != CANCELLING]
    ending = [job for job in ordered if job.state == CANCELLING]
    counts = next(iter([*succeeded, *going, *ending]), None)
    spent = [
        job
        for number, job in enumerate(ordered)
        if not job.active and job not in succeeded and not _was_surplus(job, ordered[:number])
    ]
    return Standing(counts=counts, surplus=tuple(job for job in going if job is not counts), spent=tuple(spent))


@dataclass(frozen=True, kw_only=True)
class Generations:
    """Which jobs of a task instance are of another generation than this one's.

    Attributes:
        older: Those that go on and that nobody waits for any more: to be cancelled.
        newer: Those that go on for somebody who has cleared the task since: to be left alone.
    """

    older: tuple[Job, ...]
    newer: tuple[Job, ...]


def other_generations(jobs: Iterable[Job], identity: JobIdentity, spared: Job | None) -> Generations:
    """Tell the jobs of other generations apart.

    Args:
        jobs: All of the task instance.
        identity: Of this generation.
        spared: Is of no matter, whatever it is: it left the result.
    """
    going = [job for job in jobs if job.active and job.state != CANCELLING and not (spared and job.name == spared.name)]
    newer = [job for job in going if int(job.labels.get(GENERATION_LABEL, 0)) > identity.generation]
    older = [job for job in going if job not in newer and job.labels.get(KEY_LABEL) != identity.key]
    return Generations(older=tuple(older), newer=tuple(newer))


def _was_surplus(job: Job, older: Iterable[Job]) -> bool:
    """Return whether a job was cancelled that had been made beside an older one."""
    return job.state == CANCELLED and any(
        other.active or (other.ended and job.created and other.ended > job.created) for other in older
    )


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to create the next job of a key.

    Attributes:
        holder: Who has it; no two are alike.
        since: Since when.
        open: Whether it is not known what became of the create.
        jobs: Names of all jobs of the key that anybody saw.
        failures: Of creates that made no job.
    """

    holder: str
    since: datetime
    open: bool = True
    jobs: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the claim as it is stored."""
        values = {"holder": self.holder, "since": self.since.isoformat(), "open": self.open}
        return json.dumps({**values, "jobs": self.jobs, "failures": self.failures}).encode()

    @classmethod
    def parse(cls, data: bytes, where: str) -> Claim:
        """Read what `to_bytes` gave.

        Args:
            data: The bytes.
            where: Their address.

        Raises:
            ContractError: They are no claim.
        """
        values = read_object(data, where, WAY_OUT)
        try:
            since = datetime.fromisoformat(values["since"]).astimezone(UTC)
            holder, jobs, is_open = values["holder"], values["jobs"], values["open"]
            failures = tuple(map(Failure, values["failures"]))
            if not (isinstance(holder, str) and isinstance(is_open, bool) and isinstance(jobs, list)):
                raise TypeError("holder, open or jobs")
            if not all(isinstance(name, str) for name in jobs):
                raise TypeError("jobs")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            found = f"no claim ({type(error).__name__}: {error})"
            raise ContractError(where, found, "holder, since, open, jobs and failures", WAY_OUT) from error
        return cls(holder=holder, since=since, open=is_open, jobs=tuple(jobs), failures=failures)

    def with_jobs(self, seen: Iterable[str]) -> Claim:
        """Add the names of jobs that were seen: a new one is what became of the create."""
        new = tuple(name for name in seen if name not in self.jobs)
        return replace(self, jobs=self.jobs + new, open=self.open and not new)

    def refused(self, failure: Failure) -> Claim:
        """Return the claim after a create that made no job, and why."""
        return replace(self, open=False, failures=(*self.failures, failure))

    def closed(self) -> Claim:
        """Return the claim after a create that made no job; another one at once is in order."""
        return replace(self, open=False)

    def dated(self, now: datetime) -> Claim:
        """Return the claim as made now, if it is of a time that is further ahead than two clocks may be apart."""
        return replace(self, since=now) if self.since > now + CLOCKS_APART else self

    def settled(self) -> datetime:
        """Return the time from which no job of this claim can be expected any more."""
        return self.since + SETTLED_AFTER

    def forbids_another(self, now: datetime, *, began: bool) -> bool:
        """Return whether nobody else may begin yet.

        Args:
            now: The time.
            began: Whether what the claim was for is known to have begun, though a list may not have it yet.
        """
        return (self.open or began) and now < self.settled()

    def may_bring_a_job(self, now: datetime) -> bool:
        """Return whether a create without an answer may still become a job."""
        return self.open and now < self.settled()

    def failures_by(self, now: datetime) -> tuple[Failure, ...]:
        """Return the failures of creates until a time.

        One of which nothing was heard for long enough is the service's.
        """
        lost = self.open and not self.may_bring_a_job(now)
        return (*self.failures, Failure.INTERNAL) if lost else self.failures

    def next(self, holder: str, now: datetime) -> Claim:
        """Return somebody's claim after this one."""
        return replace(self, holder=holder, since=now, open=True, failures=self.failures_by(now))


def not_before(claim: Claim | None, last_end: datetime | None, failures: Sequence[Failure]) -> datetime | None:
    """Return when the next job may be created; None: at once.

    Args:
        claim: On it, if there is one.
        last_end: Of the jobs that failed.
        failures: Theirs, then those of creates.
    """
    if claim and claim.open:
        return claim.settled()
    ends = [end for end in (last_end, claim.since if claim and claim.failures else None) if end]
    wait = pause(failures)
    return max(ends) + wait if ends and wait else None
