"""What makes the source easy to read: sizes, names of files, and one place for each form.

Comes in: the source of this checkout, read as syntax trees. Goes out: a list of what does not fit.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.support.packages import CORE, DAGS, OPERATORS
from tests.support.product import PRODUCT, REPOSITORY, in_packages, one_per_line

MAX_FILE_LINES = 600
RENDERED = "do not edit"  # in the docstring of a file that a program writes
MAX_EXCEPTIONS = 96  # lines that ruff is told to leave; lower it with them
MAX_FUNCTION_LINES = 40  # of statements: the docstring and the signature are not counted
MAX_LINES_IN_ALL = 50  # with signature and docstring
MAX_PARAMETERS = 8
BANNED_STEMS = {"utils", "util", "helpers", "helper", "common", "base", "misc"}

# What is taken apart outside `core/naming`, and why.
NAMES_READ_ELSEWHERE = {
    "plugins/retraining/core/settings.py": "two days of a setting, which is an interval and no name",
}
SPLITS = {"split", "rsplit", "partition", "rpartition"}
SEPARATORS = {"/", "-", "@", "gs://", "__"}


def _splits_a_name(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in SPLITS
        and any(isinstance(argument, ast.Constant) and argument.value in SEPARATORS for argument in node.args)
    )


def test_only_naming_takes_names_apart() -> None:
    """A key, an address or a resource name is made and read in `core/naming`; no other file knows its form."""
    found = {
        source.where: node.lineno
        for source in in_packages(*set(CORE) - {"retraining.core.naming"}, "retraining.hooks", *OPERATORS, *DAGS)
        for node in ast.walk(source.tree)
        if _splits_a_name(node)
    }
    findings = [f"{where}:{line}" for where, line in found.items() if where not in NAMES_READ_ELSEWHERE]
    assert not findings, one_per_line(findings)
    assert set(found) == set(NAMES_READ_ELSEWHERE), "an exception that nobody needs any more"


@pytest.mark.parametrize("code", ["key.split('-')[0]", "uri.rpartition('/')", "name.rsplit('/', 1)"])
def test_each_way_to_take_a_name_apart_is_seen(code: str) -> None:
    """The rule above finds every usual spelling, and leaves words alone."""
    assert any(map(_splits_a_name, ast.walk(ast.parse(code))))
    assert not any(map(_splits_a_name, ast.walk(ast.parse("text.split(', ')"))))


def _python_files() -> list[Path]:
    folders = ("dags", "plugins", "trainer", "dev", "packages", "tests")
    found = (path for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))
    return sorted(path for path in found if "__pycache__" not in path.parts)


def test_files_have_a_readable_size() -> None:
    """A file of more than 600 lines is two modules; what a program writes is as long as it is."""
    texts = {path: path.read_text(encoding="utf-8") for path in _python_files()}
    sizes = {path: len(text.splitlines()) for path, text in texts.items() if RENDERED not in text[:400]}
    findings = [
        f"{path.relative_to(REPOSITORY)} has {size} lines, at most {MAX_FILE_LINES}"
        for path, size in sizes.items()
        if size > MAX_FILE_LINES
    ]
    assert not findings, one_per_line(findings)


def _statement_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_have_a_readable_size() -> None:
    """A function of more than 40 lines of statements is two steps."""
    findings = [
        f"{source.where}:{node.lineno} {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"
        for source in PRODUCT
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lines := _statement_lines(node)) > MAX_FUNCTION_LINES
    ]
    assert not findings, one_per_line(findings)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many things a caller may give, without `self`."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"])) + bool(given.vararg) + bool(given.kwarg)


def test_functions_take_few_things_and_fit_on_a_screen() -> None:
    """A function of more than 50 lines is two steps; of more than 8 parameters some are one value."""
    findings = [
        f"{source.where}:{node.lineno} {node.name}: {lines} lines, {parameters} parameters"
        for source in PRODUCT
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
        for lines, parameters in [(node.end_lineno - node.lineno + 1, _parameters(node))]
        if lines > MAX_LINES_IN_ALL or parameters > MAX_PARAMETERS
    ]
    assert not findings, one_per_line(findings)


UNTYPED = "plugins/retraining/core/untyped.py"


def test_a_mapping_of_anything_has_a_name_that_says_whose() -> None:
    """`dict[str, Any]` stands in one file alone, where each has a name and a reason."""
    findings = [
        f"{source.where}:{node.lineno} dict[str, Any]; expected: a value class, or a name of {UNTYPED}"
        for source in PRODUCT
        if source.where.startswith("plugins/") and source.where != UNTYPED
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]"
    ]
    assert not findings, one_per_line(findings)


def test_files_have_names_that_say_something() -> None:
    """Nobody guesses what is in `utils.py`."""
    findings = [str(path.relative_to(REPOSITORY)) for path in _python_files() if path.stem.lower() in BANNED_STEMS]
    assert not findings, one_per_line(findings)


def test_few_rules_are_left_out_by_hand() -> None:
    """Where many places would need the same exception, the rule or the code changes."""
    marks = [path for path in _python_files() for line in path.read_text().splitlines() if "# " + "noqa" in line]
    assert len(marks) <= MAX_EXCEPTIONS
