"""Trees: what is stored answers as Yggdrasil does, and a training that was interrupted ends as a whole one."""

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
import pyarrow.compute as pc
import pytest
import tensorflow as tf

from tests.support import flights as data
from tests.support.flights import COUNT, draw_features, label_statistics, make_table, write_statistics
from tests.support.refusals import refuses
from trainer.errors import DataError, Diverged, RequestError
from trainer.features.preprocessing import Preprocessing
from trainer.input import open_source
from trainer.models.registry import find_architecture, read_hyperparameters
from trainer.models.trees import Forest, forest_model, joined
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel
from trainer.saved_model.served import ServedModel
from trainer.training import trees, yggdrasil
from trainer.training.checkpoints import Checkpoints

CARRIERS = [f"carrier-{number}" for number in range(40)]
FEATURES = [data.FEATURES[0], {"name": "carrier", "kind": "categorical"}]
COLUMNS_OF_LABELS = [
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "grade", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "minutes", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "delays", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "seats", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "claims", "type": "FLOAT", "mode": "NULLABLE"},
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
SMALL: dict[str, dict[str, Any]] = {
    "boosted_trees": {"min_examples": 5, "max_leaves": 8},
    "random_forest": {"min_examples": 5, "max_depth": 6},
}
ANSWERS = [(model, name) for model in SMALL for name in LABELS if (model, name) != ("random_forest", "absolute")]
WEIGHT = {"nulls": 0, "outside": 0, "mean": 1.5}
STATISTICS = {"minutes": "minutes.json", "delays": "delays.json", "claims": "claims.json"}


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
        "claims": np.floor(np.random.default_rng(0).exponential(1, COUNT) ** 8),  # a few are most of their sum
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
    changed = changes.pop("training", {})
    model = changed.get("model", "boosted_trees")
    training = {"model": model, "epochs": 30, "hyperparameters": SMALL.get(model, {}), **changed}
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
    job, training = run.job(request), request.training
    columns = columns_of(job, request)["train"]
    chosen = read_hyperparameters(find_architecture(training.model), training.hyperparameters)
    grower = yggdrasil.grower_type(chosen)(columns, request.label, chosen, request.seed, folder)
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


@pytest.mark.parametrize(("model", "name"), ANSWERS)
def test_the_stored_model_answers_as_yggdrasil_does(model: str, name: str, flights, tmp_path: Path) -> None:
    """NULLs, texts that no training had and extreme numbers among the rows; by the loader and as TensorFlow Serving."""
    label, weight = LABELS[name]
    request = ask(flights, tmp_path, label, weight=weight, training={"model": model})
    report = flights.train(request)
    assert model == "boosted_trees" or report.best_epoch == report.epochs_run == 30
    rows = strange_rows()
    expected = grown_whole(flights, request, report.best_epoch, rows, tmp_path / "whole")
    if label["kind"] == "regression":
        numbers = flights.job(request).statistics.splits["train"].label.numbers
        unit = numbers.trained_stddev if label.get("loss") != "poisson" else numbers.trained_mean
        expected = expected * unit + (numbers.trained_mean if label.get("loss") != "poisson" else 0.0)
    else:
        unit = 1.0
    found = StoredModel(tmp_path / "model", "m").predict(rows)
    never = [CLASSES["classes"] - 1] if label["kind"] == "multiclass" else []
    assert np.delete(np.ptp(expected.reshape(len(expected), -1), axis=0), never).min() > 0
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


def test_a_few_rows_do_not_say_when_to_stop(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 179 rows the 20 held out had their least loss after 42 trees, and 200 answered 11 % better for rows unseen.

    Until trees times their rate are 5 the newest is the best; with more rows held out the least loss decides at once.
    """
    fast = {**SMALL["boosted_trees"], "learning_rate": 0.2}
    few = {"epochs": 60, "early_stopping_patience": 2, "hyperparameters": fast}
    held_out = flights.manifest().splits["validation"].rows
    monkeypatch.setattr(yggdrasil, "_FEW_HELD_OUT", held_out + 1)
    report = flights.train(ask(flights, tmp_path / "few", BINARY, training=few))
    losses = report.history["val_loss"]
    assert report.best_epoch == 25 + int(np.argmin(losses[24:]))
    monkeypatch.setattr(yggdrasil, "_FEW_HELD_OUT", held_out)
    report = flights.train(ask(flights, tmp_path / "many", BINARY, training=few))
    assert report.best_epoch == 1 + int(np.argmin(losses[: report.epochs_run])) < 25


def test_the_report_says_what_happened(flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yggdrasil, "_FEW_HELD_OUT", 0)
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
    grow, calls = yggdrasil.BoostedTreesGrower.grow, []

    def die_in_the_third(self, have: int, until: int) -> Forest:
        calls.append(have)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return grow(self, have, until)

    monkeypatch.setattr(yggdrasil.BoostedTreesGrower, "grow", die_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        flights.train(request)
    report = flights.train(request)
    assert calls == [0, 10, 20, 20]
    assert report.resumed_from_epoch == report.resumed_from_step == 20
    assert report.history == whole.history
    assert report.golden == whole.golden


def test_a_random_forest_goes_on_with_the_trees_that_it_would_have_had(flights, tmp_path: Path) -> None:
    """Ten trees, and twenty more of the same training, are the thirty of one that was never interrupted."""
    wanted = {"model": "random_forest"}
    whole = flights.train(ask(flights, tmp_path / "whole", BINARY, training=wanted))
    assert whole.history["val_loss"][-1] < whole.history["val_loss"][0]
    assert whole.metrics["val_auc"] > 0.8
    request = ask(flights, tmp_path / "cut", BINARY, training=wanted)
    grow, calls = yggdrasil.RandomForestGrower.grow, []

    def die_in_the_second(self, have: int, until: int) -> Forest:
        calls.append(have)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return grow(self, have, until)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_MOST_ITERATIONS", 10)
        uncut = flights.train(ask(flights, tmp_path / "uncut", BINARY, training=wanted))
        patch.setattr(yggdrasil.RandomForestGrower, "grow", die_in_the_second)
        with pytest.raises(KeyboardInterrupt):
            flights.train(request)
        report = flights.train(request)
    assert calls == [0, 10, 10, 20]
    assert report.resumed_from_epoch == 10
    assert report.history == uncut.history
    assert report.golden == uncut.golden


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
        (
            {
                "training": {"model": "random_forest"},
                "label": {"name": "minutes", "kind": "regression", "loss": "mae"},
            },
            "label.loss: mae.*one of: mse, poisson",
        ),
        ({"training": {"hyperparameters": {"max_leaves": 1}}}, "max_leaves is 1. Expected a whole number from 2"),
    ],
)
def test_what_trees_have_not_is_refused_by_name(changes: dict[str, Any], words: str, flights, tmp_path: Path) -> None:
    label = changes.pop("label", BINARY)
    extra = {"statistics_uri": flights.uri("minutes.json")} if "auxiliary_labels" in changes else {}
    with pytest.raises(RequestError, match=words):
        flights.train(ask(flights, tmp_path, label, **{**changes, **extra}))


MINUTES = {"name": "minutes", "kind": "regression"}
DENSE = {"model": "dense", "epochs": 1}
BUCKETS = {"name": "carrier", "kind": "categorical"}
CROSSED = [BUCKETS, {"name": "distance", "kind": "numeric", "transform": "buckets", "buckets": 4}]
WAYS_OUT: dict[str, tuple[dict[str, Any], str, list[dict[str, Any]]]] = {
    "key": (
        {"training": {"clip_norm": 1.0}},
        "Remove it, or choose another architecture",
        [{"training": {}}, {"training": {**DENSE, "clip_norm": 1.0}}],
    ),
    "feature": (
        {"features": [*FEATURES, {"name": "flight_id", "kind": "bag", "of": "words"}]},
        "Remove it, or choose another architecture",
        [{"features": FEATURES}],
    ),
    "loss": (
        {"label": {**MINUTES, "loss": "huber"}},
        "Change label.loss, or choose another architecture",
        [{"label": {**MINUTES, "loss": "mse"}}, {"label": {**MINUTES, "loss": "huber"}, "training": DENSE}],
    ),
    "loss of a forest": (
        {"label": {**MINUTES, "loss": "mae"}, "training": {"model": "random_forest"}},
        "Change label.loss, or choose another architecture",
        [
            {"label": {**MINUTES, "loss": "mse"}, "training": {"model": "random_forest", "epochs": 3}},
            {"label": {**MINUTES, "loss": "mae"}},
        ],
    ),
    "ids": (
        {"features": [{**BUCKETS, "hash_buckets": 50_000}]},
        "Lower hash_buckets, or buckets of the cross",
        [{"features": [{**BUCKETS, "hash_buckets": 49_000}]}],
    ),
    "ids of a cross": (
        {"features": CROSSED, "crosses": [{"columns": ["carrier", "distance"], "buckets": 50_000}]},
        "Lower hash_buckets, or buckets of the cross",
        [{"features": CROSSED, "crosses": [{"columns": ["carrier", "distance"], "buckets": 49_000}]}],
    ),
}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_the_way_out_is_one(name: str, flights, tmp_path: Path) -> None:
    """Refused; and trained to the end when it is changed as the message says."""
    wrong, words, rights = WAYS_OUT[name]

    def train(place: str, changes: dict[str, Any]):
        changes = {**changes, "training": {"epochs": 3, **changes.get("training", {})}}
        return flights.train(ask(flights, tmp_path / place, changes.pop("label", BINARY), **changes))

    with pytest.raises(RequestError) as refused:
        train("wrong", wrong)
    assert words in str(refused.value)
    for place, right in enumerate(rights):
        assert train(f"right-{place}", right).model_digest


def test_a_larger_machine_or_fewer_rows_are_room_enough(
    flights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With half the memory that all rows need they are refused, and half of the rows are not."""
    half = dataclasses.replace(flights, path=tmp_path / "half", rows=flights.rows.slice(0, COUNT // 2))
    half.export(schema=data.SCHEMA + COLUMNS_OF_LABELS, model="flights")
    splits = flights.manifest().splits
    needed = (splits["train"].rows + splits["validation"].rows) * 3 * 16  # distance, its indicator, carrier
    sizes, real = {"SC_PHYS_PAGES": needed * 2 // 3, "SC_PAGE_SIZE": 1}, os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name] if name in sizes else real(name))
    way_out = "Take a machine with more memory, or fewer rows"
    with refuses(RequestError, where="training.cluster", expected="holds the examples", way_out=way_out):
        flights.train(ask(flights, tmp_path / "small", BINARY, training={"epochs": 3}))
    manifest = {"manifest_uri": half.uri("manifest.json")}
    assert flights.train(ask(flights, tmp_path / "fewer", BINARY, training={"epochs": 3}, **manifest)).model_digest
    sizes["SC_PHYS_PAGES"] = needed
    assert flights.train(ask(flights, tmp_path / "large", BINARY, training={"epochs": 3})).model_digest


def test_a_window_in_which_the_label_never_changes_is_refused_and_a_wider_one_is_not(flights, tmp_path: Path) -> None:
    never = flights.rows.filter(pc.equal(flights.rows["late"], 0))
    narrow = dataclasses.replace(flights, path=tmp_path / "narrow", rows=never)
    narrow.export(schema=data.SCHEMA + COLUMNS_OF_LABELS, model="flights")
    manifest = {"manifest_uri": narrow.uri("manifest.json")}
    way_out = "Widen data.window_days, or look at the query"
    with refuses(DataError, found="examples are 0", expected="two classes at least", way_out=way_out):
        flights.train(ask(flights, tmp_path / "narrow-training", BINARY, **manifest))
    assert flights.train(ask(flights, tmp_path / "wide", BINARY, training={"epochs": 3})).model_digest


def test_an_image_without_yggdrasil_says_so_and_one_that_has_it_trains(flights, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ydf", None)
        with refuses(RequestError, found="has no Yggdrasil Decision Forests", way_out="put ydf into the image"):
            flights.train(ask(flights, tmp_path, BINARY))
    assert flights.train(ask(flights, tmp_path, BINARY, training={"epochs": 3})).model_digest


def test_a_loss_that_is_no_number_ends_it_and_a_lower_rate_does_not(flights, tmp_path: Path) -> None:
    """Whole steps towards counts of which a few are most of the sum: the next logarithm is too far from the last."""
    label = {"name": "claims", "kind": "regression", "loss": "poisson"}

    def train(rate: float):
        wild = {"min_examples": 1, "max_leaves": 64, "learning_rate": rate}
        return flights.train(ask(flights, tmp_path / str(rate), label, training={"hyperparameters": wild}))

    with refuses(Diverged, found="loss is", way_out="Lower hyperparameters.learning_rate"):
        train(1.0)
    assert np.isfinite(train(0.05).history["loss"]).all()


def test_a_forest_is_cut_where_it_was_joined() -> None:
    """Nodes and sets of the later half go, whatever they were."""
    leaf = {"column": np.array([1, 0, 0], np.int32), "threshold": np.zeros(3, np.float32)}
    tree = Forest(
        **leaf,
        mask=np.array([0, -1, -1], np.int32),
        children=np.array([1, 2, 1, 1, 2, 2], np.int32),
        value=np.array([[0], [-1], [1]], np.float32),
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
