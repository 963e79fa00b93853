"""Every example and every wrong value through the models, and through the JSON Schemas of kinds that have one."""

from __future__ import annotations

import json

import jsonschema
import pytest

from retraining.core import documents
from retraining.core.errors import ContractError
from tests.support.contract_rows import ROWS, Row
from tests.support.contracts import EXAMPLES, FURTHER, SCHEMAS, VALID, kind_of, missing

PUBLISHED = {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.schema.json")}


def validator(kind):
    schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_example_is_read_by_the_model_and_comes_out_as_it_went_in(path):
    raw = json.loads(path.read_bytes())
    document = documents.KINDS[kind_of(path)].parse(path.read_bytes(), path.name)
    assert list(missing(raw, json.loads(document.to_bytes()), path.stem)) == []


@pytest.mark.parametrize("path", [path for path in VALID if kind_of(path) in PUBLISHED], ids=lambda path: path.stem)
def test_a_valid_example_is_taken_by_the_schema(path):
    """As it was stored, and as the model writes it."""
    document = documents.KINDS[kind_of(path)].parse(path.read_bytes(), path.name)
    validator(kind_of(path)).validate(json.loads(path.read_bytes()))
    validator(kind_of(path)).validate(json.loads(document.to_bytes()))


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind in PUBLISHED], ids=lambda row: row.name)
def test_a_wrong_value_is_refused_by_the_schema(row: Row):
    assert not validator(row.kind).is_valid(row.document())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_wrong_value_is_refused_by_name(row: Row):
    """The message names the document, the field and what was expected."""
    with pytest.raises(ContractError) as caught:
        documents.KINDS[row.kind].parse(json.dumps(row.document()), "gs://bucket/it.json")
    for saying in ("gs://bucket/it.json: ", *row.sayings()):
        assert saying in str(caught.value)


@pytest.mark.parametrize(("stored", "name"), [("words", "message"), ("because", "reason")])
def test_a_field_has_its_stored_name_alone(stored: str, name: str):
    """What code calls it is an unknown key, so that both sides refuse the same documents."""
    raw = json.loads((EXAMPLES.parents[1] / "stored" / "ledger.json").read_bytes())
    raw[name] = raw.pop(stored)
    with pytest.raises(ContractError, match=name):
        documents.Ledger.parse(json.dumps(raw), "gs://bucket/it.json")


@pytest.mark.parametrize("kind", documents.KINDS)
def test_every_kind_has_two_valid_examples_and_a_wrong_value(kind):
    """One of the two may be the stored document. A further example has its reason in `FURTHER`."""
    assert len([path for path in VALID if kind_of(path) == kind]) >= 2
    assert len([path for path in EXAMPLES.glob(f"{kind}__*.json") if path.stem not in FURTHER]) in (1, 2)
    assert kind in {row.kind for row in ROWS}


@pytest.mark.parametrize("kind", sorted(PUBLISHED))
def test_a_schema_obeys_its_dialect(kind):
    jsonschema.Draft202012Validator.check_schema(validator(kind).schema)


def test_every_further_example_is_there():
    assert {path.stem for path in EXAMPLES.glob("*.json")} > set(FURTHER)
