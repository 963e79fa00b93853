"""The list of what is supposed of the real cloud names code that is there, and leaves no hook out.

Comes in: docs/assumptions.md and the sources that it names. Goes out: what does not fit.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
HOOKS = REPOSITORY / "plugins" / "retraining" / "hooks"
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    for line in (REPOSITORY / "docs" / "assumptions.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [A-Z]+-\d+ \|", line)
]


def _named(row: list[str]) -> list[tuple[str, list[str]]]:
    """Return the files of a row's third cell, each with the functions that follow it."""
    found: list[tuple[str, list[str]]] = []
    for span in re.findall(r"`([^`]+)`", row[2]):
        if "/" in span:
            found.append((span, []))
        else:
            found[-1][1].append(span)
    return found


@functools.cache
def _functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _speaks_to_google(path: Path) -> bool:
    """Whether a module imports one of Google's packages, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == "google" for name in names):
            return True
    return False


def test_ids_are_unique() -> None:
    """An id is cited elsewhere, so it means one thing."""
    ids = [row[0] for row in ROWS]
    assert len(ids) >= 40
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_row_names_code_that_is_there(row: list[str]) -> None:
    """All six cells say something; each file exists, and each function is in its file."""
    assert len(row) == 6
    assert all(row)
    assert _named(row)
    for name, functions in _named(row):
        path = REPOSITORY / name
        assert path.is_file(), name
        if functions:
            assert not set(functions) - _functions(path), name


def test_every_hook_of_google_is_in_a_row() -> None:
    """A new one supposes something too."""
    speaking = {path.relative_to(REPOSITORY).as_posix() for path in HOOKS.rglob("*.py") if _speaks_to_google(path)}
    assert speaking
    assert not speaking - {name for row in ROWS for name, _ in _named(row)}
