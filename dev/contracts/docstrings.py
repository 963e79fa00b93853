"""What a class, a field or a type's name means: its docstring, read from the source so that no import pays for it."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping
from types import ModuleType

from pydantic import BaseModel


@functools.cache
def field_docstrings(cls: type[BaseModel]) -> Mapping[str, str]:
    """Return what stands below each field of a class, inherited ones too, by the field's name."""
    found: dict[str, str] = {}
    for each in reversed([other for other in cls.__mro__ if other.__module__.startswith("retraining.")]):
        tree = ast.parse(inspect.getsource(inspect.getmodule(each) or each))
        classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        found |= _documented(next(node for node in classes if node.name == each.__name__).body)
    return {name: text for name, text in found.items() if name in cls.model_fields}


def without_links(text: str) -> str:
    """Return a docstring for readers elsewhere than in docs/, where its links lead nowhere."""
    return re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text)


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
