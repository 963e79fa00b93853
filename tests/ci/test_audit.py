"""`make audit`: what it makes of the database's answers; the locks that it asks about are all there are."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    return module


def answer(*faults: dict[str, Any], skipped: bool = False) -> dict[str, Any]:
    """What pip-audit prints about one package."""
    package: dict[str, Any] = {"name": "tool", "version": "1.0"}
    return {"dependencies": [{"name": "tool", "skip_reason": "gone"} if skipped else package | {"vulns": list(faults)}]}


FAULT = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "fix_versions": ["1.1"], "description": "bad"}


@pytest.mark.parametrize(
    ("said", "accepted", "status", "word"),
    [
        (answer(), (), 0, "1 asked about, 0 not, 0 advisories"),
        (answer(FAULT), (), 1, "tool 1.0: CVE-2026-1, PYSEC-2026-1; fixed in 1.1: make lock"),
        (answer(FAULT | {"fix_versions": []}), (), 1, "no release without it"),
        (answer(FAULT), ("CVE-2026-1",), 0, "1 advisories"),
        (answer(), ("CVE-2026-1",), 1, "CVE-2026-1: accepted in docs/security.md, and no locked package has it"),
        (answer(skipped=True), ("CVE-2026-1",), 2, "1 packages could not be asked about"),
    ],
    ids=["clean", "fixed-elsewhere", "no-fix", "accepted", "stale-acceptance", "not-asked"],
)
def test_each_answer_has_its_exit_status_and_words(
    audit: ModuleType, said: dict[str, Any], accepted: tuple[str, ...], status: int, word: str
) -> None:
    """Not asked is never clean."""
    got, lines = audit.judge([audit.read_audit("some.txt", said)], frozenset(accepted))
    assert got == status
    assert any(word in line for line in lines), lines


def test_every_lock_of_the_repository_is_asked_about(audit: ModuleType) -> None:
    """A file with hashes is a lock."""
    listed = subprocess.run(
        ["git", "grep", "-l", "--", "--hash=sha256:", "*.txt"], cwd=ROOT, text=True, capture_output=True, check=True
    )
    assert set(listed.stdout.split()) == set(audit.LOCKS)
