"""`make bench-images`: its figures are what they say, and each contender fetches the same photos."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import images
from localcloud.faults import FaultStore


def test_ratios_are_of_the_same_round_and_wait() -> None:
    """A disturbed round is disturbed for both: 10, 10 and 4 times, though the medians' ratio is 5."""
    slow = [{"rows": 100, "seconds": seconds, "cpu_s": 2.0} for seconds in (10, 20, 4)]
    fast = [{"rows": 100, "seconds": seconds, "cpu_s": 0.5} for seconds in (1, 2, 1)]
    rows = images.summarise({(0.03, 1): slow, (0.03, 32): fast, (0.0, 1): fast, (0.0, 32): fast})
    assert [(row["delay_ms"], row["at_once"], row["rate"], row["times"]) for row in rows] == [
        (30, 1, 10.0, 1.0),
        (30, 32, 100.0, 10.0),
        (0, 1, 100.0, 1.0),
        (0, 32, 100.0, 1.0),
    ]
    assert images.render(rows).splitlines()[3] == "| 30 ms | 32 | 100 | 0.5 | 10.0 |"


def test_the_wait_is_in_force_for_its_own_turns_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the photos' reads; they are written once, without it."""
    faults = FaultStore(tmp_path / "faults.sqlite")
    seen = []

    def run(_: object, module: str, uri: str, *arguments: str) -> SimpleNamespace:
        action = faults.take("storage.objects.get", f"{uri}/00001.jpg")
        seen.append((arguments[1:], action and action["seconds"]))
        assert faults.take("storage.objects.list", uri) is None
        assert module == "bench.image_contender"
        return SimpleNamespace(stdout=json.dumps({"rows": 2, "seconds": 1, "cpu_s": 1}))

    monkeypatch.setattr(images, "run_trainer", run)
    readings = images.take_turns({"RETRAINING_BUCKET": "b"}, faults, 2, 1)
    assert [len(taken) for taken in readings.values()] == [1] * 6
    assert seen == [((), None), *(((fetches,), delay) for delay in (None, 0.03, 0.1) for fetches in ("1", "32"))]
