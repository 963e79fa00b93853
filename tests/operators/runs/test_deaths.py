"""Something happens at every single call of every task of a night: what is stored, served and paid is as if it had not.

`make test-faults` looks at every call and prints the table of docs/reliability.md; `make test` at some of them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from retraining.core.documents import KINDS
from retraining.core.errors import RetrainingError
from retraining.core.naming import vertex
from retraining.core.settings import include_path
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.report.page import ReportOperator
from retraining.operators.tuning.study import TuneOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.chained_run import stages_of
from tests.support.scenes.planned_run import FORM
from tests.support.scenes.recorded_run import TASKS, RecordedRun

NIGHT: dict[str, Any] = {
    **{name: TASKS[name] for name in ("plan", "snapshot", "check_data", "export")},
    "tune": lambda cloud: TuneOperator(task_id="tune", cloud=cloud),
    **{name: TASKS[name] for name in ("train", "evaluate", "decide", "register", "deploy")},
    "cancel_jobs": lambda cloud: CancelJobsOperator(task_id="cancel_jobs", cloud=cloud),
    "report": lambda cloud: ReportOperator(task_id="report", cloud=cloud),
}
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


class Night(RecordedRun):
    """A night in which something happens once.

    Args:
        make_run: Makes DAG runs.
        before: The night whose version is champion; None: there was none.
        include: Where the model's file is; None: where it is.
    """

    def __init__(self, make_run: Any, before: Night | None = None, include: Path | None = None) -> None:
        self.include = include
        cloud = FakeCloud() if before is None else before.cloud
        earlier = set(cloud.artifacts.objects)
        day = "2013-11-20" if before is None else "2013-11-21"
        self.run = make_run(run_id=f"manual__{day}", params={**FORM, "as_of": f"{day}T03:00:00Z"})
        with self.models():
            super().__init__(cloud, self.run)
        if include:
            cloud.jobs.after_create = self._go_on
            cloud.artifacts.around = self._after_a_change  # bound to this night, as its copies' are to theirs
        report = json.loads((EXAMPLES / "report__first_attempt.json").read_text())
        cloud.endpoints.predictions = [golden["prediction"] for golden in report["golden"]]
        # What was planned to know the folder is undone: the first task begins with nothing, as the others do. Only what
        # the warehouse's statistics would say stays, for no rows of examples are in memory.
        for uri in set(cloud.artifacts.objects) - earlier - {self.uri("statistics"), self.uri("checks")}:
            del cloud.artifacts.objects[uri]
        self.run.xcoms.clear()
        cloud.warehouse.asked.clear()
        cloud.clock.sleep(12 * 3600)  # it begins with the year, and not all clocks say the same month there

    def play(self, first: str = "plan") -> None:
        """Run each task from a first one on to its end."""
        order = list(NIGHT)
        for name in order[order.index(first) :]:
            self.end(NIGHT[name](self.cloud.connect))

    def play_struck(self, task: str, at: int = 0, fault: Fault | None = None) -> list[str]:
        """Run one task to its end; return the calls of all its processes, at one of which something happens."""
        happens = fault.of(self, NIGHT[task]) if fault else None
        cloud = DyingCloud(self.cloud, at, after=fault.after if fault else False, instead=happens)
        self.end(NIGHT[task](cloud.connect))
        return cloud.calls

    def end(self, task: Any) -> None:
        """Wake a task every minute until it ends; a try that fails is followed by the next one."""
        try_number = 1
        for _ in range(MOST_WAKES):
            self.cloud.clock.sleep(60)
            try:
                with self.models():
                    self.run.execute(task, try_number=try_number, max_tries=3)
            except AirflowRescheduleException:
                continue
            except AirflowFailException:
                raise  # for good: nothing that happens here may do that
            except (Death, ServiceUnavailable, RetrainingError):
                try_number += 1
            else:
                return
        raise AssertionError(f"{task.task_id} did not end: {sorted(self.cloud.artifacts.objects)}")

    @contextlib.contextmanager
    def models(self) -> Iterator[None]:
        """Let the operators find this night's file of the model."""
        with pytest.MonkeyPatch.context() as patch:
            if self.include:
                patch.setenv("RETRAINING_INCLUDE", str(self.include))
            yield

    def _go_on(self) -> None:
        """Let each machine do what it is asked for, and end when nothing more can come."""
        self.cloud.artifacts.now = self.cloud.clock.now()
        for (name, job), spec in zip(list(self.cloud.jobs.jobs.items()), self.cloud.jobs.specs, strict=True):
            if not job.active:
                continue
            for task, request_uri in stages_of(spec):
                if request_uri not in self.cloud.artifacts.objects:
                    break
                self.leave(task)
            else:
                self.cloud.jobs.end(name)

    def _after_a_change(self, _number: int, done: bool) -> None:
        if done:
            self._go_on()

    def leave(self, task: str) -> None:
        """As every night's machine; the model is good enough to be deployed."""
        super().leave(task)
        for uri, data in self.cloud.artifacts.objects.items():
            if uri.endswith("/evaluation.json"):  # enough rows to be judged and a sure gain, so that the night deploys
                values = json.loads(data) | {"rows": 5000}
                if values["difference"]:
                    values["difference"] |= {"low": 0.004}
                self.cloud.artifacts.objects[uri] = KINDS["evaluation"].parse(json.dumps(values)).to_bytes()

    @property
    def bill(self) -> dict[str, Any]:
        """What somebody pays for, each by how often, and who answers in the end."""
        cloud = self.cloud
        (endpoint,) = cloud.endpoints.by_name.values()  # of the one model
        return {
            "jobs": Counter(job.labels[vertex.TASK_LABEL] for job in cloud.jobs.jobs.values()),
            "left": [job.name for job in cloud.jobs.jobs.values() if job.active],
            "queries": {asked for asked in cloud.warehouse.asked if not asked.startswith("dry ")},
            "uploads": len(cloud.registry.uploads),
            "evaluations": len(cloud.registry.evaluations),
            "deployed": len(cloud.endpoints.deploys) - len(cloud.endpoints.undeployed),
            "traffic": endpoint.traffic,
            "aliases": {key: sorted(each.aliases) for key, each in cloud.registry.versions.items()},
        }

    @property
    def stored(self) -> dict[str, bytes]:
        """All objects, of documents what they say; without what tasks note of their own wakes and tries."""
        objects = self.cloud.artifacts.objects.items()
        kept = {uri: data for uri, data in objects if not any(part in uri for part in OF_WAKES)}
        if self.include:  # whoever is late has the machine wait, which is paid
            kept = {uri: b"" if uri.endswith("/spending.json") else data for uri, data in kept.items()}
        return {uri: PASSING.sub(b"", data) if is_document(uri) else b"" for uri, data in kept.items()}


Happening = Callable[[], None] | None


@dataclasses.dataclass(frozen=True)
class Fault:
    """What happens, before a call or after it. `of` gives it for a night and the task that is struck."""

    name: str
    after: bool
    of: Callable[[Night, Any], Happening]


def dies(night: Night, make: Any) -> Happening:
    """SIGKILL."""
    del night, make
    return None


def no_answer(night: Night, make: Any) -> Happening:
    """The service answers 503."""
    del night, make

    def happen() -> None:
        raise ServiceUnavailable("no answer")

    return happen


def stands_still(night: Night, make: Any) -> Happening:
    """The process is stopped for six hours, and goes on."""
    del make
    return lambda: night.cloud.clock.sleep(6 * 3600)


def second_worker(night: Night, make: Any) -> Happening:
    """Another worker runs the same task from its beginning to its end meanwhile."""
    return lambda: night.end(make(night.cloud.connect))


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


def with_other_clock(hours: int) -> Callable[[Night, Any], Happening]:
    """Another worker does so, whose clock is hours ahead of the first one's, or behind it."""

    def other_worker(night: Night, make: Any) -> Happening:
        cloud = copy.copy(night.cloud)
        clock: Any = OtherClock(night.cloud.clock, hours)
        cloud.clock = clock
        return lambda: night.end(make(cloud.connect))

    return other_worker


FAULTS = [
    Fault("the worker dies before the call", False, dies),
    Fault("the worker dies after it, the answer is lost", True, dies),
    Fault("503, and nothing is done", False, no_answer),
    Fault("503, and it is done", True, no_answer),
    Fault("stopped for six hours before the call", False, stands_still),
    Fault("another worker runs the whole task before the call", False, second_worker),
    Fault("another worker runs the whole task after the call", True, second_worker),
    Fault("another worker, six hours ahead, does so before it", False, with_other_clock(6)),
    Fault("another worker, six hours behind, does so before it", False, with_other_clock(-6)),
]
COMES_BETWEEN = "another worker"


@dataclasses.dataclass(frozen=True)
class Undisturbed:
    """A night to which nothing happens.

    Attributes:
        end: As it is then.
        before: As it is before each task.
        calls: Those of each task.
    """

    end: Night
    before: dict[str, Night]
    calls: dict[str, list[str]]

    def strike(self, task: str, at: int, fault: Fault) -> Night:
        """Play it once more, with something happening at one of a task's calls, counted from 1."""
        night = copy.deepcopy(self.before[task])
        night.play_struck(task, at, fault)
        rest = list(NIGHT)[list(NIGHT).index(task) + 1 :]
        if rest:
            night.play(rest[0])
        return night


def undisturbed(night: Night) -> Undisturbed:
    """Play a night."""
    before, calls = {}, {}
    for task in NIGHT:
        before[task] = copy.deepcopy(night)
        calls[task] = night.play_struck(task)
    return Undisturbed(night, before, calls)


@pytest.fixture(scope="module")
def nights(make_run: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Undisturbed]:
    """The first night of a model, one whose version takes the place of the first one's, and one of chained jobs."""
    first = undisturbed(Night(make_run))
    include = tmp_path_factory.mktemp("chained") / "include"
    shutil.copytree(include_path(), include)
    model = include / "models" / "flight_delays.yaml"
    model.write_text(model.read_text() + "\njobs: chained\n")
    return {
        "first": first,
        "next": undisturbed(Night(make_run, copy.deepcopy(first.end))),
        "chained": undisturbed(Night(make_run, include=include)),
    }


def wrong(night: Night, whole: Night) -> dict[str, Any]:
    """What is otherwise than in the night to which nothing happened, by the columns of the table."""
    jobs, expected = night.bill["jobs"], whole.bill["jobs"]
    stored, same = night.stored, whole.stored
    once = ("queries", "uploads", "evaluations", "deployed")
    served = ("traffic", "aliases")
    return {
        "paid twice": [*(jobs - expected), *(name for name in once if night.bill[name] != whole.bill[name])],
        "lost": [*(expected - jobs), *(same.keys() - stored.keys())],
        "left": [*night.bill["left"], *(stored.keys() - same.keys())],
        "served otherwise": [name for name in served if night.bill[name] != whole.bill[name]],
        "said otherwise": [uri for uri in stored.keys() & same.keys() if stored[uri] != same[uri]],
    }


def is_promised(fault: Fault, call: str, found: dict[str, Any]) -> bool:
    """Whether nothing is wrong, or only what no client can know: who comes between a look and the create after it."""
    wrongs = {name for name, each in found.items() if each}
    return not wrongs or (
        fault.name.startswith(COMES_BETWEEN) and call in CREATES[fault.after] and wrongs == {"paid twice"}
    )


KINDS_OF_NIGHTS = ("first", "next", "chained")
CELLS = [(kind, task, fault) for kind in KINDS_OF_NIGHTS for task in NIGHT for fault in FAULTS]


@pytest.mark.parametrize(("kind", "task", "fault"), CELLS[::3], ids=lambda it: getattr(it, "name", it))
def test_what_happens_at_some_call_changes_nothing(
    nights: dict[str, Undisturbed], kind: str, task: str, fault: Fault
) -> None:
    """At one of the calls that change something, another one for each fault."""
    calls = nights[kind].calls[task]
    changes = [at for at, call in enumerate(calls, start=1) if not call.startswith(LOOKS)] or [len(calls)]
    at = changes[(len(changes) // 2 + FAULTS.index(fault)) % len(changes)]
    found = wrong(nights[kind].strike(task, at, fault), nights[kind].end)
    assert is_promised(fault, calls[at - 1], found), (at, calls[at - 1], found)


@pytest.mark.parametrize("kind", KINDS_OF_NIGHTS)
def test_a_worker_whose_clock_is_behind_uploads_no_second_version(nights: dict[str, Undisturbed], kind: str) -> None:
    """Whenever it comes: its claim looks old to the first worker, whose look at the registry is older still."""
    behind = FAULTS[-1]
    for at, call in enumerate(nights[kind].calls["register"], start=1):
        found = wrong(nights[kind].strike("register", at, behind), nights[kind].end)
        assert is_promised(behind, call, found), (at, call, found)


def cleared_from(task: str) -> Callable[[Night], None]:
    """A person clears a task and all after it."""
    return lambda night: night.play(task)


def made_again(night: Night) -> None:
    """A person deletes the DAG run and makes it again."""
    night.run.xcoms.clear()
    night.play()


def another_run(night: Night) -> None:
    """A person starts a run of the same day beside the scheduled one."""
    night.run.run_id = "manual__once_more"
    made_again(night)


def without_registration(night: Night) -> None:
    """A person deletes what says which version the run registered, and clears the run."""
    del night.cloud.artifacts.objects[night.uri("registration")]
    night.play()


AGAIN = {
    **{f"cleared from {task} on": cleared_from(task) for task in NIGHT},
    "made again": made_again,
    "another run of the day": another_run,
    "without its registration": without_registration,
}


@pytest.mark.parametrize("kind", KINDS_OF_NIGHTS)
@pytest.mark.parametrize("again", AGAIN)
def test_a_night_that_is_run_again_costs_nothing_and_changes_nothing(
    nights: dict[str, Undisturbed], kind: str, again: str
) -> None:
    """Whole and finished as it was: no job, no upload, no traffic that was not there."""
    whole = nights[kind].end
    night = copy.deepcopy(whole)
    AGAIN[again](night)
    found = wrong(night, whole)
    of_registration = [night.uri("registration")] if again == "without its registration" else []
    assert found.pop("said otherwise") == of_registration  # it has the aliases of now
    assert not any(found.values()), found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_happens_at_any_call_changes_nothing(nights: dict[str, Undisturbed]) -> None:
    """Every call of every task, and all faults; prints the table of docs/reliability.md."""
    broken: list[tuple[Any, ...]] = []
    columns = list(wrong(nights["first"].end, nights["first"].end))
    print(f"\n| what happens, at every call of every task | nights | {' | '.join(columns)} |")
    print(f"|---|{'---|' * (len(columns) + 1)}")
    for fault in FAULTS:
        of_fault = []
        for kind, task in itertools.product(nights, NIGHT):
            for at, call in enumerate(nights[kind].calls[task], start=1):
                found = wrong(nights[kind].strike(task, at, fault), nights[kind].end)
                of_fault.append(found)
                if not is_promised(fault, call, found):
                    broken.append((fault.name, kind, task, at, call, found))
        counts = [sum(bool(each[name]) for each in of_fault) for name in columns]
        print(f"| {fault.name} | {len(of_fault):,} | {' | '.join(map(str, counts))} |", flush=True)
    assert broken == []
