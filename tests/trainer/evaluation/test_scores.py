"""Scores per example: written by one trainer, compared by another, refused where they break the contract."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.refusals import refuses
from tests.trainer.conftest import Run
from trainer.contract.documents import EvaluateRequest, Evaluation
from trainer.contract.reading import parse_document, serialise
from trainer.errors import DataError
from trainer.evaluation.job import evaluate
from trainer.input import open_source
from trainer.task import main


@pytest.fixture(scope="module")
def models(exported: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two trained models, by their part in the comparison."""
    uris = {}
    for side, rate in (("challenger", 0.01), ("champion", 1e-4)):
        folder = tmp_path_factory.mktemp(side)
        training = {"epochs": 1, "model": "dense", "hyperparameters": {"learning_rate": rate, "hidden_units": [8]}}
        uris[side] = exported.train(exported.train_request_in(folder, training=training)).model_uri
    return uris


@pytest.fixture
def compare(exported: Run, models: dict[str, str], tmp_path: Path) -> Callable[..., Evaluation]:
    """Compares in this process; scores of the sides in `given` are read and not made."""

    def compare_models(given: dict[str, Path], **changes: Any) -> Evaluation:
        (tmp_path / "evaluation.json").unlink(missing_ok=True)
        changes["evaluation_uri"] = str(tmp_path / "evaluation.json")
        request = exported.evaluate_json(models["challenger"], models["champion"], **changes)
        request["challenger"]["report_uri"] = str(Path(models["challenger"]).parent / "report.json")
        for side, uri in given.items():
            request[side]["scores_uri"] = str(uri)
        document = parse_document(EvaluateRequest, json.dumps(request).encode(), "evaluate_request")
        manifest = exported.manifest()
        with open_source(manifest, manifest.splits, exported.storage) as source:
            return evaluate(document, manifest, source, exported.storage)

    return compare_models


def ask_for_scores(
    exported: Run, models: dict[str, str], folder: Path, splits: Sequence[str] = ("test",)
) -> dict[str, Path]:
    """Score both models in a job of their own; return the documents."""
    documents = {side: folder / side / "scores.json" for side in models}
    request = {
        **{name: exported.evaluate_json("m", None)[name] for name in ("schema_version", "model", "run_key", "label")},
        "kind": "score_request",
        "manifest_uri": exported.uri("manifest.json"),
        "key": "parcel_id",
        "splits": list(splits),
        "models": [{"model_uri": models[side], "scores_uri": str(uri)} for side, uri in documents.items()],
    }
    assert main(["score", "--request", exported.write("score_request.json", request)]) == 0
    return documents


def test_scores_of_another_job_give_the_very_same_evaluation(exported, models, compare, tmp_path: Path) -> None:
    """To the last bit, whichever side was scored elsewhere."""
    here = compare({})
    documents = ask_for_scores(exported, models, tmp_path)
    assert here.difference is not None
    for sides in (["challenger"], ["champion"], ["challenger", "champion"]):
        found = compare({side: documents[side] for side in sides})
        assert dataclasses.replace(found, serving=here.serving) == here  # which has times
        assert (found.serving.skipped is None) is ("challenger" not in sides)
    document = json.loads(documents["champion"].read_bytes())
    assert document["model_uri"] == models["champion"]
    assert document["framework"]["tensorflow"]
    assert document["splits"]["test"]["rows"] == here.rows


def test_curves_and_worst_examples_are_of_the_given_scores(exported, models, compare, tmp_path: Path) -> None:
    """An oracle's file: its ROC goes through the corner, its calibration has two bins; the champion's are its own."""
    document = ask_for_scores(exported, models, tmp_path)["challenger"]
    values = json.loads(document.read_bytes())
    file = values["splits"]["test"]
    table = pq.read_table(file["uri"])
    pq.write_table(rewritten(table, "score", pc.cast(table["label"], pa.float64())), file["uri"])
    file["sha256"] = hashlib.sha256(Path(file["uri"]).read_bytes()).hexdigest()
    document.write_text(json.dumps(values))
    found, here = compare({"challenger": document}), compare({})
    curves = found.challenger.curves
    assert curves.roc.false_positive_rate[:2] == (0.0, 0.0)
    assert curves.roc.true_positive_rate[:2] == (0.0, 1.0)
    assert [(part.score, part.positive) for part in curves.calibration] == [(0.0, 0.0), (1.0, 1.0)]
    assert sum(part.rows for part in curves.calibration) == found.rows
    assert found.champion.curves == here.champion.curves != here.challenger.curves
    assert max(item.loss for item in found.worst) == pytest.approx(0.0, abs=1e-6)


def test_the_threshold_is_the_same_by_given_scores(exported, models, compare, tmp_path: Path) -> None:
    """Of the validation split too; a document that lacks them is refused."""
    rule = {"rule": "max_f1"}
    here = compare({}, threshold=rule, scores_uri=str(tmp_path / "judged"))
    document = ask_for_scores(exported, models, tmp_path, splits=["test", "validation"])["challenger"]
    found = compare({"challenger": document}, threshold=rule)
    assert dataclasses.replace(found, serving=here.serving) == here
    values = json.loads(document.read_bytes())
    del values["splits"]["validation"]
    document.write_text(json.dumps(values))
    with refuses(DataError, where="challenger, split validation", found="no file"):
        compare({"challenger": document}, threshold=rule)


def test_the_judge_leaves_the_scores_that_it_made(exported, models, compare, tmp_path: Path) -> None:
    """The same rows as a job of their own writes."""
    documents = ask_for_scores(exported, models, tmp_path)
    compare({}, scores_uri=str(tmp_path / "judged"))
    for side, document in documents.items():
        ours = json.loads((tmp_path / "judged" / side / "scores.json").read_bytes())
        theirs = json.loads(document.read_bytes())
        tables = [pq.read_table(each["splits"]["test"]["uri"]).sort_by("key") for each in (ours, theirs)]
        assert tables[0].equals(tables[1])
        assert ours["model_digest"] == theirs["model_digest"]


def test_a_champion_that_its_trainer_cannot_score_is_left_out(exported, models, compare, tmp_path: Path) -> None:
    """The document says why; the challenger is judged alone."""
    document = ask_for_scores(exported, models, tmp_path)["champion"]
    values = {**json.loads(document.read_bytes()), "splits": {}, "skipped": "reads 'gone', which is not there"}
    document.write_text(json.dumps(values))
    found = compare({"champion": document})
    assert (found.champion, found.difference) == (None, None)
    assert found.champion_skipped == "champion version 1 reads 'gone', which is not there"
    document.write_text(json.dumps({**values, "model_uri": models["challenger"]}))
    with pytest.raises(DataError, match=r"challenger model: reads 'gone'"):
        compare({"challenger": document})


def rewritten(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    """Return a table with another column in the place of one."""
    return table.set_column(table.column_names.index(column), column, values)


BROKEN: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "rows-missing": (lambda table: table.slice(2), r"2 keys are not scored: .*Expected each example of the split"),
    "rows-twice": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), r"401 rows.*Expected 400, each key"),
    "strange-row": (
        lambda table: pa.concat_tables([table, rewritten(table.slice(0, 1), "key", pa.array(["nobody"]))]),
        r"1 keys are no examples of this split: 'nobody'",
    ),
    "labels": (lambda table: rewritten(table, "label", pc.subtract(1.0, table["label"])), r"400 other labels: "),
    "nan": (
        lambda table: rewritten(table, "score", pa.array([float("nan"), *table["score"].to_pylist()[1:]])),
        r"1 scores are not finite",
    ),
    "null": (
        lambda table: rewritten(table, "score", pa.array([None, *table["score"].to_pylist()[1:]])),
        r"1 rows have no score",
    ),
    "logits": (
        lambda table: rewritten(table, "score", pc.add(table["score"], 1.0)),
        r"a score of 1\.\d+\. Expected probabilities",
    ),
    "lists": (
        lambda table: rewritten(table, "score", pa.array([[0.5]] * len(table))),
        r"cannot be read: .*score \(double\)",
    ),
    "no-score": (lambda table: table.drop_columns(["score"]), r"cannot be read: .*score"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_scores_that_break_the_contract_are_refused_by_name(exported, models, compare, tmp_path: Path, name) -> None:
    """With side, split and file."""
    change, saying = BROKEN[name]
    document = ask_for_scores(exported, models, tmp_path)["champion"]
    values = json.loads(document.read_bytes())
    file = values["splits"]["test"]
    pq.write_table(change(pq.read_table(file["uri"])), file["uri"])
    file["sha256"] = hashlib.sha256(Path(file["uri"]).read_bytes()).hexdigest()
    document.write_text(json.dumps(values))
    with pytest.raises(DataError, match=saying) as refused:
        compare({"champion": document})
    assert f"champion, split test, {file['uri']}: " in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "saying"),
    [
        pytest.param("sha256", "0" * 64, r"Expected 0{64}, as the document says", id="other-digest"),
        pytest.param("uri", "/nowhere/test.parquet", r"there is no such file", id="no-file"),
        pytest.param("shards", [{"uri": "/a", "sha256": "0" * 64, "rows": 400}], r"/a with SHA-256 0+ was", id="files"),
    ],
)
def test_a_document_about_other_files_is_refused(exported, models, compare, tmp_path: Path, field, value, saying):
    """Files that the run's manifest does not name, or another content."""
    document = ask_for_scores(exported, models, tmp_path)["challenger"]
    values = json.loads(document.read_bytes())
    values["splits"]["test"][field] = value
    document.write_text(json.dumps(values))
    with pytest.raises(DataError, match=saying):
        compare({"challenger": document})


def test_scores_of_another_model_are_refused(exported, models, compare, tmp_path: Path) -> None:
    """By its address, and by its digest where the report says one."""
    documents = ask_for_scores(exported, models, tmp_path)
    with pytest.raises(DataError, match=r"scores of .* Expected of .*"):
        compare({"champion": documents["challenger"]})
    values = json.loads(documents["challenger"].read_bytes())
    documents["challenger"].write_text(json.dumps({**values, "model_digest": "0" * 64}))
    with pytest.raises(DataError, match=r"a model with SHA-256 0{64}"):
        compare({"challenger": documents["challenger"]})


def test_every_split_has_its_scores(exported, models, compare, tmp_path: Path) -> None:
    """A document without the test split is none; it is deleted and made again, as the way out says."""
    document = ask_for_scores(exported, models, tmp_path)["champion"]
    document.write_text(json.dumps({**json.loads(document.read_bytes()), "splits": {}}))
    with refuses(DataError, found="no file", way_out="clear the task"):
        compare({"champion": document})
    document.unlink()
    assert compare({"champion": ask_for_scores(exported, models, tmp_path)["champion"]}).champion is not None


def test_a_model_that_cannot_read_the_examples_is_said_so(exported, models, tmp_path: Path) -> None:
    """The scoring job ends well: whether the run goes on is not its affair."""
    manifest = exported.manifest()
    schema = tuple(column for column in manifest.columns if column.name != "weight")
    assert len(schema) < len(manifest.columns)
    uri = exported.path / "narrow_manifest.json"
    uri.write_bytes(serialise(dataclasses.replace(manifest, columns=schema)))
    document = tmp_path / "scores.json"
    request = {
        **{name: exported.evaluate_json("m", None)[name] for name in ("schema_version", "model", "run_key", "label")},
        "kind": "score_request",
        "manifest_uri": str(uri),
        "key": "parcel_id",
        "splits": ["test"],
        "models": [{"model_uri": models["champion"], "scores_uri": str(document)}],
    }
    assert main(["score", "--request", exported.write("score_narrow.json", request)]) == 0
    assert json.loads(document.read_bytes())["skipped"].startswith("reads 'weight',")


def test_the_best_champion_of_late_is_scored_on_the_same_rows(exported, models, compare) -> None:
    """A third model beside the two: here the champion's file again, so that both differences are the same."""
    best = {**exported.evaluate_json("m", "c")["champion"], "model_uri": models["champion"], "version_id": "7"}
    found = compare({}, judge_best=True, best=best)
    assert found.champion is not None
    assert found.best == found.champion.metrics
    assert found.best_difference == found.difference
    assert found.best_evidence == found.difference_evidence
    assert found.best_skipped is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_uri": "/nowhere/model"}, "version 7 cannot be asked: /nowhere/model: there is no model"),
        ({"model_digest": "0" * 64}, "it was written again since the report"),
        ({"scores_uri": "/nowhere/scores.json"}, "version 7 cannot be asked: /nowhere/scores.json"),
    ],
    ids=["gone", "another", "not scored"],
)
def test_what_is_wrong_with_the_best_of_late_ends_no_comparison(exported, models, compare, change, reason) -> None:
    """It is left out, with the reason; challenger and champion are compared as ever."""
    best = {**exported.evaluate_json("m", "c")["champion"], "model_uri": models["champion"], "version_id": "7"}
    found = compare({}, judge_best=True, best={**best, **change})
    assert found.difference is not None
    assert (found.best, found.best_difference) == (None, None)
    assert found.best_skipped is not None
    assert reason in found.best_skipped


def test_scores_of_another_trainer_of_the_best_of_late_are_taken(exported, models, compare, tmp_path: Path) -> None:
    """As those of the other two sides."""
    documents = ask_for_scores(exported, models, tmp_path)
    best = {**exported.evaluate_json("m", "c")["champion"], "model_uri": models["champion"], "version_id": "7"}
    here = compare({}, judge_best=True, best=best)
    found = compare({}, judge_best=True, best={**best, "scores_uri": str(documents["champion"])})
    assert found.best_difference == here.best_difference
