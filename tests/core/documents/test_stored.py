"""What an earlier release stored can still be read: `tests/stored` has a document of each kind, and is never changed.

Most are of nights on the local cloud with release 0.1. When a kind gets a new form, its old one stays here beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retraining.core.documents import KINDS
from tests.support.contracts import missing

STORED = Path(__file__).resolve().parents[2] / "stored"


def test_there_is_one_of_each_kind() -> None:
    """A new kind adds its first document."""
    assert {path.stem for path in STORED.glob("*.json")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_whole(kind: str) -> None:
    """Nothing of it is refused, and nothing is lost."""
    content = (STORED / f"{kind}.json").read_bytes()
    assert list(missing(json.loads(content), KINDS[kind].parse(content).to_json(), kind)) == []
