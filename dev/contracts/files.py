"""Every file that is rendered, with its text."""

from __future__ import annotations

from pathlib import Path

from contracts.dataclasses import render_package
from contracts.schemas import render_schema
from retraining.core.documents import KINDS

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
SCHEMAS_PATH = REPOSITORY_PATH / "include" / "contracts"
DOCUMENTS_PATH = REPOSITORY_PATH / "trainer" / "contract" / "documents"


def render_files() -> dict[Path, str]:
    """Return the text of every rendered file, by its path."""
    schemas = {SCHEMAS_PATH / f"{kind}.schema.json": render_schema(model) for kind, model in KINDS.items()}
    return {**schemas, **{DOCUMENTS_PATH / name: text for name, text in render_package().items()}}


def generated_paths() -> set[Path]:
    """Return the files that stand where rendered ones belong."""
    return {*SCHEMAS_PATH.glob("*.schema.json"), *DOCUMENTS_PATH.glob("*.py")}
