"""Documents: the examples, the round trip, and what a broken one says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.contract import documents
from trainer.contract.reading import parse, read, serialise
from trainer.errors import ContractError
from trainer.storage import Storage

EXAMPLES = Path(__file__).resolve().parents[3] / "include" / "contracts" / "examples"
OWN = {
    cls.kind: cls
    for cls in (
        documents.ExportRequest,
        documents.TrainRequest,
        documents.EvaluateRequest,
        documents.Manifest,
        documents.Span,
        documents.Report,
        documents.Evaluation,
        documents.Statistics,
    )
}


def examples(folder: str) -> list[Path]:
    return [path for path in sorted((EXAMPLES / folder).glob("*.json")) if kind_of(path) in OWN]


def kind_of(path: Path) -> str:
    return path.name.split("__")[0]


@pytest.mark.parametrize("path", examples("valid"), ids=lambda path: path.stem)
def test_a_valid_example_becomes_a_document(path: Path) -> None:
    document = parse(OWN[kind_of(path)], path.read_bytes(), str(path))
    assert document.run_key if hasattr(document, "run_key") else document.span


@pytest.mark.parametrize("path", examples("invalid"), ids=lambda path: path.stem)
def test_an_invalid_example_is_refused_with_its_address(path: Path) -> None:
    with pytest.raises(ContractError, match=path.name):
        parse(OWN[kind_of(path)], path.read_bytes(), str(path))


@pytest.mark.parametrize("kind", ["manifest", "span", "report", "evaluation"])
def test_what_the_trainer_writes_comes_back_unchanged(kind: str) -> None:
    for path in examples("valid"):
        if kind_of(path) == kind:
            document = parse(OWN[kind], path.read_bytes(), str(path))
            written = serialise(document)
            assert json.loads(written) == json.loads(path.read_bytes())
            assert written.endswith(b"}\n")
            assert parse(OWN[kind], written, "again") == document


TRAIN = json.loads((EXAMPLES / "valid/train_request__wide_deep.json").read_text())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"epoch": 3}, ["unknown key 'epoch'"], id="unknown-key"),
        pytest.param({"seed": "x"}, ['seed is "x"', "a whole number"], id="type"),
        pytest.param({"model_uri": "models/x"}, ['model_uri is "models/x"', "gs://"], id="pattern"),
        pytest.param({"kind": "report"}, ["kind is 'report'", "kind 'train_request'"], id="other-kind"),
        pytest.param({"training": {"model": "dense"}}, ["training has no key"], id="missing"),
        pytest.param({"label": {"name": "x", "kind": "ordinal"}}, ['label.kind is "ordinal"', "binary"], id="enum"),
    ],
)
def test_the_message_names_document_field_and_what_was_expected(change: dict, words: list[str]) -> None:
    with pytest.raises(ContractError) as caught:
        parse(documents.TrainRequest, json.dumps({**TRAIN, **change}).encode(), "gs://bucket/train_request.json")
    for word in ["gs://bucket/train_request.json", *words]:
        assert word in str(caught.value)


def test_an_unknown_key_close_to_a_known_one_gets_a_suggestion() -> None:
    with pytest.raises(ContractError, match="Did you mean 'features'"):
        parse(documents.TrainRequest, json.dumps({**TRAIN, "feature": []}).encode(), "x")


def test_a_missing_document_and_one_that_is_not_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"train_request\.json: there is no such document"):
        read(documents.TrainRequest, str(tmp_path / "train_request.json"), Storage())
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ContractError, match="is not JSON"):
        read(documents.TrainRequest, str(tmp_path / "broken.json"), Storage())


def test_a_number_that_is_not_finite_is_never_written() -> None:
    path = EXAMPLES / "valid/evaluation__duel.json"
    evaluation = parse(documents.Evaluation, path.read_bytes(), "x")
    object.__setattr__(evaluation, "label_rate", float("nan"))
    with pytest.raises(ContractError, match="cannot be written"):
        serialise(evaluation)
