"""`--go-on FILE`: a long run that was stopped leaves out the files of tests that had passed, and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
GOOD = "def test_a(): pass\ndef test_b(): pass\n"
BAD = "def test_c(): pass\ndef test_d(): assert False\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of tests, one of which fails."""
    (tmp_path / "test_bad.py").write_text(BAD)
    (tmp_path / "test_good.py").write_text(GOOD)
    return tmp_path


def run(folder: Path, *options: str) -> str:
    """What pytest prints of them."""
    return ended(folder, *options).stdout


def ended(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """How pytest ends with them."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.finished_files", "-p", "no:cacheprovider", "-q"]
    return subprocess.run(
        [*command, f"--rootdir={folder}", "--go-on", str(folder / "made" / "record.jsonl"), *options, str(folder)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_file_that_passed_is_left_out_and_one_that_failed_is_not(folder: Path) -> None:
    assert "1 failed, 3 passed" in run(folder)
    again = run(folder)
    assert "1 failed, 1 passed, 2 deselected" in again
    assert "1 files passed in 0 minutes, 1 of them before" in again
    (folder / "test_bad.py").write_text("def test_c(): pass\n")
    assert "1 passed, 2 deselected" in run(folder)
    assert "3 deselected" in run(folder)


def test_a_file_of_which_only_a_part_ran_is_run_again(folder: Path) -> None:
    """As when the run was killed in it: its tests go on with each other's world."""
    run(folder, "-x")
    assert not (folder / "made" / "record.jsonl").exists()
    run(folder, "-k", "test_good")
    (row,) = (folder / "made" / "record.jsonl").read_text().splitlines()
    assert json.loads(row)["file"] == "test_good.py"
    with (folder / "made" / "record.jsonl").open("a") as record:
        record.write('{"file": "test_bad.py", "sec')
    assert "1 failed, 1 passed, 2 deselected" in run(folder)


def test_where_all_passed_before_nothing_is_run_and_all_is_well(folder: Path) -> None:
    """Not pytest's own 5, by which a lane that was done before would fail."""
    (folder / "test_bad.py").write_text("def test_c(): pass\n")
    assert ended(folder).returncode == 0
    again = ended(folder)
    assert again.returncode == 0, again.stdout
    assert "2 files passed" in again.stdout
