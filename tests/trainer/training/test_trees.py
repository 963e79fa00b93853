"""Boosted trees: what is stored answers as Yggdrasil does, and a training that was interrupted ends as a whole one."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.support import flights as data
from tests.support.flights import COUNT, draw_features, label_statistics, make_table, write_statistics
from tests.support.refusals import refuses
from trainer.errors import DataError, Diverged, RequestError
from trainer.features.preprocessing import Preprocessing
from trainer.input import open_source
from trainer.models.trees import BoostedTreesHyperparameters, Forest, forest_model, joined
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel
from trainer.saved_model.served import ServedModel
from trainer.training import trees, yggdrasil
from trainer.training.checkpoints import Checkpoints
from trainer.training.trees import Growth

CARRIERS = [f"carrier-{number}" for number in range(40)]
FEATURES = [data.FEATURES[0], {"name": "carrier", "kind": "categorical"}]
COLUMNS_OF_LABELS = [
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "grade", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "minutes", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "delays", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "seats", "type": "FLOAT", "mode": "NULLABLE"},
]
BINARY = {"name": "late", "kind": "binary"}
CLASSES = {"name": "grade", "kind": "multiclass", "classes": 4}  # of which one never comes
LABELS: dict[str, tuple[dict[str, Any], str | None]] = {
    "binary": (BINARY, None),
    "classes": (CLASSES, None),
    "number": ({"name": "minutes", "kind": "regression"}, None),
    "absolute": ({"name": "minutes", "kind": "regression", "loss": "mae"}, None),
    "counts": ({"name": "delays", "kind": "regression", "loss": "poisson"}, None),
    "weighted": (BINARY, "seats"),
    "weighted classes": (CLASSES, "seats"),
    "weighted number": ({"name": "minutes", "kind": "regression"}, "seats"),
}
WEIGHT = {"nulls": 0, "outside": 0, "mean": 1.5}
STATISTICS = {"minutes": "minutes.json", "delays": "delays.json"}


def make_rows() -> pa.Table:
    """Flights whose labels follow from distance and carrier; some of both are missing."""
    random, distance, _ = draw_features()
    carrier = random.integers(0, len(CARRIERS), COUNT)
    slow = carrier % 3 == 0
    minutes = 30 + distance / 8 + 60 * slow + 40 * (carrier % 7 == 2) + random.normal(0, 30, COUNT)
    labels = {
        "late": (minutes > np.median(minutes)).astype(np.int64),
        "grade": np.digitize(minutes, [150, 300]).astype(np.int64),
        "minutes": minutes,
        "delays": random.poisson(np.exp(distance / 1500)).astype(np.int64),
        "seats": random.uniform(0, 3, COUNT),
    }
    missing = random.random((2, COUNT)) < 0.1
    return (
        make_table(random, distance, slow, **labels)
        .set_column(1, "distance", pa.array(distance, mask=missing[0]))
        .set_column(2, "carrier", pa.array([CARRIERS[one] for one in carrier], mask=missing[1]))
    )


@pytest.fixture(scope="module")
def flights(exported, tmp_path_factory: pytest.TempPathFactory):
    """An exported run with a label of each kind."""
    run = type(exported)(path=tmp_path_factory.mktemp("flights"), rows=make_rows())
    run.export(schema=data.SCHEMA + COLUMNS_OF_LABELS, model="flights")
    plain = {"mean": 0.5, "nulls": 0, "counts": None, "outside": None, "numbers": None}
    write_statistics(run, "statistics.json", label=plain, weight=WEIGHT)
    for name, file in STATISTICS.items():
        values = run.rows[name].to_numpy().astype(np.float64)
        write_statistics(run, file, label=label_statistics(values, values), weight=WEIGHT)
    for file in ("statistics.json", *STATISTICS.values()):
        document = json.loads((run.path / file).read_text())
        features = document["splits"]["train"]["features"]
        features["distance"]["nulls"] = 60
        features["carrier"]["top"] = [{"value": name, "count": 10} for name in CARRIERS[:-3]]  # three share an id
        for split in document["splits"].values():
            split["features"] = features
        (run.path / file).write_text(json.dumps(document))
    return run


def ask(run, out: Path, label: dict[str, Any], **changes: Any):
    """A train request of trees."""
    training = {
        "model": "boosted_trees",
        "epochs": 30,
        "hyperparameters": {"min_examples": 5, "max_leaves": 8},
        **changes.pop("training", {}),
    }
    request = {
        "model": "flights",
        "label": label,
        "features": FEATURES,
        "key": "flight_id",
        "statistics_uri": run.uri(STATISTICS.get(label["name"], "statistics.json")),
        **changes,
    }
    return run.train_request_in(out, training=training, **request)


def strange_rows() -> dict[str, tf.Tensor]:
    """Every carrier, missing and unknown ones too, with near, far, missing and infinite distances."""
    carriers = [*CARRIERS, "", "never seen"]
    distances = [100.0, 1000.0, 2999.0, float("nan"), -1e38, 1e30, 1503.7]
    grid = [(carrier, distance) for carrier in carriers for distance in distances]
    return {
        "carrier": tf.constant([carrier for carrier, _ in grid]),
        "distance": tf.constant([distance for _, distance in grid], tf.float32),
    }


def grown_whole(run, request, iterations: int, rows: dict[str, tf.Tensor], folder: Path) -> np.ndarray:
    """What Yggdrasil's own model answers, grown in one go."""
    job = run.job(request)
    columns = columns_of(job, request)["train"]
    chosen = BoostedTreesHyperparameters(**request.training.hyperparameters)
    grower = yggdrasil.Grower(columns, request.label, chosen, request.seed, folder)
    grower.grow(0, iterations)
    encoded = Preprocessing(request.features, job.statistics)(rows)
    asked = dataclasses.replace(
        columns, matrix=joined(encoded).numpy(), targets=np.zeros(len(rows["distance"])), weights=None
    )
    named = grower.named(asked)
    if request.weight:
        named[yggdrasil.WEIGHT] = np.ones(asked.rows, np.float32)
    return grower.model.predict(named)


def columns_of(job, request):
    """A job's splits as trees read them."""
    from trainer.cluster.replica import Replica
    from trainer.cluster.strategy import choose_strategy
    from trainer.training.examples import open_examples
    from trainer.training.recipe import Recipe

    recipe = Recipe.from_training(request.training, objective_of(request.label, (), job.statistics, request.weight))
    with open_source(job.manifest, job.manifest.splits, job.storage) as source:
        examples = open_examples(job, source, recipe, choose_strategy(Replica()), kept=False)
        return {name: trees.read_columns(split, examples) for name, split in examples.splits.items()}


@pytest.mark.parametrize("name", LABELS)
def test_the_stored_model_answers_as_yggdrasil_does(name: str, flights, tmp_path: Path) -> None:
    """NULLs, texts that no training had and extreme numbers among the rows; by the loader and as TensorFlow Serving."""
    label, weight = LABELS[name]
    request = ask(flights, tmp_path, label, weight=weight)
    report = flights.train(request)
    rows = strange_rows()
    expected = grown_whole(flights, request, report.best_epoch, rows, tmp_path / "whole")
    if label["kind"] == "regression":
        numbers = flights.job(request).statistics.splits["train"].label.numbers
        unit = numbers.trained_stddev if label.get("loss") != "poisson" else numbers.trained_mean
        expected = expected * unit + (numbers.trained_mean if label.get("loss") != "poisson" else 0.0)
    else:
        unit = 1.0
    found = StoredModel(tmp_path / "model", "m").predict(rows)
    assert np.ptp(expected, axis=0).min() > 0 or name == "classes"
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * unit)
    with ServedModel(tmp_path / "model") as served:
        (answers,) = served.answer({key: values.numpy() for key, values in rows.items()}).values()
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-6 * unit)


def test_the_model_has_operations_of_tensorflow_alone(flights, tmp_path: Path) -> None:
    """Whoever serves it needs nothing beside TensorFlow Serving."""
    flights.train(ask(flights, tmp_path, BINARY))
    code = (
        "import sys, tensorflow as tf; m = tf.saved_model.load(sys.argv[1]); "
        "print('ydf' in sys.modules, len(m.signatures))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.stdout.split() == ["False", "1"]
    graph = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"].graph
    assert {operation.type for operation in graph.get_operations()} <= set(dir(tf.raw_ops)) | {"Placeholder"}


def test_the_report_says_what_happened(flights, tmp_path: Path) -> None:
    said: list[str] = []
    report = flights.train(ask(flights, tmp_path, BINARY, training={"epochs": 60, "early_stopping_patience": 5}), said)
    assert report.metrics["val_auc"] > 0.8
    assert report.best_epoch == int(np.argmin(report.history["val_loss"])) + 1
    assert report.epochs_run == report.steps == report.best_epoch + 5 < 60
    assert set(report.history) == {"loss", "val_loss", "val_auc"}
    assert all(len(values) == report.epochs_run for values in report.history.values())
    assert report.signature.inputs == {"distance": "float32", "carrier": "string"}
    assert report.signature.outputs == {"score": "float32"}
    assert report.hyperparameters["max_leaves"] == 8
    assert report.parameters <= 15 * report.best_epoch  # of a tree of eight leaves
    assert len(report.golden) == 5
    assert any(line.startswith(f"tree {report.epochs_run}/60 loss=") for line in said)


def test_the_key_comes_back(flights, tmp_path: Path) -> None:
    report = flights.train(ask(flights, tmp_path, BINARY, key_input=True))
    assert report.signature.outputs == {"score": "float32", "flight_id": "string"}


def test_the_same_seed_gives_the_same_trees(flights, tmp_path: Path) -> None:
    drawn = {"training": {"hyperparameters": {"subsample": 0.5, "column_share": 0.5, "min_examples": 5}}}
    first = flights.train(ask(flights, tmp_path / "first", BINARY, **drawn))
    again = flights.train(ask(flights, tmp_path / "again", BINARY, **drawn))
    assert again.history == first.history
    assert again.golden == first.golden
    other = flights.train(ask(flights, tmp_path / "other", BINARY, seed=8, **drawn))
    assert other.history != first.history


def test_an_interrupted_training_ends_as_a_whole_one(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call sees other examples; the one after the interruption sees those that it would have seen."""
    monkeypatch.setattr(trees, "_MOST_ITERATIONS", 10)
    wanted = {"training": {"hyperparameters": {"subsample": 0.5, "min_examples": 5}}}
    whole = flights.train(ask(flights, tmp_path / "whole", BINARY, **wanted))
    request = ask(flights, tmp_path / "cut", BINARY, **wanted)
    grow, calls = yggdrasil.Grower.grow, []

    def die_in_the_third(self, have: int, until: int) -> Forest:
        calls.append(have)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return grow(self, have, until)

    monkeypatch.setattr(yggdrasil.Grower, "grow", die_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        flights.train(request)
    report = flights.train(request)
    assert calls == [0, 10, 20, 20]
    assert report.resumed_from_epoch == report.resumed_from_step == 20
    assert report.history == whole.history
    assert report.golden == whole.golden


def test_a_training_that_was_only_not_stored_is_stored(flights, tmp_path: Path) -> None:
    request = ask(flights, tmp_path, BINARY)
    report = flights.train(request)
    (tmp_path / "report.json").unlink()
    shutil.rmtree(tmp_path / "model")
    again = flights.train(request)
    assert again.model_digest == report.model_digest or again.golden == report.golden
    assert again.resumed_from_epoch == 30


def test_only_the_newest_checkpoints_stay(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_MOST_ITERATIONS", 10)
    request = ask(flights, tmp_path, BINARY)
    flights.train(request)
    assert Checkpoints(request.checkpoint_uri, flights.storage).steps() == {20, 30}


def test_without_validation_rows_all_trees_stay(flights, tmp_path: Path) -> None:
    run = dataclasses.replace(flights)
    manifest = json.loads((flights.path / "manifest.json").read_text())
    manifest["splits"]["validation"] |= {"rows": 0, "files": []}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    report = run.train(ask(run, tmp_path, BINARY, manifest_uri=str(tmp_path / "manifest.json")))
    assert set(report.history) == {"loss"}
    assert report.best_epoch == report.epochs_run == 30


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"training": {"precision": "mixed_bfloat16"}}, "training.precision: is given, and .* grows trees"),
        ({"training": {"clip_norm": 1.0}}, "training.clip_norm"),
        ({"training": {"export_lite": ["float16"]}}, "training.export_lite"),
        (
            {"auxiliary_labels": [{"label": {"name": "minutes", "kind": "regression"}, "weight": 1}]},
            "auxiliary_labels: is given",
        ),
        (
            {"label": {"name": "minutes", "kind": "regression", "loss": "mae"}, "weight": "seats"},
            "weight, beside label.loss mae,: is given",
        ),
        ({"label": {"name": "minutes", "kind": "regression", "loss": "huber"}}, "label.loss: huber.*mse, mae, poisson"),
        ({"features": [{"name": "carrier", "kind": "categorical", "hash_buckets": 60000}]}, "at most 49999"),
        ({"features": [{"name": "carrier", "kind": "bag", "of": "words"}]}, "'carrier': kind bag, and .* grows trees"),
        ({"training": {"hyperparameters": {"max_leaves": 1}}}, "max_leaves is 1. Expected a whole number from 2"),
    ],
)
def test_what_trees_have_not_is_refused_by_name(changes: dict[str, Any], words: str, flights, tmp_path: Path) -> None:
    label = changes.pop("label", BINARY)
    extra = {"statistics_uri": flights.uri("minutes.json")} if "auxiliary_labels" in changes else {}
    with pytest.raises(RequestError, match=words):
        flights.train(ask(flights, tmp_path, label, **{**changes, **extra}))


def test_examples_that_do_not_fit_the_machine_are_refused(
    flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda _: 4)
    with refuses(RequestError, where="training.cluster", expected="a machine that holds the examples"):
        flights.train(ask(flights, tmp_path, BINARY))


def test_a_label_that_never_changes_is_refused(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = trees.read_columns

    def all_zero(*given: Any):
        columns = read(*given)
        return dataclasses.replace(columns, targets=np.zeros(columns.rows))

    monkeypatch.setattr(trees, "read_columns", all_zero)
    with refuses(DataError, found="examples are 0", expected="two classes at least"):
        flights.train(ask(flights, tmp_path, BINARY))


def test_an_image_without_yggdrasil_says_so(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ydf", None)
    with refuses(RequestError, found="this image has no Yggdrasil Decision Forests"):
        flights.train(ask(flights, tmp_path, BINARY))


def test_a_loss_that_is_no_number_ends_it(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Growth, "_loss", lambda *_: float("nan"))
    with pytest.raises(Diverged, match=r"tree 1: loss is"):
        flights.train(ask(flights, tmp_path, BINARY))


def test_a_forest_is_cut_where_it_was_joined() -> None:
    """Nodes and sets of the later half go, whatever they were."""
    leaf = {"column": np.array([1, 0, 0], np.int32), "threshold": np.zeros(3, np.float32)}
    tree = Forest(
        **leaf,
        mask=np.array([0, -1, -1], np.int32),
        children=np.array([1, 2, 1, 1, 2, 2], np.int32),
        value=np.array([0, -1, 1], np.float32),
        words=np.array([4], np.int32),
        roots=np.array([[0]], np.int32),
        bias=np.array([0.5], np.float32),
        depth=1,
    )
    twice = tree.then(tree)
    assert twice.mask.tolist() == [0, -1, -1, 1, -1, -1]
    assert twice.children[6:].tolist() == [4, 5, 4, 4, 5, 5]
    for name, values in vars(twice.first(1)).items():
        np.testing.assert_array_equal(values, getattr(tree, name))
    from trainer.models.features import Category, InputShape

    shape = InputShape(numbers=1, categories=(Category(name="c", ids=3, embedding_dim=1),))
    inputs = {"numeric": tf.zeros([3, 1]), "categorical": tf.constant([[0], [1], [2]])}
    np.testing.assert_allclose(forest_model(shape, twice)(inputs)[:, 0], [-1.5, -1.5, 2.5])
    none = Forest.empty(2)
    np.testing.assert_allclose(forest_model(shape, none)(inputs), np.zeros((3, 2)))
