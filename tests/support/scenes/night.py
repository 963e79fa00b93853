"""Many models in one night: tasks that want jobs of a region with a quota, woken in any order and killed anywhere."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from retraining.core.catalog.amounts import amounts_of
from retraining.core.catalog.hardware import load_hardware
from retraining.core.jobs.job import JobIdentity
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import vertex
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.quotas import Quotas, load_quotas
from retraining.operators.jobs import places
from retraining.operators.jobs.places import JobPlace
from retraining.operators.jobs.reconcile import Reconciler
from tests.support.scenes.job_stage import Killed, Process, World, kill_at

HARDWARE = load_hardware(include_path())


READ: dict[tuple[Path, int], ModelSpec] = {}


def read_once(path: Path) -> ModelSpec:
    """The product's function, asked again where a file changed."""
    key = (path, path.stat().st_mtime_ns)
    if key not in READ:
        READ[key] = load_spec(path)
    return READ[key]


@dataclasses.dataclass(kw_only=True)
class Task:
    """A task that wants one job of so many machines.

    `done` is its result, or the error that it ended with; `sleeps_s` how long it sleeps after its last wake.
    """

    name: str
    machines: int = 1
    dag_id: str = "retrain__flight_delays"
    run_type: str = "scheduled"
    done: Any = None
    asked: datetime | None = None
    began: datetime | None = None
    sleeps_s: float = 0.0

    @property
    def job(self) -> dict[str, Any]:
        """What it wants."""
        spec = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": self.machines}
        return {"display_name": self.name, "job_spec": {"worker_pool_specs": [spec]}}

    @property
    def context(self) -> Any:
        """As Airflow's."""
        ti = SimpleNamespace(dag_id=self.dag_id, task_id=self.name)
        return {"ti": ti, "dag_run": SimpleNamespace(run_type=self.run_type)}


class Night(World):
    """A region with a quota, and the tasks of a night.

    Args:
        tmp_path: For the folder `include`.
        monkeypatch: Points the operators to it.
        quota: The region's lines of `quotas.yaml`, as YAML.
    """

    def __init__(self, tmp_path: Path, monkeypatch: Any, quota: str) -> None:
        World.__init__(self)
        self.quotas: Quotas | None = None
        self.include = tmp_path / "include"
        (self.include / "models").mkdir(parents=True, exist_ok=True)
        model = "models/flight_delays.yaml"
        (self.include / model).write_bytes((include_path() / model).read_bytes())
        self.write_quota(quota)
        self.tasks: dict[str, Task] = {}
        self.most: dict[str, int] = {}
        monkeypatch.setattr(places, "include_path", lambda: self.include)
        monkeypatch.setattr(places, "load_hardware", lambda _: HARDWARE)  # of thousands of wakes in one process
        monkeypatch.setattr(places, "load_spec", read_once)
        monkeypatch.setattr(places, "load_quotas", lambda _: self.quotas)

    def write_quota(self, quota: str, **others: object) -> None:
        """Write the file."""
        lines = "".join(f"{key}: {value}\n" for key, value in others.items())
        self.write(f"regions:\n  us-central1: {quota}\n{lines}")

    def write(self, text: str | None) -> None:
        """Write the whole file, or delete it; it is read here, once for thousands of wakes."""
        path = self.include / "quotas.yaml"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        self.quotas = load_quotas(self.include)

    def add(self, *tasks: Task) -> None:
        """More tasks want jobs from now on."""
        self.tasks.update({task.name: task for task in tasks})

    def poke(self, task: Task, around: Callable[[str], None] = lambda _: None) -> Any:
        """One wake of a task."""
        task.asked = task.asked or self.clock.now()
        key = f"key-{task.name}"
        identity = JobIdentity(
            key=key, owner=f"owner-{task.name}", dag_run="run", generation=1, retries=2, try_number=1
        )
        cloud: Any = Process(self, around)
        reconciler = Reconciler(
            cloud,
            JobRequest(custom_job=task.job),
            identity,
            lambda _: None,
            place=JobPlace(cloud, task.context, key, task.job),
        )
        try:
            task.done = task.done or reconciler.poll_job()
            task.sleeps_s = reconciler.sleep_s
        finally:
            self.look()
        return task.done

    def look(self) -> Mapping[str, int]:
        """Return what really runs, whatever any list shows; the most of it is kept, and when each task began."""
        self.jobs.settle()
        taken: dict[str, int] = {}
        for job in self.jobs.jobs.values():
            task = self.tasks.get(job.labels.get(vertex.KEY_LABEL, "").removeprefix("key-"))
            if task and task.began is None:
                task.began = job.created
            if job.active:
                for name, amount in amounts_of(job.machines, HARDWARE).items():
                    taken[name] = taken.get(name, 0) + amount
        self.most = {name: max(self.most.get(name, 0), taken.get(name, 0)) for name in {**self.most, **taken}}
        return taken

    def play(self, seed: int, *, kills: float = 0.0, nested: float = 0.0, most_s: float = 48 * 3600) -> None:
        """Wake all tasks every two minutes in any order until all are done.

        Args:
            seed: Of the order, the kills and the interleavings.
            kills: How likely a wake is killed at one of its calls.
            nested: How likely another task's wake happens between two calls of a wake.
            most_s: After so long the night has failed.
        """
        chance = random.Random(seed)
        until = self.clock.now() + timedelta(seconds=most_s)
        while left := [task for task in self.tasks.values() if not task.done]:
            assert self.clock.now() < until, f"never done: {[task.name for task in left]}"
            chance.shuffle(left)
            for task in left:
                self._wake(task, left, chance, kills, nested)
            self.clock.time += timedelta(seconds=120)

    def play_by_sleeps(self, most_s: float = 48 * 3600) -> int:
        """Wake each task when it has slept as long as it wanted, until all are done; return how many wakes it took."""
        begin, wakes = self.clock.now(), 0
        due = dict.fromkeys(self.tasks, begin)
        while due:
            name = min(due, key=lambda each: due[each])
            self.clock.time = max(self.clock.now(), due[name])
            assert self.clock.now() < begin + timedelta(seconds=most_s), f"never done: {list(due)}"
            wakes += 1
            if self.poke(self.tasks[name]):
                del due[name]
            else:
                due[name] = self.clock.now() + timedelta(seconds=self.tasks[name].sleeps_s)
        return wakes

    def _wake(self, task: Task, others: list[Task], chance: random.Random, kills: float, nested: float) -> None:
        inner = kill_at(chance.randrange(40)) if chance.random() < kills else (lambda _: None)
        at = chance.randrange(40) if chance.random() < nested else -1
        count = 0

        def around(what: str) -> None:
            nonlocal count
            count += 1
            if count == at:
                self._wake(chance.choice(others), others, chance, kills, nested / 2)
            inner(what)

        with contextlib.suppress(Killed):
            self.poke(task, around)
