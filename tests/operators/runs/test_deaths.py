"""Something happens at every single call of every task of a night: what is stored, served and paid is as if it had not.

`make test-faults` looks at every call and prints the table of docs/reliability.md; `make test` at some of them.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from retraining.core.documents import KINDS
from retraining.core.errors import RetrainingError
from retraining.core.naming import vertex
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.report.page import ReportOperator
from retraining.operators.tuning.study import TuneOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.dying import Death, DyingCloud
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
MOST_WAKES, MOST_CALLS = 60, 400
SOME = 23
"""Of so many calls `make test` looks at one."""
PASSING = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"  # when
    rb'|"writer": "[0-9a-f]{32}"|"starts": \d+'  # which process, after how many others
    rb'|"smoke_requests": \[[^]]*\]'  # each that was asked, so that the monitor leaves it out
)


def is_document(uri: str) -> bool:
    """Whether it says what was done, and not how long that took: no claim, timing or page."""
    kind = uri.rpartition("/")[2].removesuffix(".json")
    return kind in KINDS and kind not in ("timings", "model_overview", "overview")


class Night(RecordedRun):
    """A night without a champion before it, in which something happens once."""

    def __init__(self, make_run: Any) -> None:
        cloud = FakeCloud()
        self.run = make_run(params=FORM)
        super().__init__(cloud, self.run)
        report = json.loads((EXAMPLES / "report__first_attempt.json").read_text())
        cloud.endpoints.predictions = [golden["prediction"] for golden in report["golden"]]

    def play(self, struck: str = "", at: int = 0, fault: Fault | None = None) -> list[str]:
        """Run each task to its end; return the calls that the struck one made, all its processes together."""
        calls: list[str] = []
        for name, make in NIGHT.items():
            if fault is None or name != struck:
                self.end(make(self.cloud.connect))
                continue
            happens = fault.of(self, make)
            cloud = DyingCloud(self.cloud, at, after=fault.after, instead=happens)
            calls = cloud.calls
            self.end(make(cloud.connect))
        return calls

    def end(self, task: Any) -> None:
        """Wake a task every minute until it ends; a try that fails is followed by the next one."""
        try_number = 1
        for _ in range(MOST_WAKES):
            self.cloud.clock.sleep(60)
            try:
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

    def _end_job(self) -> None:
        super()._end_job()
        for uri, data in self.cloud.artifacts.objects.items():
            if uri.endswith("/evaluation.json"):  # enough rows to be judged, so that the night deploys
                values = json.loads(data) | {"rows": 5000}
                self.cloud.artifacts.objects[uri] = KINDS["evaluation"].parse(json.dumps(values)).to_bytes()

    @property
    def bill(self) -> dict[str, Any]:
        """What somebody pays for, each by how often, and who answers in the end."""
        cloud = self.cloud
        (endpoint,) = cloud.endpoints.by_name.values()
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
        kept = {uri: data for uri, data in objects if "/wakes/" not in uri and "/failures/" not in uri}
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


FAULTS = [
    Fault("the worker dies before the call", False, dies),
    Fault("the worker dies after it, the answer is lost", True, dies),
    Fault("503, and nothing is done", False, no_answer),
    Fault("503, and it is done", True, no_answer),
    Fault("stopped for six hours before the call", False, stands_still),
    Fault("another worker runs the whole task before the call", False, second_worker),
    Fault("another worker runs the whole task after the call", True, second_worker),
]


@pytest.fixture(scope="module")
def whole(make_run: Any) -> Night:
    """The night to which nothing happens."""
    night = Night(make_run)
    night.play()
    return night


def strikes(make_run: Any, task: str, fault: Fault, first: int, step: int) -> Iterator[tuple[str, str, Night]]:
    """Play a night once for each of the task's calls; gives where it was struck, at which call, and what is there."""
    for at in range(first, MOST_CALLS, step):
        night = Night(make_run)
        calls = night.play(task, at, fault)
        if len(calls) < at:
            return
        yield f"{fault.name}, call {at} of {task} ({calls[at - 1]})", calls[at - 1], night
    raise AssertionError(f"{task} makes more calls than that")


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
    return not wrongs or (fault.of is second_worker and call in CREATES[fault.after] and wrongs == {"paid twice"})


CELLS = [pytest.param(task, fault, id=f"{task}, {fault.name}") for task in NIGHT for fault in FAULTS]


@pytest.mark.parametrize(("task", "fault"), CELLS[::3])
def test_what_happens_at_some_call_changes_nothing(make_run: Any, whole: Night, task: str, fault: Fault) -> None:
    """Another call for each task and fault, so that all together see many."""
    first = 1 + (list(NIGHT).index(task) * 3 + FAULTS.index(fault) * 4) % 7
    for where, call, night in strikes(make_run, task, fault, first, SOME):
        assert is_promised(fault, call, wrong(night, whole)), (where, wrong(night, whole))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_happens_at_any_call_changes_nothing(make_run: Any, whole: Night) -> None:
    """Every call of every task, and all faults; prints the table of docs/reliability.md."""
    broken: list[tuple[str, dict[str, Any]]] = []
    columns = list(wrong(whole, whole))
    print(f"\n| what happens, at every call of every task | nights | {' | '.join(columns)} |")
    print(f"|---|{'---|' * (len(columns) + 1)}")
    for fault in FAULTS:
        of_fault = []
        for task in NIGHT:
            for where, call, night in strikes(make_run, task, fault, 1, 1):
                found = wrong(night, whole)
                of_fault.append(found)
                if not is_promised(fault, call, found):
                    broken.append((where, found))
        counts = [sum(bool(each[name]) for each in of_fault) for name in columns]
        print(f"| {fault.name} | {len(of_fault):,} | {' | '.join(map(str, counts))} |", flush=True)
    assert broken == []
