"""What the kit says of the contract is what the contract says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trainer_kit.data import MOST_CATEGORIES, Encoder

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("kind", "name"), [("train_request", "TRAIN_KEYS"), ("score_request", "SCORE_KEYS")])
def test_the_keys_of_requests_are_those_of_the_schema(kind: str, name: str) -> None:
    """A new key of a request is known here too, or the examples' images refuse every request."""
    from trainer_kit import job

    schema = json.loads((REPOSITORY / "include" / "contracts" / f"{kind}.schema.json").read_bytes())
    assert getattr(job, name) == set(schema["properties"])


def test_what_training_did_not_see_is_missing() -> None:
    """So are rare categories of very many, and NULL; whole numbers are categories by their text."""
    features = [{"name": "zone", "kind": "categorical"}, {"name": "weight", "kind": "numeric", "missing": "zero"}]
    many = [b"common", b"common", *(f"rare {number:03d}".encode() for number in range(MOST_CATEGORIES + 5))]
    encoder = Encoder.fit(features, {"zone": many, "weight": [1.0] * len(many)})
    assert len(encoder.categories["zone"]) == MOST_CATEGORIES
    matrix = encoder.encode({"zone": [b"common", b"rare 204", b"new", None], "weight": [1, True, 2.5, None]})
    np.testing.assert_array_equal(matrix, np.array([[0, 1], [np.nan, 1], [np.nan, 2.5], [np.nan, np.nan]], np.float32))
    whole = Encoder.fit([features[0]], {"zone": [7, 7, -1]})
    np.testing.assert_array_equal(whole.encode({"zone": [-1, 7, 8]}), np.array([[1], [0], [np.nan]], np.float32))
