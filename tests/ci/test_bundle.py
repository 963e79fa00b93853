"""`make bundle`: Composer gets `dags`, `plugins` and `include`, whole, and nothing of what is never shipped."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "build" / "bundle"


def tracked(*folders: str) -> set[str]:
    """Return the files of some folders that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, text=True, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return {name for name in listed.stdout.split("\0") if name}


def test_it_ships_dags_plugins_and_include_whole() -> None:
    """Every tracked file of the three folders, and no other: `dev`, `trainer` and `tests` stay here."""
    wanted = tracked("dags", "plugins") | {f"dags/{name}" for name in tracked("include")}
    subprocess.run(["make", "--silent", "bundle"], cwd=ROOT, check=True, capture_output=True, timeout=60)
    assert {path.relative_to(BUNDLE).as_posix() for path in BUNDLE.rglob("*") if path.is_file()} == wanted


def test_include_is_what_dags_read() -> None:
    """A team's own files: a program there would be shipped to Composer, where nothing runs it."""
    folders = {name.split("/")[1] for name in tracked("include")}
    assert folders == {"models", "sql"}
    assert not {name for name in tracked("include") if name.endswith((".py", ".sh", ".txt"))}
