"""The protocol of claims as a small model: every order of its steps, every crash, every delay is walked.

A state is what stands in the bucket (the claim), what Vertex AI has (jobs that are on their way, listed or not yet),
and where each of two processes of one task is. What a process concludes from what it saw is asked of the real functions
(`Claim`, `sort_out`, `not_before`); a process's steps are those of `ClaimedJobs` and `Reconciler`, one call to the
cloud each. Time goes in steps of a minute, which the protocol's limits are multiples of; ages that no limit tells apart
are one, so the states are finite although the time is not: what is found holds for runs of any length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

from retraining.core.jobs.claims import (
    CREATE_TIMEOUT,
    LAND_WITHIN,
    SETTLED_AFTER,
    START_WITHIN,
    Claim,
    Standing,
    not_before,
    sort_out,
)
from retraining.core.jobs.failures import Failure
from retraining.core.jobs.job import CANCELLED, CANCELLING, FAILED, SUCCEEDED, Job

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SETTLED = SETTLED_AFTER // MINUTE
START = START_WITHIN // MINUTE
ARRIVES = (CREATE_TIMEOUT + LAND_WITHIN) // MINUTE
"""Minutes from a create to the job's place in the list, at most, as the protocol takes it."""
CUSTOM_JOBS = "projects/1/locations/l/customJobs"
ABROAD, RUNNING, WRITTEN = "ABROAD", "JOB_STATE_RUNNING", "JOB_STATE_RUNNING with its result"
"""Not there yet; works; works, and has stored its result."""
PAID = (RUNNING, WRITTEN, CANCELLING)
DONE, STOPPED, CLOSED, IDLE = "done", "stopped", "closed", "idle"
MAX_FAILURES = 2
"""After so many a process gives up."""
LAST = 99
"""A time after all others; `normal` counts anew."""
AGES = dict.fromkeys(("list", "note", "teardown"), SETTLED + 1) | dict.fromkeys(("result", "claim", "check"), START + 1)
"""Where it matters how long ago a process began its look, and from when on no longer."""


@dataclass(frozen=True)
class Doubt:
    """What may go wrong, and how late.

    Attributes:
        lands: Minutes that a create without an answer may take to become a job that is listed.
        seen: Minutes from a job's creation to its place in the list.
        ahead: By how many minutes each process's clock is ahead of the true time.
        fails: Whether the first job may fail.
        garbles: Whether the claim may become unreadable.
        stalls_once: Whether, once, a process may be held up between its last look at the clock and the create. This,
            and the next, is beyond what claims are made for, and then there is no other fault.
        late_once: By how many minutes, once, a list may lag; 0: never.
    """

    lands: tuple[int, ...] = (ARRIVES,)
    seen: tuple[int, ...] = (0, ARRIVES)
    ahead: tuple[int, int] = (0, 0)
    fails: bool = False
    garbles: bool = False
    stalls_once: bool = False
    late_once: int = 0


class OneJob(NamedTuple):
    """A job. `lands` and `seen` count down; `rank` and `end` are the places of its creation and its end in time."""

    name: str
    state: str
    lands: int
    seen: int
    rank: int = 0
    end: int = 0


class Mark(NamedTuple):
    """The claim: its time is `age` minutes before now."""

    age: int
    open: bool
    jobs: tuple[str, ...] = ()
    failures: int = 0


class Process(NamedTuple):
    """Where a process is, and what of its memory still matters.

    `fresh`: nobody has written the claim since it read or wrote it. `jobs`: that it saw. `age`: minutes since its look
    began. `known`: names of jobs in the claim that it read. `may`: it concluded that it may
    create a job.
    """

    at: str = IDLE
    fresh: bool = False
    jobs: tuple[OneJob, ...] = ()
    age: int = 0
    known: tuple[str, ...] = ()
    may: bool = False


class State(NamedTuple):
    """Everything. `readable`: the claim is. `stored`: a job's result is. `beyond`: what happens once has happened."""

    claim: Mark | None = None
    jobs: tuple[OneJob, ...] = ()
    processes: tuple[Process, Process] = (Process(), Process())
    readable: bool = True
    stored: bool = False
    beyond: bool = False


BEGIN = State()


class Step(NamedTuple):
    """What happens, what is then, and whether it is a fault."""

    what: str
    state: State
    fault: bool = False


@cache
def claim_of(mark: Mark) -> Claim:
    """Return the real claim."""
    failures = (Failure.INTERNAL,) * mark.failures
    return Claim(holder="", since=NOW - mark.age * MINUTE, open=mark.open, jobs=mark.jobs, failures=failures)


def mark_of(claim: Claim) -> Mark:
    """Return a claim as the model has it."""
    return Mark((NOW - claim.since) // MINUTE, claim.open, claim.jobs, len(claim.failures))


@cache
def standing_of(jobs: tuple[OneJob, ...]) -> Standing:
    """Return what the jobs that a process saw mean."""
    day = NOW - timedelta(days=1)
    return sort_out(
        Job(
            name=job.name,
            state=job.state.split()[0],
            labels={},
            created=day + job.rank * MINUTE,
            ended=day + job.end * MINUTE if job.end else None,
        )
        for job in jobs
    )


class Model:
    """All states that can be reached, and how.

    Args:
        doubt: What may go wrong.
    """

    def __init__(self, doubt: Doubt) -> None:
        self._doubt = doubt
        self._calm = doubt.stalls_once or doubt.late_once > 0
        self._oldest = SETTLED + 1 + 2 * max(map(abs, doubt.ahead))
        self.steps: dict[State, tuple[Step, ...]] = {}
        self._came: dict[State, tuple[State, str]] = {}

    def search(self, stop: Callable[[State], bool] = lambda _: False, begin: State = BEGIN) -> Model:
        """Walk everything, or up to a state of which something holds."""
        waiting = deque([begin])
        self.steps[begin] = ()
        while waiting:
            state = waiting.popleft()
            steps = tuple(
                step._replace(state=self._normal(step.state))
                for step in self._steps(state)
                if not (step.fault and self._calm and step.state.beyond == state.beyond)
            )
            self.steps[state] = steps
            for step in steps:
                if step.state not in self.steps:
                    self.steps[step.state] = ()
                    self._came[step.state] = (state, step.what)
                    if stop(step.state):
                        return self
                    waiting.append(step.state)
        return self

    def story(self, state: State) -> str:
        """Return how a state is reached; processes have no names, for they are alike."""
        told: list[str] = []
        while state in self._came:
            state, what = self._came[state]
            told.append(what)
        return ", ".join(reversed(told))

    def where(self, holds: Callable[[State], bool]) -> set[State]:
        """Return the states of which something holds."""
        return {state for state in self.steps if holds(state)}

    def never_reach(self, good: set[State]) -> set[State]:
        """Return the states from which none of the good ones is reached without a further fault."""
        before: dict[State, list[State]] = {}
        for state, steps in self.steps.items():
            for step in steps:
                if not step.fault:
                    before.setdefault(step.state, []).append(state)
        reach, waiting = set(good), deque(good)
        while waiting:
            for state in before.get(waiting.popleft(), ()):
                if state not in reach:
                    reach.add(state)
                    waiting.append(state)
        return set(self.steps) - reach

    def _steps(self, state: State) -> Iterator[Step]:
        yield Step("a minute passes", self._tick(state))
        for number, job in enumerate(state.jobs):
            for what, then, fault in self._lives(job, state):
                jobs = (*state.jobs[:number], then, *state.jobs[number + 1 :])
                stored = state.stored or then.state == WRITTEN
                yield Step(f"job {number + 1} {what}", state._replace(jobs=jobs, stored=stored), fault)
        if self._doubt.garbles and state.readable and state.claim:
            yield Step("the claim is garbled", state._replace(readable=False), fault=True)
        for number, process in enumerate(state.processes):
            if process.at not in (IDLE, DONE, CLOSED, STOPPED):
                yield Step(f"one is killed at {process.at}", put(state, number, Process()), fault=True)
            if process.at not in (CLOSED, STOPPED):
                yield from getattr(self, f"_at_{process.at}")(state, number, process)

    def _tick(self, state: State) -> State:
        jobs = []
        for job in state.jobs:
            if job.state == ABROAD and job.lands == 1:
                jobs.append(job._replace(state=RUNNING, lands=0, rank=LAST))
            elif job.state == ABROAD:
                jobs.append(job._replace(lands=job.lands - 1))
            else:
                jobs.append(job._replace(seen=max(job.seen - 1, 0)))
        first, second = (
            process._replace(age=min(process.age + 1, AGES[process.at])) if process.at in AGES else process
            for process in state.processes
        )
        claim = state.claim and state.claim._replace(age=min(state.claim.age + 1, self._oldest))
        return state._replace(claim=claim, jobs=tuple(jobs), processes=(first, second))

    def _lives(self, job: OneJob, state: State) -> Iterator[tuple[str, OneJob, bool]]:
        if job.state == RUNNING:
            yield "stores its result", job._replace(state=WRITTEN), False
            if self._doubt.fails and not any(other.state == FAILED for other in state.jobs):
                yield "fails", job._replace(state=FAILED, end=LAST), True
        if job.state == WRITTEN:
            yield "succeeds", job._replace(state=SUCCEEDED, end=LAST), False
        if job.state == CANCELLING:
            yield "is cancelled", job._replace(state=CANCELLED, end=LAST), False

    def _now(self, number: int) -> datetime:
        return NOW + self._doubt.ahead[number] * MINUTE

    def _at_idle(self, state: State, number: int, process: Process) -> Iterator[Step]:
        if not state.readable:
            yield Step("one cannot read the claim", put(state, number, Process(at=STOPPED)))
            return
        claim = state.claim and claim_of(state.claim).dated(self._now(number))
        if claim and mark_of(claim) != state.claim:
            state = self._write(state, mark_of(claim), number)
        known = state.claim.jobs if state.claim else ()
        yield Step("one reads the claim", put(state, number, Process(at="list", fresh=True, known=known)))

    def _at_list(self, state: State, number: int, process: Process) -> Iterator[Step]:
        jobs = tuple(
            job._replace(seen=0)
            for job in state.jobs
            if job.state != ABROAD and (not job.seen or job.name in process.known)
        )
        is_new = state.claim is not None and any(job.name not in process.known for job in jobs)
        if is_new:
            then = put(state, number, process._replace(at="note", jobs=jobs, known=()))
        else:
            then = self._concluded(state, number, process._replace(jobs=jobs))
        yield Step("one lists the jobs", then)

    def _at_note(self, state: State, number: int, process: Process) -> Iterator[Step]:
        if not process.fresh:
            yield Step("one finds the claim changed", put(state, number, Process()))
            return
        state = self._noted(state, number, [job.name for job in process.jobs])
        yield Step("one notes the jobs", self._concluded(state, number, process._replace(fresh=True)))

    def _concluded(self, state: State, number: int, process: Process) -> State:
        """What the look means; the clock was read when it began."""
        standing = standing_of(process.jobs)
        state = self._cancel(state, {job.name for job in standing.surplus})
        if standing.counts is not None:
            return put(state, number, Process(at=DONE if standing.counts.succeeded else IDLE))
        claim = claim_of(state.claim) if state.claim and process.fresh else None
        now = self._now(number) - process.age * MINUTE
        failures = [Failure.PREEMPTED for _ in standing.spent]
        failures += claim.failures_by(now) if claim else ()
        if len(failures) > MAX_FAILURES:
            return put(state, number, Process(at=STOPPED))
        begin = not_before(claim, None, failures)
        may = process.fresh and (begin is None or now >= begin)
        then = Process(at="result", fresh=True, may=True, age=process.age) if may else Process(at="result")
        return put(state, number, then)

    def _at_result(self, state: State, number: int, process: Process) -> Iterator[Step]:
        if state.stored:
            yield Step("one finds the result", put(state, number, Process(at=DONE)))
        else:
            then = process._replace(at="claim", may=False) if process.may else Process()
            yield Step("one finds no result", put(state, number, then))

    def _at_claim(self, state: State, number: int, process: Process) -> Iterator[Step]:
        if not process.fresh:
            yield Step("one finds the claim changed", put(state, number, Process()))
            return
        if process.age > START:
            yield Step("one was held up", put(state, number, Process()))
            return
        now = self._now(number)
        claim = claim_of(state.claim).next("", now) if state.claim else Claim(holder="", since=now)
        state = self._write(state, mark_of(claim), number)
        yield Step("one claims", put(state, number, process._replace(at="check")))

    def _at_check(self, state: State, number: int, process: Process) -> Iterator[Step]:
        if process.age > START:
            yield Step("one was held up", put(state, number, Process()))
        else:
            if self._doubt.stalls_once and not state.beyond:
                stalled = put(state, number, Process(at="create", fresh=process.fresh))
                yield Step("one is held up before its create", stalled._replace(beyond=True), fault=True)
            yield from self._at_create(state, number, process)

    def _at_create(self, state: State, number: int, process: Process) -> Iterator[Step]:
        name = f"{CUSTOM_JOBS}/{len(state.jobs) + 1}"
        without = Process(at="after")
        if self._doubt.late_once and not state.beyond:
            made = OneJob(name, RUNNING, 0, self._doubt.late_once, rank=LAST)
            there = state._replace(jobs=(*state.jobs, made), beyond=True)
            yield Step("a create has no answer, its job is listed late", put(there, number, without), True)
        for seen in self._doubt.seen:
            made = OneJob(name, RUNNING, 0, seen, rank=LAST)
            there = state._replace(jobs=(*state.jobs, made))
            then = Process(at="answered", jobs=(made,))
            yield Step(f"a job is created and listed {seen} minutes later", put(there, number, then), bool(seen))
            yield Step(f"a create has no answer, its job is listed {seen} later", put(there, number, without), True)
        for lands in self._doubt.lands:
            there = state._replace(jobs=(*state.jobs, OneJob(name, ABROAD, lands, 0)))
            yield Step(
                f"a create has no answer, its job comes {lands} minutes later", put(there, number, without), True
            )
        yield Step("a create has no answer, and no job comes", put(state, number, without), True)
        yield Step("a create is refused", put(state, number, Process(at="refused", fresh=process.fresh)), True)

    def _at_refused(self, state: State, number: int, process: Process) -> Iterator[Step]:
        if process.fresh and state.claim:
            state = self._write(state, mark_of(claim_of(state.claim).closed()), number)
        yield Step("one closes its claim", put(state, number, Process()))

    def _at_answered(self, state: State, number: int, process: Process) -> Iterator[Step]:
        noted = self._noted(state, number, [job.name for job in process.jobs])
        yield Step("one notes its job", put(noted, number, Process()))

    def _at_after(self, state: State, number: int, process: Process) -> Iterator[Step]:
        known = state.claim.jobs if state.claim else ()
        new = [job for job in state.jobs if job.state != ABROAD and not job.seen and job.name not in known]
        then = Process(at="answered", jobs=tuple(new)) if new else Process()
        yield Step("one looks for the job", put(state, number, then))

    def _at_done(self, state: State, number: int, process: Process) -> Iterator[Step]:
        """The teardown of the run: what goes on is cancelled, until nothing more can come."""
        if not state.readable:
            yield Step("one cannot read the claim", put(state, number, Process(at=STOPPED)))
        else:
            known = state.claim.jobs if state.claim else ()
            then = Process(at="teardown", fresh=True, known=known)
            yield Step("one reads the claim to end the run", put(state, number, then))

    def _at_teardown(self, state: State, number: int, process: Process) -> Iterator[Step]:
        there = [job for job in state.jobs if job.state != ABROAD and (not job.seen or job.name in process.known)]
        now = self._now(number) - process.age * MINUTE
        claim = claim_of(state.claim).with_jobs(job.name for job in there) if state.claim else None
        certain = process.fresh and not (claim and claim.may_bring_a_job(now))
        state = self._cancel(state, {job.name for job in there})
        yield Step("one ends what goes on", put(state, number, Process(at=CLOSED if certain else DONE)))

    def _noted(self, state: State, number: int, names: list[str]) -> State:
        claim = claim_of(state.claim) if state.claim else Claim(holder="", since=self._now(number), open=False)
        noted = claim.with_jobs(names)
        return state if state.claim and noted == claim else self._write(state, mark_of(noted), number)

    def _write(self, state: State, mark: Mark, number: int) -> State:
        other = state.processes[1 - number]
        state = put(state, 1 - number, other._replace(fresh=False))
        return state._replace(claim=mark._replace(age=min(mark.age, self._oldest)))

    def _normal(self, state: State) -> State:
        """Return one of the states that mean the same: processes with equal clocks are alike, times are an order."""
        times = sorted({time for job in state.jobs for time in (job.rank, job.end) if time})
        place = {time: number + 1 for number, time in enumerate(times)} | {0: 0}
        jobs = tuple(job._replace(rank=place[job.rank], end=place[job.end]) for job in state.jobs)
        first, second = state.processes
        swapped = self._doubt.ahead[0] == self._doubt.ahead[1] and second < first
        return state._replace(jobs=jobs, processes=(second, first) if swapped else (first, second))

    @staticmethod
    def _cancel(state: State, names: set[str]) -> State:
        jobs = (
            job._replace(state=CANCELLING) if job.name in names and job.state in (RUNNING, WRITTEN) else job
            for job in state.jobs
        )
        return state._replace(jobs=tuple(jobs))


def put(state: State, number: int, process: Process) -> State:
    """Return the state with a process changed."""
    first, second = state.processes
    return state._replace(processes=(process, second) if number == 0 else (first, process))


def paid(state: State) -> list[OneJob]:
    """Return the jobs that cost something now."""
    return [job for job in state.jobs if job.state in PAID]


def is_double(state: State) -> bool:
    """Say whether two jobs go on, or one goes on beside one that succeeded."""
    return len(paid(state)) + any(job.state == SUCCEEDED for job in state.jobs) > 1


def is_left(state: State) -> bool:
    """Say whether the run has ended, and a job goes on or may come that nobody will look for."""
    over = all(process.at == CLOSED for process in state.processes)
    return over and any(job.state in (ABROAD, RUNNING, WRITTEN) for job in state.jobs)


def is_over(state: State) -> bool:
    """Say whether somebody has the result, or has given up by name."""
    return any(process.at in (DONE, CLOSED, STOPPED) for process in state.processes)
