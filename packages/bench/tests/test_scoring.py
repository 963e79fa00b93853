"""`make bench-scoring`: its figures are what they say, and nobody is compared on other answers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import scoring
from bench.checkout import CHECKOUT_PATH, REPOSITORY_PATH


def reading(seconds: float, **changes: Any) -> dict[str, Any]:
    """Of two rows."""
    return {"rows": 2, "seconds": seconds, "cpu_s": 0.5, "scores": {"a": 0.25, "b": 0.75}} | changes


def test_shares_are_of_the_same_round() -> None:
    """A disturbed round is disturbed for all; what a job takes in all stands beside what it takes while it runs."""
    slow = [reading(seconds, whole_s=9.0) for seconds in (10, 20, 4)]
    fast = [reading(seconds) for seconds in (1, 2, 1)]
    rows = scoring.summarise({"job": slow, "SavedModel, 2 rows a call": fast})
    assert [(row["way"], row["share"], row["rate"]) for row in rows] == [
        ("job", 0.1, 0.2),
        ("SavedModel, 2 rows a call", 1.0, 2.0),
    ]
    assert scoring.render(rows).splitlines()[2] == "| job | 2 | 0 | 0.100 | 4 | 9.0 |"


@pytest.mark.parametrize(
    "changes",
    [{"scores": {"a": 0.25}}, {"scores": {"a": 0.25, "b": 0.7501}}, {"rows": 3}],
    ids=["fewer", "others", "not all"],
)
def test_other_answers_are_not_compared(changes: dict[str, Any]) -> None:
    """Who leaves rows out, or guesses, would look fast."""
    ways = {"job": lambda: reading(1, **changes), "SavedModel, 2 rows a call": lambda: reading(1)}
    with pytest.raises(ValueError, match=r"job: \d answers for \d rows, .* away from the bare model's"):
        scoring.take_turns(ways, 1)


@pytest.mark.long
def test_every_way_answers_as_the_bare_model_does(tmp_path: Path) -> None:
    """Of a trained model, on a local cloud."""
    out_path = tmp_path / "scoring.json"
    python = REPOSITORY_PATH / ".venv" / "localcloud" / "bin" / "python"
    env = {**os.environ, "PYTHONPATH": CHECKOUT_PATH}
    options = ["--rounds", "1", "--rows", "600", "--out", str(out_path)]
    done = subprocess.run([python, "-m", "bench.scoring", *options], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {row["way"]: row["rows"] for row in json.loads(out_path.read_text())["rows"]}
    assert set(rows.values()) == {600, scoring.ONE_BY_ONE}
    assert len(rows) == 5
