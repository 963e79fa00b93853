"""Exactly one job per wish: who may create it and when, and which of several counts.

Vertex AI has no request id for a create, a create may be done after its caller gave up, and a list may lag. So each
create has a claim on storage before it: written by generation, completed with the job's name, and taken over when
nothing was heard of it for `SETTLED_AFTER`. What comes even later is a second job beside an older one: the oldest
stays, the others are cancelled at every wake. In: jobs and the claim. Out: what they mean; nothing here asks anybody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from retraining.core.jobs.failures import Failure, pause

START_WITHIN = timedelta(seconds=60)
"""From the claim to the create: whoever was held up for longer does not create any more."""

CREATE_TIMEOUT = timedelta(seconds=60)
"""Deadline of the create, which its server is told too."""

LAND_WITHIN = timedelta(seconds=180)
"""From there to a place in the list: a server that goes on after its caller's deadline, lists that lag, two clocks."""

SETTLED_AFTER = START_WITHIN + CREATE_TIMEOUT + LAND_WITHIN
"""From a claim to the time when no job of it can be expected any more, and another create may be tried."""


class JobLike(Protocol):
    """What has to be known of a job here."""

    @property
    def name(self) -> str:
        """Full name."""

    @property
    def state(self) -> str:
        """Of the service."""

    @property
    def created(self) -> datetime | None:
        """By the service's clock."""

    @property
    def ended(self) -> datetime | None:
        """By the service's clock."""

    @property
    def active(self) -> bool:
        """Whether it may still do something, and cost."""


_J = TypeVar("_J", bound=JobLike)


@dataclass(frozen=True, kw_only=True)
class Standing(Generic[_J]):
    """What the jobs of one key mean.

    Attributes:
        counts: The job to wait for, or whose result it is; None: there is none.
        surplus: Those that go on beside it: to be cancelled.
        spent: Those that failed, oldest first, without those that were cancelled as surplus.
    """

    counts: _J | None
    surplus: tuple[_J, ...]
    spent: tuple[_J, ...]


def sort_out(jobs: Iterable[_J]) -> Standing[_J]:
    """Which of the jobs of one key counts: one that succeeded, else the oldest that goes on.

    Whoever sees the oldest keeps it, so that two who see different parts of a lagging list never end it.
    """
    ordered = sorted(jobs, key=lambda job: (job.created is None, job.created, job.name))
    succeeded = [job for job in ordered if job.state == "JOB_STATE_SUCCEEDED"]
    going = [job for job in ordered if job.active and job.state != "JOB_STATE_CANCELLING"]
    ending = [job for job in ordered if job.state == "JOB_STATE_CANCELLING"]
    counts = next(iter([*succeeded, *going, *ending]), None)
    spent = [
        job
        for number, job in enumerate(ordered)
        if not job.active and job not in succeeded and not _was_surplus(job, ordered[:number])
    ]
    return Standing(counts=counts, surplus=tuple(job for job in going if job is not counts), spent=tuple(spent))


def _was_surplus(job: _J, older: Iterable[_J]) -> bool:
    """Whether a job was cancelled that had been made beside an older one."""
    return job.state == "JOB_STATE_CANCELLED" and any(
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
        """As it is stored."""
        values = {"holder": self.holder, "since": self.since.isoformat(), "open": self.open}
        return json.dumps({**values, "jobs": self.jobs, "failures": self.failures}).encode()

    @classmethod
    def parse(cls, data: bytes) -> Claim:
        """Read what `to_bytes` gave."""
        values = json.loads(data)
        return cls(
            holder=values["holder"],
            since=datetime.fromisoformat(values["since"]),
            open=values["open"],
            jobs=tuple(values["jobs"]),
            failures=tuple(map(Failure, values["failures"])),
        )

    def with_jobs(self, seen: Iterable[str]) -> Claim:
        """With the names of jobs that were seen: a new one is what became of the create."""
        new = tuple(name for name in seen if name not in self.jobs)
        return replace(self, jobs=self.jobs + new, open=self.open and not new)

    def refused(self, failure: Failure) -> Claim:
        """When the create made no job, and why."""
        return replace(self, open=False, failures=(*self.failures, failure))

    def closed(self) -> Claim:
        """When the create made no job, and another one at once is in order."""
        return replace(self, open=False)

    def failures_by(self, now: datetime) -> tuple[Failure, ...]:
        """Failures of creates until a time; one of which nothing was heard for long enough is the service's."""
        lost = self.open and now >= self.since + SETTLED_AFTER
        return (*self.failures, Failure.INTERNAL) if lost else self.failures

    def next(self, holder: str, now: datetime) -> Claim:
        """Somebody's claim after this one."""
        return replace(self, holder=holder, since=now, open=True, failures=self.failures_by(now))


def not_before(claim: Claim | None, last_end: datetime | None, failures: Sequence[Failure]) -> datetime | None:
    """When the next job may be created; None: at once.

    Args:
        claim: On it, if there is one.
        last_end: Of the jobs that failed.
        failures: Theirs, then those of creates.
    """
    if claim and claim.open:
        return claim.since + SETTLED_AFTER
    ends = [end for end in (last_end, claim.since if claim and claim.failures else None) if end]
    wait = pause(failures)
    return max(ends) + wait if ends and wait else None
