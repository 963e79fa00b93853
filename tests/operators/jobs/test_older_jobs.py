"""A task is cleared while its older job goes on: whatever that job leaves, and whenever, nothing is paid twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from retraining.core.jobs.job import CANCELLING, JobIdentity
from retraining.core.jobs.requests import JobRequest
from retraining.operators.jobs.reconcile import Reconciler
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.jobs import FakeJobs
from tests.support.scenes.job import ASKED, REQUEST, REQUEST_URI, RESULT, RESULT_URI, SPOT_JOB, STORED_URI

WAKES = 12
MOST_CALLS = 40  # of five wakes that wait


def job_request(*, adopted: bool) -> JobRequest:
    """A training, whose result the task takes over or that lies where the job left it."""
    return JobRequest(
        request=REQUEST,
        request_uri=REQUEST_URI,
        result_uri=RESULT_URI,
        adopted_uri=STORED_URI if adopted else "",
        result_kind="report",
        custom_job=SPOT_JOB,
    )


class SlowToEnd(FakeJobs):
    """Of which a job that is cancelled goes on for some time, and may succeed yet."""

    def cancel(self, name: str) -> None:
        """As the hook; the job begins to end."""
        self.cancelled.append(name)
        self.jobs[name] = replace(self.jobs[name], state=CANCELLING)


class World(FakeCloud):
    """A cloud that tells of each call, and where the older job may end before any of them."""

    def __init__(self, *, adopted: bool, slow: bool) -> None:
        super().__init__()
        if slow:
            self.jobs = SlowToEnd()
        assert ASKED["report_uri"] == RESULT_URI
        self.request = job_request(adopted=adopted)
        self.calls = 0
        self.before: Callable[[int], None] = lambda _: None

    def wake(self, generation: int) -> Any:
        """One wake of the task."""
        identity = JobIdentity(
            key=f"key-{generation}", owner="o", dag_run="run", generation=generation, retries=2, try_number=1
        )
        return Reconciler(Reported(self), self.request, identity, lambda _: None).poll_job()

    def announce(self) -> None:
        """Before a call."""
        self.before(self.calls)
        self.calls += 1


class Reported:
    """The hooks of a wake, each call of which is announced."""

    def __init__(self, world: World) -> None:
        self.settings, self.clock, self.logs = world.settings, world.clock, world.logs
        for name in ("artifacts", "jobs", "objects"):
            setattr(self, name, _Announced(getattr(world, name), world))


class _Announced:
    def __init__(self, hook: Any, world: World) -> None:
        self._hook, self._world = hook, world

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._hook, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._world.announce()
            return found(*args, **kwargs)

        return call


def ended_in_between(*, adopted: bool, slow: bool) -> Iterator[tuple[int, World]]:
    """The worlds in which the older job succeeds before a call of the newer generation's wakes; each but the last."""
    for at in itertools.count():
        world = World(adopted=adopted, slow=slow)
        world.wake(0)
        older = world.jobs.newest

        def end(call: int, at: int = at, world: World = world, older: str = older) -> None:
            if call == at and world.jobs.jobs[older].active:
                world.artifacts.objects[RESULT_URI] = RESULT
                world.jobs.end(older, seconds=60)

        world.calls, world.before = 0, end
        yield at, world
        if world.calls <= at or (slow and at > MOST_CALLS):
            return


@pytest.mark.parametrize("slow", [False, True], ids=["at_once", "later"])
@pytest.mark.parametrize("adopted", [True, False], ids=["adopted", "in_place"])
def test_a_job_that_succeeds_while_its_task_is_cleared_is_the_only_one(adopted: bool, slow: bool) -> None:
    """Before every call of the next generation's wakes: what it left is taken, and no other job is paid for."""
    places = 0
    for at, world in ended_in_between(adopted=adopted, slow=slow):
        for _ in range(WAKES + 2 * slow):
            result = world.wake(1)
            if result or world.jobs.jobs[world.jobs.newest].labels["retraining-key"] == "key-1":
                break
        older = next(iter(world.jobs.jobs.values()))
        if older.succeeded:
            places += 1
            assert result, f"before call {at}"
            assert result["job"] == older.name
            assert len(world.jobs.jobs) == 1, f"before call {at}: paid twice"
        else:
            assert set(world.jobs.cancelled) == {older.name}
            assert not slow or len(world.jobs.jobs) == 1, "another job waits until the older one has ended"
    assert places > 3
