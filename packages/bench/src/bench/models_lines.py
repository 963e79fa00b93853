"""The trainings of `make bench-models`, a line of JSON each, so that it goes on where it ended.

A line holds for as long as the code that made it is the same, and the libraries' versions: `digest_code` of them stands
in the line. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]
"""A training: name, model, seed, seconds, loss, score, rows, code; of ours steps, best_epoch, epochs_run too."""


class Lines:
    """The lines of a file: of each set, model and seed the newest.

    Args:
        path: The file; there need not be one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        self._lines = {_key(line): line for line in map(json.loads, text.splitlines())}

    def __iter__(self) -> Iterator[Line]:
        """Yield them by set, model and seed."""
        for key in sorted(self._lines):
            yield self._lines[key]

    def has(self, name: str, model: str, seed: int, code: str) -> bool:
        """Return whether there is a line that this code made."""
        line = self._lines.get((name, model, seed))
        return line is not None and line["code"] == code

    def add(self, line: Line) -> None:
        """Write a line, in place of an older one of the same training."""
        self._lines[_key(line)] = line
        new_path = self._path.with_suffix(".new")
        new_path.write_text("".join(json.dumps(one) + "\n" for one in self), encoding="utf-8")
        new_path.replace(self._path)


def _key(line: Line) -> tuple[str, str, int]:
    return line["name"], line["model"], line["seed"]


def digest_code(root_path: Path, places: Iterable[str], versions: Mapping[str, str]) -> str:
    """Return twelve hex digits of what Python files do: of their names and statements, not of comments and docstrings.

    Args:
        root_path: Of a checkout.
        places: Files and folders below it.
        versions: Of the libraries that they call, by name.

    Raises:
        FileNotFoundError: One of them is not there.
    """
    digest = hashlib.sha256(json.dumps(versions, sort_keys=True).encode())
    for place in places:
        path = root_path / place
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"{path}: there is no Python file")
        for file_path in files:
            digest.update(file_path.relative_to(root_path).as_posix().encode() + b"\0")
            digest.update(_statements(file_path.read_text(encoding="utf-8")).encode() + b"\0")
    return digest.hexdigest()[:12]


def _statements(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [statement for statement in body if not _is_docstring(statement)] or [ast.Pass()]
    return ast.dump(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
