"""Every error that is raised says all: where, what was found, what was expected, and (where it can) the way out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from retraining.core import errors

PACKAGE = Path(errors.__file__).resolve().parents[1]
NAMES = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RetrainingError) and name != "RetrainingError"
}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Return each construction of an error in the package, with its place."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in NAMES:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


def expectation(call: ast.Call) -> ast.expr | None:
    """Return the third part as it is written; None when there is none."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return named.get("expected") or (call.args[2] if len(call.args) > 2 else None)


def test_each_error_says_what_was_expected() -> None:
    """The reader of a log at night sees what would have been right."""
    found = [(where, call) for where, call in calls() if not any(isinstance(part, ast.Starred) for part in call.args)]
    assert len(found) > 50
    empty = [
        where
        for where, call in found
        if (part := expectation(call)) is None or (isinstance(part, ast.Constant) and not part.value)
    ]
    assert not empty
