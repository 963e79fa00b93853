"""Every file that is rendered, with its text."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from contracts.column_types import render_roles, render_types
from contracts.dataclasses import render_package
from contracts.keys import TABLES as KEY_TABLES
from contracts.keys import render_keys
from contracts.metrics import render_module, render_page_table
from contracts.records import render_documents
from contracts.schemas import render_schema
from retraining.core import column_types
from retraining.core.documents import (
    PLACES,
    Manifest,
    ModelScores,
    Report,
    ScoreRequest,
    TrainRequest,
    json_text,
)

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
SCHEMAS_PATH = REPOSITORY_PATH / "plugins" / "retraining" / "package_data" / "contracts"
FOREIGN_KINDS = (TrainRequest, Manifest, Report, ScoreRequest, ModelScores)
"""What a trainer of one's own reads and writes, in any language; the other kinds have readers in Python alone."""
COPIES: dict[Path, ModuleType] = {
    REPOSITORY_PATH / "trainer" / "contract" / "column_types.py": column_types,
    REPOSITORY_PATH / "trainer" / "contract" / "json_text.py": json_text,
    REPOSITORY_PATH / "examples" / "trainer_kit" / "trainer_kit" / "json_text.py": json_text,
}
"""Modules that import nothing, and so are the same on both sides."""
DOCUMENTS_PATH = REPOSITORY_PATH / "trainer" / "contract" / "documents"
METRICS_PATH = REPOSITORY_PATH / "trainer" / "contract" / "metrics.py"
TABLES: dict[Path, dict[str, Callable[[], str]]] = {
    REPOSITORY_PATH / "docs" / "model-spec.md": {"metrics": render_page_table}
    | {f"keys of {name}": functools.partial(render_keys, name) for name in KEY_TABLES},
    REPOSITORY_PATH / "docs" / "types.md": {"types": render_types, "roles": render_roles},
    REPOSITORY_PATH / "docs" / "documents.md": {
        f"documents of {place}": functools.partial(render_documents, kinds) for place, kinds in PLACES.items()
    },
}
"""Tables in pages, by the name that stands in the comments around them."""


def render_files() -> dict[Path, str]:
    """Return the text of every rendered file, by its path."""
    schemas = {SCHEMAS_PATH / f"{kind.kind_name()}.schema.json": render_schema(kind) for kind in FOREIGN_KINDS}
    documents = {DOCUMENTS_PATH / name: text for name, text in render_package().items()}
    copies = {path: _copied(module) for path, module in COPIES.items()}
    pages = {path: _with_tables(path, tables) for path, tables in TABLES.items()}
    return {**schemas, **documents, **copies, METRICS_PATH: render_module(), **pages}


def generated_paths() -> set[Path]:
    """Return the files that stand where rendered ones belong."""
    return {*COPIES, METRICS_PATH, *TABLES, *SCHEMAS_PATH.glob("*.schema.json"), *DOCUMENTS_PATH.glob("*.py")}


def _copied(module: ModuleType) -> str:
    """Return the text of a module that both sides have, with a note at the end of its docstring."""
    summary, rest = inspect.getsource(module).split('\n"""\n', 1)
    note = f"Copied by `make contracts` from `{module.__name__}`; do not edit."
    return f'{summary}\n\n{note}\n"""\n{rest}'


def _with_tables(path: Path, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return the text of a page with its tables as they are now.

    Raises:
        ValueError: A table has no place in it.
    """
    text = path.read_text(encoding="utf-8")
    for name, render in tables.items():
        start, end = f"<!-- {name}: rendered by `make contracts` -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{path} has no place for the table {name}: expected {start}and {end}around it")
        text = f"{before}{start}\n{render()}\n\n{end}{after}"
    return text
