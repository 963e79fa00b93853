"""Every contract example through the JSON Schema and through the models: both must say the same."""

from __future__ import annotations

import json

import jsonschema
import pytest

from retraining.core import documents, settings
from retraining.core.errors import ContractError
from tests.support.contracts import missing

CONTRACTS = settings.include_path() / "contracts"
VALID = sorted((CONTRACTS / "examples" / "valid").glob("*.json"))
INVALID = sorted((CONTRACTS / "examples" / "invalid").glob("*.json"))


def kind_of(path):
    return path.name.split("__")[0]


def validator(kind):
    schema = json.loads((CONTRACTS / f"{kind}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_example_is_taken_by_schema_and_model_and_comes_out_as_it_went_in(path):
    raw = json.loads(path.read_bytes())
    validator(kind_of(path)).validate(raw)
    document = documents.KINDS[kind_of(path)].parse(path.read_bytes(), path.name)
    written = json.loads(document.to_bytes())
    validator(kind_of(path)).validate(written)
    assert list(missing(raw, written, path.stem)) == []


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_example_is_refused_by_schema_and_model(path):
    assert not validator(kind_of(path)).is_valid(json.loads(path.read_bytes()))
    with pytest.raises(ContractError):
        documents.KINDS[kind_of(path)].parse(path.read_bytes(), path.name)


@pytest.mark.parametrize("kind", documents.KINDS)
def test_every_kind_has_a_schema_and_examples_of_both_sorts(kind):
    jsonschema.Draft202012Validator.check_schema(validator(kind).schema)
    assert kind in {kind_of(path) for path in VALID}
    assert kind in {kind_of(path) for path in INVALID}
