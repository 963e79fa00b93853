"""Every file that is rendered, with its text."""

from __future__ import annotations

from pathlib import Path

from contracts.dataclasses import render_package
from contracts.schemas import render_schema
from retraining.core.documents import KINDS, json_text

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
SCHEMAS_PATH = REPOSITORY_PATH / "include" / "contracts"
JSON_PATHS = (
    REPOSITORY_PATH / "trainer" / "contract" / "json_text.py",
    REPOSITORY_PATH / "examples" / "trainer_kit" / "trainer_kit" / "json_text.py",
)
DOCUMENTS_PATH = REPOSITORY_PATH / "trainer" / "contract" / "documents"


def render_files() -> dict[Path, str]:
    """Return the text of every rendered file, by its path."""
    schemas = {SCHEMAS_PATH / f"{kind}.schema.json": render_schema(model) for kind, model in KINDS.items()}
    documents = {DOCUMENTS_PATH / name: text for name, text in render_package().items()}
    return {**schemas, **documents, **dict.fromkeys(JSON_PATHS, _copied(Path(json_text.__file__)))}


def generated_paths() -> set[Path]:
    """Return the files that stand where rendered ones belong."""
    return {*JSON_PATHS, *SCHEMAS_PATH.glob("*.schema.json"), *DOCUMENTS_PATH.glob("*.py")}


def _copied(path: Path) -> str:
    """Return the text of a module that both sides have, with a note at the end of its docstring."""
    summary, rest = path.read_text(encoding="utf-8").split('\n"""\n', 1)
    note = f"Copied by `make contracts` from `retraining.core.documents.{path.stem}`; do not edit."
    return f'{summary}\n\n{note}\n"""\n{rest}'
