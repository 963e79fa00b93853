"""Tasks of a DAG run on the cloud in memory: something happens once, at one of their calls; what is otherwise then."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

import pytest
from google.api_core.exceptions import ServiceUnavailable

from retraining.core.documents import KINDS
from retraining.core.errors import RetrainingError
from retraining.core.naming import vertex
from retraining.hooks.limits import CALL_S, OutOfTimeError
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.dying import Death, DyingCloud

CREATES = {False: {"create", "start_upload", "import_evaluation"}, True: {"find_evaluation"}}
"""Calls before and after which a worker has looked for the last time, and not created yet."""
MOST_WAKES = 60
LOOKS = (
    "read", "list", "get", "find", "exist", "versions", "running", "bucket", "dataset", "dry", "table", "imported",
    "operation", "predict",
)  # fmt: skip
"""How calls begin that change nothing."""
OF_WAKES = ("/wakes/", "/failures/", "/chained/")
"""Folders of what tasks note of their wakes, tries and jobs."""
PASSING = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"  # when
    rb'|"writer": "[0-9a-f]{32}"|"starts": \d+'  # which process, after how many others
    rb'|"smoke_requests": \[[^]]*\]|"asked": \d+'  # how many requests a split endpoint took until it was proven
    rb"| in [0-9.]+ (s|min|h|hours)\b"  # how long the run took, once that is known
)


def is_document(uri: str) -> bool:
    """Whether it says what was done, and not how long that took: no claim, timing or page."""
    kind = uri.rpartition("/")[2].removesuffix(".json")
    return kind in KINDS and kind not in ("timings", "model_overview", "overview")


class Play:
    """Tasks of a run, which are played one after the other, each to its end.

    Attributes:
        cloud: What they ask.
        run: The DAG run.
        tasks: In order, each made with what connects it.
    """

    cloud: FakeCloud
    run: Any
    tasks: ClassVar[dict[str, Callable[[Any], Any]]]

    def play(self, first: str = "") -> None:
        """Run each task from a first one on to its end."""
        order = list(self.tasks)
        for name in order[order.index(first or order[0]) :]:
            self.end(self.tasks[name](self.cloud.connect))

    def play_struck(self, task: str, at: int = 0, fault: Fault | None = None) -> list[str]:
        """Run one task to its end; return the calls of all its processes, at one of which something happens."""
        happens = fault.of(self, self.tasks[task]) if fault else None
        cloud = DyingCloud(self.cloud, at, after=fault.after if fault else False, instead=happens)
        self.end(self.tasks[task](cloud.connect))
        return cloud.calls

    def end(self, task: Any) -> None:
        """Wake a task every minute until it ends; a try that fails is followed by the next one."""
        try_number = 1
        for _ in range(MOST_WAKES):
            self.cloud.clock.sleep(60)
            try:
                self.wake(task, try_number)
            except AirflowRescheduleException:
                continue
            except AirflowFailException:
                raise  # for good: nothing that happens here may do that
            except (Death, ServiceUnavailable, OutOfTimeError, RetrainingError):
                try_number += 1
            else:
                return
        raise AssertionError(f"{task.task_id} did not end: {sorted(self.cloud.artifacts.objects)}")

    def wake(self, task: Any, try_number: int) -> None:
        """Run one process of a task."""
        self.run.execute(task, try_number=try_number, max_tries=3)

    @property
    def bill(self) -> dict[str, Any]:
        """What somebody pays for, each by how often, and who answers in the end."""
        cloud = self.cloud
        return {
            "jobs": Counter(job.labels[vertex.TASK_LABEL] for job in cloud.jobs.jobs.values()),
            "left": [job.name for job in cloud.jobs.jobs.values() if job.active],
            "queries": {asked for asked in cloud.warehouse.asked if not asked.startswith("dry ")},
            "uploads": len(cloud.registry.uploads),
            "evaluations": len(cloud.registry.evaluations),
            "deployed": len(cloud.endpoints.deploys) - len(cloud.endpoints.undeployed),
            "traffic": {name: each.traffic for name, each in cloud.endpoints.by_name.items()},
            "aliases": {key: sorted(each.aliases) for key, each in cloud.registry.versions.items()},
        }

    @property
    def stored(self) -> dict[str, bytes]:
        """All objects, of documents what they say; without what tasks note of their own wakes and tries."""
        objects = self.cloud.artifacts.objects.items()
        kept = {uri: data for uri, data in objects if not any(part in uri for part in OF_WAKES)}
        return {uri: PASSING.sub(b"", data) if is_document(uri) else b"" for uri, data in kept.items()}


Happening = Callable[[], None] | None


@dataclasses.dataclass(frozen=True)
class Fault:
    """What happens, before a call or after it. `of` gives it for a night and the task that is struck."""

    name: str
    after: bool
    of: Callable[[Play, Any], Happening]


def dies(play: Play, make: Any) -> Happening:
    """SIGKILL."""
    del play, make
    return None


def no_answer(play: Play, make: Any) -> Happening:
    """The service answers 503."""
    del play, make

    def happen() -> None:
        raise ServiceUnavailable("no answer")

    return happen


def silent(play: Play, make: Any) -> Happening:
    """The service says nothing until the call's time limit has passed."""
    del make

    def happen() -> None:
        play.cloud.clock.sleep(CALL_S)
        raise OutOfTimeError(f"no whole answer within {CALL_S:g} seconds")

    return happen


def stands_still(play: Play, make: Any) -> Happening:
    """The process is stopped for six hours, and goes on."""
    del make
    return lambda: play.cloud.clock.sleep(6 * 3600)


def second_worker(play: Play, make: Any) -> Happening:
    """Another worker runs the same task from its beginning to its end meanwhile."""
    return lambda: play.end(make(play.cloud.connect))


class OtherClock:
    """A clock that goes as another one, some hours ahead of it or behind."""

    def __init__(self, clock: Any, hours: int) -> None:
        self._clock, self._hours = clock, hours

    def __getattr__(self, name: str) -> Any:
        """All else is the other's."""
        return getattr(self._clock, name)

    def now(self) -> datetime:
        """What it shows."""
        return self._clock.now() + timedelta(hours=self._hours)


def with_other_clock(hours: int) -> Callable[[Play, Any], Happening]:
    """Another worker does so, whose clock is hours ahead of the first one's, or behind it."""

    def other_worker(play: Play, make: Any) -> Happening:
        cloud = copy.copy(play.cloud)
        clock: Any = OtherClock(play.cloud.clock, hours)
        cloud.clock = clock
        return lambda: play.end(make(cloud.connect))

    return other_worker


FAULTS = [
    Fault("the worker dies before the call", False, dies),
    Fault("the worker dies after it, the answer is lost", True, dies),
    Fault("503, and nothing is done", False, no_answer),
    Fault("503, and it is done", True, no_answer),
    Fault("no answer until the time limit, and nothing is done", False, silent),
    Fault("no answer until the time limit, and it is done", True, silent),
    Fault("stopped for six hours before the call", False, stands_still),
    Fault("another worker runs the whole task before the call", False, second_worker),
    Fault("another worker runs the whole task after the call", True, second_worker),
    Fault("another worker, six hours ahead, does so before it", False, with_other_clock(6)),
    Fault("another worker, six hours behind, does so before it", False, with_other_clock(-6)),
]
COMES_BETWEEN = "another worker"


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    """Tasks to which nothing happens.

    Attributes:
        end: As it all is then.
        before: Makes it as it is before each task.
        calls: Those of each task.
    """

    end: Play
    before: dict[str, Callable[[], Play]]
    calls: dict[str, list[str]]

    def strike(self, task: str, at: int, fault: Fault) -> Play:
        """Play it once more, with something happening at one of a task's calls, counted from 1."""
        play = self.before[task]()
        play.play_struck(task, at, fault)
        rest = list(play.tasks)[list(play.tasks).index(task) + 1 :]
        if rest:
            play.play(rest[0])
        return play


def undisturbed(play: Play) -> Undisturbed:
    """Play it, with copies to which something else may happen."""
    before: dict[str, Callable[[], Play]] = {}
    calls = {}
    for task in play.tasks:
        before[task] = partial(copy.deepcopy, copy.deepcopy(play))
        calls[task] = play.play_struck(task)
    return Undisturbed(play, before, calls)


def made_anew(make: Callable[[], Play]) -> Undisturbed:
    """The same of what cannot be copied, as its cloud's effects are of the first one: each is made and played anew."""

    def until(task: str) -> Play:
        play = make()
        for earlier in itertools.takewhile(lambda name: name != task, play.tasks):
            play.play_struck(earlier)
        return play

    whole = make()
    calls = {task: whole.play_struck(task) for task in whole.tasks}
    return Undisturbed(whole, {task: partial(until, task) for task in whole.tasks}, calls)


def wrong(play: Play, whole: Play) -> dict[str, Any]:
    """What is otherwise than where nothing happened, by the columns of the table."""
    jobs, expected = play.bill["jobs"], whole.bill["jobs"]
    stored, same = play.stored, whole.stored
    served = ("traffic", "aliases")
    once = sorted(whole.bill.keys() - {"jobs", "left", *served})
    return {
        "paid twice": [*(jobs - expected), *(name for name in once if play.bill[name] != whole.bill[name])],
        "lost": [*(expected - jobs), *(same.keys() - stored.keys())],
        "left": [*play.bill["left"], *(stored.keys() - same.keys())],
        "served otherwise": [name for name in served if play.bill[name] != whole.bill[name]],
        "said otherwise": [uri for uri in stored.keys() & same.keys() if stored[uri] != same[uri]],
    }


def is_promised(fault: Fault, call: str, found: dict[str, Any]) -> bool:
    """Whether nothing is wrong, or only what no client can know: who comes between a look and the create after it."""
    wrongs = {name for name, each in found.items() if each}
    return not wrongs or (
        fault.name.startswith(COMES_BETWEEN) and call in CREATES[fault.after] and wrongs == {"paid twice"}
    )


def print_table(plays: Mapping[str, Undisturbed], capsys: pytest.CaptureFixture[str]) -> None:
    """Let everything happen at every call of every task, and print what is wrong then, a row for each fault.

    Args:
        plays: What is played, by its name.
        capsys: Pytest's fixture, past which the table is printed; what the tasks log is not.

    Raises:
        AssertionError: Something else is wrong than what no client can know.
    """
    broken: list[tuple[Any, ...]] = []
    columns = list(wrong(*[next(iter(plays.values())).end] * 2))
    with capsys.disabled():
        print(f"\n| what happens, at every call of every task | played | {' | '.join(columns)} |")
        print(f"|---|{'---|' * (len(columns) + 1)}")
    for fault in FAULTS:
        of_fault = []
        for name, whole in plays.items():
            for task, calls in whole.calls.items():
                for at, call in enumerate(calls, start=1):
                    found = wrong(whole.strike(task, at, fault), whole.end)
                    of_fault.append(found)
                    if not is_promised(fault, call, found):
                        broken.append((fault.name, name, task, at, call, found))
        counts = [sum(bool(each[name]) for each in of_fault) for name in columns]
        with capsys.disabled():
            print(f"| {fault.name} | {len(of_fault):,} | {' | '.join(map(str, counts))} |", flush=True)
    assert broken == []
