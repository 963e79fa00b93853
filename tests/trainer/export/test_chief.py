"""The chief's end is the job's: it waits for the others, and does their work when they are gone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from trainer.cluster.replica import Replica
from trainer.export.job import Patience

CHIEF, WORKER = Replica(index=0, count=2), Replica(index=1, count=2, role="worker")


class Clock:
    """Time that passes only while somebody sleeps; `meanwhile` happens at the given moments."""

    def __init__(self, meanwhile: dict[float, Callable[[], object]] | None = None) -> None:
        self.now, self.pauses = 0.0, []
        self._meanwhile = dict(meanwhile or {})

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let it pass."""
        self.pauses.append(seconds)
        self.now += seconds
        for moment in sorted(moment for moment in self._meanwhile if moment <= self.now):
            self._meanwhile.pop(moment)()

    def patience(self, seconds: float = 600.0) -> Patience:
        """Return a chief's patience on this clock."""
        return Patience(seconds=seconds, clock=self, sleep=self.sleep)


def test_the_chief_waits_with_growing_pauses_until_all_is_there(run, memory_reader) -> None:
    clock = Clock({200.0: lambda: run.export(replica=WORKER)})
    reader = memory_reader(run.rows)
    said = run.export(replica=CHIEF, reader=reader, patience=clock.patience())
    assert "12 shards are other replicas' and not there yet; waiting for them" in said[1]
    assert clock.now >= 200
    assert clock.pauses == sorted(clock.pauses)
    assert clock.pauses[0] == 1
    assert clock.pauses[-1] == 30
    assert run.manifest().exported_rows == run.rows.num_rows
    assert not any("now mine" in line for line in said)


def test_a_lost_replica_costs_time_and_not_the_run(run, tmp_path: Path) -> None:
    alone = dataclasses.replace(run, path=tmp_path / "alone")
    alone.path.mkdir()
    alone.export()
    clock = Clock()
    said = run.export(replica=CHIEF, patience=clock.patience())
    assert 600 <= clock.now < 640
    assert any("12 shards are missing and no new one came for 6" in line for line in said)
    assert run.files() == alone.files()
    assert run.manifest().exported_rows == run.rows.num_rows


def test_while_others_get_on_the_chief_does_not_take_their_work(run, tmp_path: Path) -> None:
    """A shard every eight minutes: slow, and not lost."""
    other = dataclasses.replace(run, path=tmp_path / "other")
    other.path.mkdir()
    other.export(replica=WORKER)
    theirs = [name for name in other.files() if name.endswith(".gz")]

    def copy(name: str) -> Callable[[], None]:
        def write() -> None:
            for suffix in ("", ".json"):
                run.storage.write_once(str(run.path / f"{name}{suffix}"), (other.path / f"{name}{suffix}").read_bytes())

        return write

    clock = Clock({480.0 * (index + 1): copy(name) for index, name in enumerate(theirs)})
    said = run.export(replica=CHIEF, patience=clock.patience())
    assert not any("now mine" in line for line in said)
    assert clock.now > 12 * 480
    assert run.manifest().exported_rows == run.rows.num_rows


def test_a_replica_that_comes_back_late_finds_its_shards_written(run) -> None:
    run.export(replica=CHIEF, patience=Clock().patience())
    before = run.files()
    said = run.export(replica=WORKER)
    assert "0 shards to write, 12 there already" in said[0]
    assert run.files() == before


def test_alone_there_is_nobody_to_wait_for(run) -> None:
    clock = Clock()
    run.export(patience=clock.patience())
    assert clock.pauses == []
