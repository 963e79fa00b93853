"""What is rendered from the models is in the repository as it would be rendered now."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from contracts.files import DOCUMENTS_PATH, REPOSITORY_PATH, generated_paths, render_files
from retraining.core.documents import KINDS

FILES = render_files()
PAGE = REPOSITORY_PATH / "docs" / "trainer-contract.md"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_rendered_file_is_as_it_would_be_rendered_now(path: Path) -> None:
    """Otherwise: `make contracts`."""
    assert path.read_text(encoding="utf-8") == FILES[path]


def test_no_file_is_left_of_a_kind_that_is_gone() -> None:
    """Otherwise: `make contracts`."""
    assert generated_paths() == set(FILES)


def test_every_schema_that_the_page_for_trainers_names_is_rendered() -> None:
    named = set(re.findall(r"\w+\.schema\.json", PAGE.read_text(encoding="utf-8")))
    assert named == {path.name for path in FILES if path.suffix == ".json"}


def test_a_field_has_one_name_and_one_docstring_on_both_sides() -> None:
    """Of a document whose files show what a dataclass can hold: limits, defaults, another name in JSON, docstrings."""
    tree = ast.parse((DOCUMENTS_PATH / "export.py").read_text(encoding="utf-8"))
    manifest = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Manifest")
    text = ast.unparse(manifest)
    assert "columns: Annotated[tuple[Column, ...], Limits(min_length=1), Named('schema')]" in text
    assert "layout: ShardLayout = field(default_factory=ShardLayout)" in text
    assert "Wall time of the replica that finished last." in text
    assert ast.get_docstring(manifest) == KINDS["manifest"].__doc__
