"""Documents: the examples, the round trip, and what a wrong one says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.contract_rows import ROWS, Row
from tests.support.contracts import EXAMPLES, VALID, kind_of, missing
from tests.support.refusals import refuses
from tests.support.trainer_documents import OWN
from trainer.contract import documents
from trainer.contract.reading import parse_document, read_document, serialise
from trainer.errors import ContractError
from trainer.storage import Storage

TRAIN = json.loads((EXAMPLES / "train_request__wide_deep.json").read_text())


@pytest.mark.parametrize("path", [path for path in VALID if kind_of(path) in OWN], ids=lambda path: path.stem)
def test_a_valid_example_is_read_and_comes_out_as_it_went_in(path: Path) -> None:
    document = parse_document(OWN[kind_of(path)], path.read_bytes(), str(path))
    written = serialise(document)
    assert list(missing(json.loads(path.read_bytes()), json.loads(written), path.stem)) == []
    assert written.endswith(b"}\n")
    assert parse_document(OWN[kind_of(path)], written, "again") == document


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind in OWN], ids=lambda row: row.name)
def test_a_wrong_value_is_refused_with_its_address_and_path(row: Row) -> None:
    """In the words of the Airflow side: `tests/core/documents/test_contracts.py` runs the same rows."""
    with pytest.raises(ContractError) as caught:
        parse_document(OWN[row.kind], json.dumps(row.document()).encode(), "gs://bucket/it.json")
    for saying in ("gs://bucket/it.json: ", *row.sayings()):
        assert saying in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"kind": "report"}, "kind is 'report'. Expected kind 'train_request'", id="kind"),
        pytest.param({"schema_version": 2}, "schema_version is 2. Expected schema_version 1", id="version"),
        pytest.param({"feature": []}, "Did you mean 'features'", id="unknown-key"),
        pytest.param({"training": {"model": "dense"}}, "training has no key 'epochs'", id="missing-key"),
    ],
)
def test_the_message_names_what_was_found_and_the_way_out(change: dict, words: str) -> None:
    with pytest.raises(ContractError) as caught:
        parse_document(
            documents.TrainRequest, json.dumps({**TRAIN, **change}).encode(), "gs://bucket/train_request.json"
        )
    assert words in str(caught.value)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ContractError, match="is a JSON list"):
        parse_document(documents.TrainRequest, b"[]", "x")


def test_a_missing_document_and_one_that_is_not_json_are_named(tmp_path: Path) -> None:
    with refuses(ContractError, where="train_request.json", found="no such document"):
        read_document(documents.TrainRequest, str(tmp_path / "train_request.json"), Storage())
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ContractError, match="is not JSON"):
        read_document(documents.TrainRequest, str(tmp_path / "broken.json"), Storage())


@pytest.mark.parametrize(("value", "words"), [(float("nan"), "cannot be written"), (1.5, "label_rate is 1.5")])
def test_what_breaks_the_contract_is_never_written(value: float, words: str) -> None:
    path = EXAMPLES / "evaluation__duel.json"
    evaluation = parse_document(documents.Evaluation, path.read_bytes(), "x")
    object.__setattr__(evaluation, "label_rate", value)
    with pytest.raises(ContractError, match=words):
        serialise(evaluation)
