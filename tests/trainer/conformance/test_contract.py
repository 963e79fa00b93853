"""The contract of a trainer (docs/trainer-contract.md), held to every image: `make check-trainer IMAGE=…`."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from tests.trainer.conformance.conftest import REPOSITORY, Trainer
from tests.trainer.conftest import Run
from trainer.contract.documents import ModelScores, Report
from trainer.contract.reading import parse_document, serialise
from trainer.evaluation.scores import Examples, align_scores
from trainer.saved_model.model import digest_folder
from trainer.storage import Storage

MODEL_FILES = ("saved_model.pb", "trainer.json")
"""One of them says that a model is there: of a SavedModel, or of another framework."""
FEATURES = [
    {"name": "carrier", "kind": "categorical"},
    {"name": "zone", "kind": "categorical"},
    {"name": "distance", "kind": "numeric"},
    {"name": "weight", "kind": "numeric"},
    {"name": "express", "kind": "numeric"},
]


def train_request(run: Run, folder: Path, trainer: Trainer, **changes: Any) -> Path:
    """Write a request whose outputs go into a folder."""
    training = {"model": "dense" if trainer.is_ours else "boosted_trees", "hyperparameters": {}, "epochs": 5}
    uris = {
        "model_uri": "model",
        "report_uri": "report.json",
        "checkpoint_uri": "checkpoints",
        "tensorboard_uri": "logs",
    }
    request = run.train_json(
        **{field: str(folder / "out" / name) for field, name in uris.items()},
        **{"features": FEATURES, "training": training | changes.pop("training", {}), **changes},
    )
    return write(folder, request)


def write(folder: Path, request: dict[str, Any]) -> Path:
    """Write a request into a folder; return its path."""
    path = folder / "in" / f"{request['kind']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(request))
    return path


def files(folder: Path) -> set[str]:
    """Everything below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, exported: Run) -> Run:
    """The run whose examples are learnt; jobs may write next to them, and must not."""
    return exported


@pytest.fixture(scope="module")
def trained(trainer: Trainer, run: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """A folder with a model and its report."""
    folder = tmp_path_factory.mktemp("trained")
    before = files(run.path)
    done = trainer.run("train", train_request(run, folder, trainer, digest_required=True))
    assert done.returncode == 0, done.stderr
    assert files(run.path) == before, "a training writes below its own addresses only"
    return folder, parse_document(Report, (folder / "out" / "report.json").read_bytes(), "report.json")


def test_a_training_leaves_a_model_and_its_report(trained, run) -> None:
    """The report is of this model: its digest, its rows, its answers to some of its own rows."""
    folder, report = trained
    assert report.model_uri == str(folder / "out" / "model")
    assert report.model_digest == digest_folder(folder / "out" / "model")
    assert any((folder / "out" / "model" / name).exists() for name in MODEL_FILES)
    assert (report.model, report.run_key) == (run.manifest().model, run.manifest().run_key)
    assert (report.train_rows, report.validation_rows) == tuple(
        run.manifest().splits[name].rows for name in ("train", "validation")
    )
    assert set(report.signature.inputs) == {feature["name"] for feature in FEATURES}
    assert 1 <= len(report.golden) <= 5
    assert all(0 <= request.prediction <= 1 for request in report.golden)
    assert {len(values) for values in report.history.values()} == {report.epochs_run}
    outside = {
        name for name in files(folder) if not name.startswith(("in/", "out/model/", "out/checkpoints/", "out/logs/"))
    }
    assert outside == {"out/report.json"}


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_report_is_of_the_request_that_was_read(trained) -> None:
    """It has the digest of its bytes."""
    folder, report = trained
    assert report.request_digest == sha256(folder / "in" / "train_request.json")


@pytest.mark.parametrize("stale", ["0" * 64, None], ids=["another-request", "no-digest"])
@pytest.mark.parametrize("command", ["train", "score"])
def test_the_result_of_another_request_is_not_taken_for_its_own(
    trainer, trained, run, tmp_path, command, stale
) -> None:
    """Where its own result belongs: exit code 2, by name, and it is left as it is."""
    if command == "train":
        path, kind = train_request(run, tmp_path, trainer, digest_required=True), "report"
    else:
        path, kind = score_request(run, tmp_path, [trained[1].model_uri], digest_required=True), "scores"
    there = tmp_path / "out" / ("report.json" if command == "train" else "0/scores.json")
    there.parent.mkdir(parents=True)
    content = json.dumps({"kind": kind, "schema_version": 1, **({"request_digest": stale} if stale else {})})
    there.write_text(content)
    done = trainer.run(command, path)
    assert done.returncode == 2, done.stderr
    said = done.stderr.strip().splitlines()[-1]
    assert "the result of another request" in said
    assert all(name in said for name in (str(there), sha256(path)))
    assert there.read_text() == content


def test_a_request_of_an_earlier_release_takes_any_result_for_its_own(trainer, run, tmp_path) -> None:
    """It asks for no digest, and what its job left has none."""
    path = train_request(run, tmp_path, trainer)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.json").write_text(json.dumps({"kind": "report", "schema_version": 1}))
    assert trainer.run("train", path).returncode == 0


def test_a_training_that_is_done_is_not_done_again(trainer, trained, run) -> None:
    """The report stays as it is, and the model too."""
    folder, _ = trained
    before = {
        name: (folder / name).stat().st_mtime_ns for name in files(folder / "out" / "model") if (folder / name).exists()
    } | {"report": (folder / "out" / "report.json").stat().st_mtime_ns}
    assert trainer.run("train", folder / "in" / "train_request.json").returncode == 0
    after = {name: (folder / name).stat().st_mtime_ns for name in before if name != "report"}
    assert after | {"report": (folder / "out" / "report.json").stat().st_mtime_ns} == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["taken-away", "killed"])
def test_a_training_that_was_ended_can_be_started_again(trainer, run, tmp_path, number) -> None:
    """SIGTERM gives 143, and no report; the next process of another request comes to its end."""
    job = trainer.start("train", train_request(run, tmp_path, trainer, training={"epochs": 1_000_000}))
    with pytest.raises(subprocess.TimeoutExpired):
        job.process.communicate(timeout=3)  # whenever the signal comes, what follows must hold
    assert job.end(number) in (128 + number, -number)
    assert not (tmp_path / "out" / "report.json").exists()
    done = trainer.run("train", train_request(run, tmp_path, trainer, training={"epochs": 2}))
    assert done.returncode == 0, done.stderr
    report = parse_document(Report, (tmp_path / "out" / "report.json").read_bytes(), "report.json")
    assert report.model_digest == digest_folder(tmp_path / "out" / "model")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"kind": "evaluate_request"}, "train_request"),
    "unknown-key": ({"colour": "blue"}, "colour"),
    "hyperparameter": ({"training": {"hyperparameters": {"colour": 1}}}, "colour"),
    "feature": ({"features": [*FEATURES, {"name": "gone", "kind": "numeric"}]}, "gone"),
    "label": ({"label": {"name": "gone", "kind": "binary"}}, "gone"),
    "no-manifest": ({"manifest_uri": "/nowhere/manifest.json"}, "/nowhere/manifest.json"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_refused_by_name(trainer, run, tmp_path, name) -> None:
    """Exit code 2, which no other job follows; the last line of standard error says what is wrong."""
    changes, saying = WRONG[name]
    path = train_request(run, tmp_path, trainer, **changes)
    path = path.rename(path.with_name("request.json"))
    done = trainer.run("train", path)
    assert done.returncode == 2, done.stderr
    assert saying in done.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "out" / "report.json").exists()


FURTHER = {"label": {"name": "distance", "kind": "regression"}, "weight": 1.0}
ABILITIES: list[tuple[str, str, dict[str, Any]]] = [
    ("trials", "trial_metric", {"trial_metric": "val_loss"}),
    ("auxiliary_labels", "auxiliary_labels", {"auxiliary_labels": [FURTHER]}),
    ("features", "text", {"features": [{"name": "carrier", "kind": "text"}]}),
    ("losses", "poisson", {"label": {"name": "weight", "kind": "regression", "loss": "poisson"}}),
    ("transforms", "log1p", {"label": {"name": "weight", "kind": "regression", "transform": "log1p"}}),
    ("hyperparameters", "colour", {"training": {"hyperparameters": {"colour": 1}}}),
]
"""A field of the image's own description, a word of its refusal, and a request that a model could make of it."""


def test_an_image_says_what_it_refuses(trainer, run, tmp_path) -> None:
    """Its description is the file that an example brings; what that leaves out is refused by name, exit code 2."""
    if trainer.is_ours:
        pytest.skip("what it can do stands in plugins/retraining/package_data/contracts/capabilities.json")
    done = trainer.run("describe")
    assert done.returncode == 0, done.stderr
    description = json.loads(done.stdout)
    assert description["kind"] == "trainer"
    for path in REPOSITORY.glob(f"examples/*/trainers/{trainer.name}.json"):
        assert json.loads(path.read_bytes()) == description, f"write what describe prints to {path}"
    for field, word, changes in ABILITIES:
        known = description[field]
        if known is True or (isinstance(known, list) and word in known):
            continue
        done = trainer.run("train", train_request(run, tmp_path, trainer, **changes))
        assert done.returncode == 2, (field, done.stderr)
        assert word in done.stderr.strip().splitlines()[-1]


def test_a_corrupt_shard_is_refused_by_name(trainer, run, tmp_path) -> None:
    """It has another digest than the manifest says."""
    manifest = json.loads((run.path / "manifest.json").read_bytes())
    file = manifest["splits"]["train"]["files"][0]
    content = Path(file["uri"]).read_bytes()
    (tmp_path / "shard.tfrecord.gz").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    file["uri"] = str(tmp_path / "shard.tfrecord.gz")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    done = trainer.run("train", train_request(run, tmp_path, trainer, manifest_uri=str(tmp_path / "manifest.json")))
    assert done.returncode == 2, done.stderr
    assert "shard.tfrecord.gz" in done.stderr.strip().splitlines()[-1]


def score_request(run: Run, folder: Path, models: list[str], **changes: Any) -> Path:
    """Write a request for the test split, and the validation split as where a threshold is chosen."""
    asked = [
        {"model_uri": uri, "scores_uri": str(folder / "out" / str(place) / "scores.json")}
        for place, uri in enumerate(models)
    ]
    known = run.train_json()
    return write(
        folder,
        {name: known[name] for name in ("schema_version", "model", "run_key", "manifest_uri", "label", "key")}
        | {"kind": "score_request", "splits": ["test", "validation"], "models": asked, **changes},
    )


def test_every_example_is_scored_once(trainer, trained, run, tmp_path) -> None:
    """By the judge's own check: keys, labels, digests, probabilities; the report's answers are the model's."""
    _, report = trained
    path = score_request(run, tmp_path, [report.model_uri, report.model_uri], digest_required=True)
    done = trainer.run("score", path)
    assert done.returncode == 0, done.stderr
    split = run.manifest().splits["test"]
    rows = run.rows.filter(pc.is_in(run.rows["span"], pc.unique(run.rows["span"])[-2:]))
    keys = np.array([key.encode() for key in rows["parcel_id"].to_pylist()], object)
    examples = Examples(split=split, keys=keys, labels=rows["late"].to_numpy().astype(np.float64))
    answers = []
    for place in ("0", "1"):
        document = parse_document(ModelScores, (tmp_path / "out" / place / "scores.json").read_bytes(), "scores.json")
        assert document.model_uri == report.model_uri
        assert document.model_digest == report.model_digest
        assert document.request_digest == sha256(path)
        label = run.train_request().label
        answers.append(align_scores("scores", document.splits["test"], examples, label, Storage()))
    assert (answers[0] == answers[1]).all()
    late = examples.labels == 1
    assert answers[0][late].mean() > answers[0][~late].mean(), "it has learnt nothing"
    assert document.splits["validation"].rows == run.manifest().splits["validation"].rows
    names = ("scores.json", "test.parquet", "validation.parquet")
    assert files(tmp_path / "out") == {f"{place}/{name}" for place in "01" for name in names}
    written = (tmp_path / "out" / "0" / "scores.json").stat().st_mtime_ns
    assert trainer.run("score", path).returncode == 0
    assert (tmp_path / "out" / "0" / "scores.json").stat().st_mtime_ns == written


def test_examples_that_a_model_cannot_read_are_said_so(trainer, trained, run, tmp_path) -> None:
    """Exit code 0 and a document with the reason: a champion is left out, and the run goes on."""
    _, report = trained
    manifest = run.manifest()
    columns = tuple(column for column in manifest.columns if column.name != "weight")
    narrow = type(manifest)(**{**vars(manifest), "columns": columns})
    (tmp_path / "manifest.json").write_bytes(serialise(narrow))
    done = trainer.run(
        "score", score_request(run, tmp_path, [report.model_uri], manifest_uri=str(tmp_path / "manifest.json"))
    )
    assert done.returncode == 0, done.stderr
    document = parse_document(ModelScores, (tmp_path / "out" / "0" / "scores.json").read_bytes(), "scores.json")
    assert "weight" in document.skipped
    assert document.splits == {}


def test_a_model_that_is_gone_is_refused_by_name(trainer, run, tmp_path) -> None:
    """Exit code 2."""
    done = trainer.run("score", score_request(run, tmp_path, [str(tmp_path / "gone")]))
    assert done.returncode == 2, done.stderr
    assert str(tmp_path / "gone") in done.stderr.strip().splitlines()[-1]
