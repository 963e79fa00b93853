"""What a class, a field or a type's name means: its docstring, read from the source so that no import pays for it."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
from collections.abc import Iterator, Mapping
from types import ModuleType


@functools.cache
def field_docstrings(cls: type) -> Mapping[str, str]:
    """Return what stands below each field of a class, by the field's name."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(cls) or cls))
    definition = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    return dict(_documented(definition.body))


@functools.cache
def name_docstrings(module: ModuleType) -> Mapping[str, str]:
    """Return what stands below each name that a module assigns, by the name."""
    return dict(_documented(ast.parse(inspect.getsource(module)).body))


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, following in itertools.pairwise(body):
        target = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]  # type: ignore[assignment]  # of any kind; only names are taken
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if isinstance(target, ast.Name) and is_text:
            yield target.id, inspect.cleandoc(ast.literal_eval(following.value))  # type: ignore[attr-defined]  # see is_text
