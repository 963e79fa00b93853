"""`make bench-readers`: its figures are what they say, and nobody is compared on other rows."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import readers
from bench.checkout import CHECKOUT_PATH, REPOSITORY_PATH


def test_ratios_are_of_the_same_round() -> None:
    """A disturbed round is disturbed for all: 10, 10 and 4 times, though the medians' ratio is 5."""
    slow = [{"rows": 100, "seconds": seconds, "first_s": 1.0, "cpu_s": 2.0} for seconds in (10, 20, 4)]
    fast = [{"rows": 100, "seconds": seconds, "first_s": 0.1, "cpu_s": 0.5} for seconds in (1, 2, 1)]
    rows = readers.summarise({"storage_read": fast, "tensorflow_io": slow})
    assert [(row["reader"], row["times"], row["rate"]) for row in rows] == [
        ("storage_read", 10.0, 100.0),
        ("tensorflow_io", 1.0, 10.0),
    ]
    assert readers.render(rows).splitlines()[2] == "| storage_read | 100 | 100 | 0.1 | 0.5 | 10.0 |"


def test_readers_of_other_rows_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who leaves rows out would look fast."""

    def run(_: object, module: str, name: str, *arguments: str, python: object) -> SimpleNamespace:
        del module, arguments, python
        return SimpleNamespace(stdout=json.dumps({"rows": 3 if name == "tfrecord" else 4}))

    monkeypatch.setattr(readers, "run_trainer", run)
    with pytest.raises(ValueError, match="do not read the same rows"):
        readers.take_turns({}, "gs://bucket/manifest.json", 1)


@pytest.mark.long
def test_every_reader_reads_every_row(tmp_path: Path) -> None:
    """Of the run table of the year's flights."""
    out_path = tmp_path / "readers.json"
    options = ["--rounds", "1", "--copies", "1", "--out", str(out_path)]
    python = REPOSITORY_PATH / ".venv" / "localcloud" / "bin" / "python"
    env = {**os.environ, "PYTHONPATH": CHECKOUT_PATH}
    done = subprocess.run([python, "-m", "bench.readers", *options], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads(out_path.read_text())["rows"]
    assert {row["reader"]: row["rows"] for row in rows} == dict.fromkeys(readers.CONTENDERS, 259_799)
