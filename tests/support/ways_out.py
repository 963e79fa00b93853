"""The ways out that the trainer's messages name, found in its source."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from trainer import errors

ROOT = Path(__file__).resolve().parents[2]
ERRORS = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__}
LEAST = 8


def ways_out(*paths: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each error's fourth part in some files: where it is made, and the texts that it is made of."""
    for path in sorted(found for pattern in paths for found in ROOT.glob(pattern)):
        names = path.relative_to(ROOT).with_suffix("").parts
        module = importlib.import_module(".".join(names[:-1] if path.stem == "__init__" else names))
        where = f"{path.parent.name}/{path.name}" if path.stem == "__init__" else path.name
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ERRORS:
                starred = any(isinstance(part, ast.Starred) for part in call.args)
                parts = call.args[-1:] if starred else call.args[3:]
                parts += [keyword.value for keyword in call.keywords if keyword.arg == "way_out"]
                for part in parts:
                    yield f"{where}:{call.lineno}", texts_of(part, vars(module))


def texts_of(part: ast.expr, names: dict[str, object]) -> list[str]:
    """Return the texts in an expression, and those that its names stand for in the module; else the expression."""
    values = [node.value for node in ast.walk(part) if isinstance(node, ast.Constant)]
    values += [names.get(node.id) for node in ast.walk(part) if isinstance(node, ast.Name)]
    texts = [text for text in values if isinstance(text, str) and len(text) >= LEAST] or [ast.unparse(part)]
    return [text for text in texts if text != errors.NEW_ATTEMPT] or texts  # what it is advised for tells them apart
