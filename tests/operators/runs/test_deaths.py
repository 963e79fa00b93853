"""Something happens at every single call of every task of a night: what is stored, served and paid is as if it had not.

`make test-faults` looks at every call and prints the table of docs/reliability.md; `make test` at some of them.
"""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import KINDS
from retraining.core.settings import include_path
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.report.page import ReportOperator
from retraining.operators.tuning.study import TuneOperator
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.chained_run import stages_of
from tests.support.scenes.planned_run import FORM
from tests.support.scenes.recorded_run import TASKS, RecordedRun
from tests.support.scenes.struck_play import (
    FAULTS,
    LOOKS,
    Fault,
    Play,
    Undisturbed,
    is_promised,
    print_table,
    undisturbed,
    wrong,
)

NIGHT: dict[str, Any] = {
    **{name: TASKS[name] for name in ("plan", "snapshot", "check_data", "export")},
    "tune": lambda cloud: TuneOperator(task_id="tune", cloud=cloud),
    **{name: TASKS[name] for name in ("train", "evaluate", "decide", "register", "deploy")},
    "cancel_jobs": lambda cloud: CancelJobsOperator(task_id="cancel_jobs", cloud=cloud),
    "report": lambda cloud: ReportOperator(task_id="report", cloud=cloud),
}


class Night(Play, RecordedRun):
    """A night in which something happens once.

    Args:
        make_run: Makes DAG runs.
        before: The night whose version is champion; None: there was none.
        include: Where the model's file is; None: where it is.
    """

    tasks = NIGHT

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

    def wake(self, task: Any, try_number: int) -> None:
        """As every process, which finds this night's file of the model."""
        with self.models():
            super().wake(task, try_number)

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
    def stored(self) -> dict[str, bytes]:
        """As everywhere; whoever is late has the machine of chained jobs wait, which is paid."""
        if not self.include:
            return super().stored
        return {uri: b"" if uri.endswith("/spending.json") else data for uri, data in super().stored.items()}


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
    whole: Any = nights[kind].end
    night = copy.deepcopy(whole)
    AGAIN[again](night)
    found = wrong(night, whole)
    of_registration = [night.uri("registration")] if again == "without its registration" else []
    assert found.pop("said otherwise") == of_registration  # it has the aliases of now
    assert not any(found.values()), found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_happens_at_any_call_changes_nothing(
    nights: dict[str, Undisturbed], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every call of every task, and all faults; prints the table of docs/reliability.md."""
    print_table(nights, capsys)
