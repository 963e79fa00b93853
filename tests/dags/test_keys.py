"""Every key of a model's YAML earns its place: its example is taken, and something follows from it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from contracts.keys import keys
from contracts.models import document_models_in
from retraining.core.spec.files import REMOVED
from tests.support.consequences import differing
from tests.support.key_examples import EXAMPLES, Example

PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "retraining"
NEVER_ALONE = {"evaluation.threshold"}
"""Keys that are a value, or a section with keys of its own."""


def test_every_key_has_an_example() -> None:
    """A section has none, its keys have; nor has a key that files of earlier releases had."""
    sections = {key.name for key in keys() if any(document_models_in(key.annotation))} - NEVER_ALONE
    removed = {".".join(place) for place in REMOVED}
    assert EXAMPLES.keys() == {key.name for key in keys()} - sections - removed


@pytest.mark.parametrize("key", EXAMPLES)
def test_something_follows_from_it(key: str) -> None:
    """A plan, a statement, a job, a finding, a verdict or a DAG differs; else nobody would see that it is there."""
    example = EXAMPLES[key] if isinstance(EXAMPLES[key], Example) else Example(value=EXAMPLES[key])
    if example.refused:
        with pytest.raises(ValueError, match=example.refused):
            example.specs(key)
        return
    before, after = example.specs(key)
    if example.read_by:
        assert key.rpartition(".")[2] in _attributes_in(PLUGIN / example.read_by)
        return
    assert differing(before, after), f"{key}: {example.value!r} changes nothing"


def _attributes_in(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}
