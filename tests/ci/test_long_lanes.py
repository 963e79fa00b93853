"""`make test-long`: a lane that fails hides nothing of another one, and is told."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    """Every environment that the Makefile knows, as if it were there; a Python there writes down what it is asked."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in re.findall(r"^\$\(VENV\)/([\w-]+)/\.ready:", makefile, re.MULTILINE):
        program = tmp_path / name / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho {name} "$@"\nexit $STATUS_{name}\n', encoding="utf-8")
        program.chmod(0o755)
        (tmp_path / name / ".ready").touch()
    (tmp_path / "uv").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("airflow", "trainer"), [(0, 0), (1, 0), (0, 1), (1, 1)], ids=["none", "first", "second", "both"]
)
def test_all_lanes_run_and_a_failure_of_any_is_the_target_s(environments: Path, airflow: int, trainer: int) -> None:
    """Each is asked for its long tests once, in any order, and the trainer's belong to its own Python alone."""
    done = subprocess.run(
        ["make", "--silent", "test-long", f"VENV={environments}", f"UV={environments}/uv"],
        cwd=ROOT,
        env={**os.environ, "STATUS_airflow": str(airflow), "STATUS_trainer": str(trainer)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    asked = [re.sub(r" --(durations|go-on) \S+", "", line) for line in done.stdout.splitlines()]
    assert sorted(asked) == [
        "airflow -m pytest -m long -s --ignore tests/trainer --ignore tests/e2e --ignore tests/dev/containers",
        "airflow -m pytest -m long -s tests/dev/containers",
        "airflow -m pytest -m long -s tests/e2e",
        "trainer -m pytest -m long tests/trainer",
    ], done.stderr
    assert (done.returncode != 0) == bool(airflow or trainer)
