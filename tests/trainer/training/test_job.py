"""Training: it learns, it can be repeated, and an interrupted one ends where a whole one does."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

from retraining.core.jobs.recipe import FIRST_STEPS
from tests.support.refusals import refuses
from trainer.contract.documents import Challenger, Cross, Report
from trainer.contract.reading import parse_document
from trainer.errors import DataError, RequestError
from trainer.evaluation.job import evaluate
from trainer.evaluation.scoring import load_model
from trainer.input import open_source
from trainer.objective.class_metrics import measure_scores
from trainer.saved_model.model import digest_folder
from trainer.training.epochs import LEAST_STEPS


@pytest.fixture(scope="module")
def trained(exported, tmp_path_factory: pytest.TempPathFactory):
    """Request and report of one whole training."""
    out = tmp_path_factory.mktemp("trained")
    request = relocated(exported.train_request(), out)
    said: list[str] = []
    return request, exported.train(request, said), said


def relocated(request, out: Path):
    return dataclasses.replace(
        request,
        model_uri=str(out / "model"),
        report_uri=str(out / "report.json"),
        checkpoint_uri=str(out / "checkpoints"),
        tensorboard_uri=str(out / "logs"),
    )


def test_the_model_learns_and_the_report_says_what_happened(trained, exported) -> None:
    request, report, said = trained
    assert report.metrics["val_auc"] > 0.8
    assert report.epochs_run == 3
    assert report.steps == 3 * -(-report.train_rows // 64)
    assert report.train_rows == exported.manifest().splits["train"].rows
    assert set(report.history) == {"loss", "val_loss", "val_auc"}
    assert report.steps < LEAST_STEPS
    assert report.best_epoch == 3  # whatever few validation rows say of weights that have learnt little
    assert report.resumed_from_epoch is None
    assert report.hyperparameters["hidden_units"] == (16, 8)
    assert parse_document(Report, Path(request.report_uri).read_bytes(), "report") == report
    assert said[1].startswith("train: first steps ")
    assert ", first call " in said[1]
    assert said[2].startswith("epoch 1/3 loss=")
    assert "val_auc=" in said[2]
    assert said[2].endswith("examples/s")


def test_the_stored_model_has_one_input_per_feature_and_answers_the_smoke_requests(trained, exported) -> None:
    request, report, _ = trained
    assert report.signature.inputs == {
        "carrier": "string",
        "zone": "string",
        "distance": "float32",
        "weight": "float32",
        "express": "float32",
    }
    assert report.signature.outputs == {"score": "float32"}
    assert report.signature.input_shapes == report.signature.output_shapes == {}
    assert report.model_digest == digest_folder(Path(request.model_uri))
    assert len(report.golden) == 5
    served = tf.saved_model.load(request.model_uri).signatures["serving_default"]
    for golden in report.golden:
        assert "" not in golden.instance.values()
        answer = served(**{name: tf.constant([value]) for name, value in golden.instance.items()})["score"]
        assert answer.numpy()[0] == pytest.approx(golden.prediction, abs=1e-6)


def test_missing_and_never_seen_values_get_a_probability(trained) -> None:
    served = tf.saved_model.load(trained[0].model_uri).signatures["serving_default"]
    nan = float("nan")
    scores = served(
        carrier=tf.constant(["", "never"]),
        zone=tf.constant(["99", ""]),
        distance=tf.constant([nan, 5.0]),
        weight=tf.constant([nan, nan]),
        express=tf.constant([nan, 1.0]),
    )["score"].numpy()
    assert scores.shape == (2,)
    assert ((scores > 0) & (scores < 1)).all()


def test_tensorboard_gets_every_epoch(trained) -> None:
    events = list(Path(trained[0].tensorboard_uri).rglob("*tfevents*"))
    assert len(events) == 1
    tags = [
        value.tag
        for record in tf.data.TFRecordDataset(str(events[0]))
        for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
    ]
    assert tags.count("epoch_val_auc") == 3


def test_the_same_request_gives_the_same_weights(trained, exported, tmp_path: Path) -> None:
    _, report, _ = trained
    again = exported.train(relocated(trained[0], tmp_path))
    assert again.history == report.history
    assert again.golden == report.golden
    other = exported.train(dataclasses.replace(relocated(trained[0], tmp_path / "other"), seed=8))
    assert other.history != report.history


def test_early_stopping_restores_the_best_epoch(exported, tmp_path: Path) -> None:
    """The best of those from the hundredth step on: before it nothing is waited for."""
    request = relocated(
        exported.train_request(
            training={
                "epochs": 40,
                "batch_size": 32,
                "early_stopping_patience": 1,
                "hyperparameters": {"learning_rate": 0.2, "hidden_units": [16]},
            }
        ),
        tmp_path,
    )
    report = exported.train(request)
    steps = report.steps // report.epochs_run
    first = -(-LEAST_STEPS // steps)  # the first epoch that ends at that step or after it
    losses = report.history["val_loss"]
    assert min(losses[: first - 1]) < min(losses[first - 1 :])  # the best of all was too early
    assert first < report.epochs_run < 40
    assert report.best_epoch == report.epochs_run - 1 >= first
    assert report.metrics["val_loss"] == min(losses[first - 1 :])
    assert sorted(path.parent.name for path in (tmp_path / "checkpoints").glob("*/state.json")) == [
        f"step-{steps * report.best_epoch:09d}",
        f"step-{report.steps:09d}",
    ]
    # What is stored is the best epoch's model: it scores the validation split as well as that epoch did.
    assert stored_loss(exported, request) == pytest.approx(report.metrics["val_loss"], rel=1e-4)


def test_what_the_report_is_judged_by_is_what_the_trainer_does() -> None:
    assert FIRST_STEPS == LEAST_STEPS


def stored_loss(run, request) -> float:
    """Log loss of the stored model on the validation split, through the evaluation's own code."""
    manifest = run.manifest()
    as_test = dataclasses.replace(manifest, splits={**manifest.splits, "test": manifest.splits["validation"]})
    uri = f"{request.report_uri}.evaluation"
    wanted = dataclasses.replace(run.evaluate_request(request.model_uri, None), evaluation_uri=uri)
    with open_source(as_test, as_test.splits, run.storage) as source:
        return evaluate(wanted, as_test, source, run.storage).challenger.metrics.log_loss


def test_dense_trains_from_numbers_alone(exported, tmp_path: Path) -> None:
    request = exported.train_request(training={"model": "dense", "epochs": 1})
    request = dataclasses.replace(
        relocated(request, tmp_path), features=tuple(f for f in request.features if f.kind == "numeric")
    )
    assert exported.train(request).epochs_run == 1


@pytest.mark.parametrize("architecture", ["dense", "wide_deep", "deep_cross"])
def test_a_model_of_buckets_hashes_and_a_cross_answers_its_smoke_requests(
    exported, tmp_path: Path, architecture
) -> None:
    request = exported.train_request(training={"model": architecture, "epochs": 1})
    options = {
        "numeric": {"transform": "buckets", "buckets": 4},
        "categorical": {"max_vocabulary": 2, "hash_buckets": 5},
    }
    features = tuple(
        dataclasses.replace(feature, **options[feature.kind]) for feature in request.features if feature.kind in options
    )
    first = {feature.kind: feature.name for feature in features}
    crosses = (Cross(columns=(first["numeric"], first["categorical"]), buckets=50),)
    request = dataclasses.replace(relocated(request, tmp_path), features=features, crosses=crosses)
    report = exported.train(request)
    assert report.golden
    served = tf.saved_model.load(request.model_uri).signatures["serving_default"]
    for each in report.golden:
        answer = served(**{name: tf.constant([value]) for name, value in each.instance.items()})["score"]
        assert answer.numpy()[0] == pytest.approx(each.prediction, abs=1e-6)


def test_wide_deep_trains_from_categories_alone_with_crosses_and_decay(exported, tmp_path: Path) -> None:
    hyperparameters = {"cross_buckets": 16, "l2": 0.001, "hidden_units": "8"}
    request = exported.train_request(training={"epochs": 1, "hyperparameters": hyperparameters})
    request = dataclasses.replace(
        relocated(request, tmp_path), features=tuple(f for f in request.features if f.kind == "categorical")
    )
    assert exported.train(request).hyperparameters["cross_buckets"] == 16


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"training": {"model": "rnn"}}, "unknown architecture", id="architecture"),
        pytest.param({"training": {"hyperparameters": {"depth": 3}}}, "unknown name 'depth'", id="hyperparameter"),
        pytest.param({"features": [{"name": "colour", "kind": "numeric"}]}, "no such column", id="feature"),
        pytest.param(
            {"label": {"name": "carrier", "kind": "binary"}}, "label 'carrier': column of type STRING", id="label-type"
        ),
        pytest.param({"label": {"name": "zone", "kind": "binary"}}, "have another value", id="label-values"),
        pytest.param({"label": {"name": "gone", "kind": "binary"}}, "no such column", id="label-missing"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(exported, tmp_path: Path, changes: dict, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        exported.train(relocated(exported.train_request(**changes), tmp_path))
    assert not (tmp_path / "model").exists()


@pytest.fixture
def judge(exported, tmp_path: Path):
    """Evaluates in this process."""

    def evaluate_models(challenger: str, champion: str | None, **changes):
        request = exported.evaluate_request(
            challenger, champion, **{"evaluation_uri": str(tmp_path / "evaluation.json"), **changes}
        )
        manifest = exported.manifest()
        with open_source(manifest, manifest.splits, exported.storage) as source:
            return evaluate(request, manifest, source, exported.storage)

    return evaluate_models


def test_the_digest_of_a_model_is_what_the_airflow_side_takes(tmp_path: Path) -> None:
    """Of the same files as in tests/hooks/ports/test_artifacts.py."""
    for name, content in (("saved_model.pb", b"graph"), ("variables/variables.index", b""), ("assets/a.txt", b"1")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "assets.extra").mkdir()
    assert digest_folder(tmp_path) == "ad258febbdf880da4d157eb7acb5254edc62e74b90ee9229f97676ad814dbac4"


def test_another_model_than_the_reports_is_not_judged(trained, exported, tmp_path: Path) -> None:
    """A second job of the same run wrote the folder again after the first one's report."""
    request, manifest = trained[0], exported.manifest()
    model = shutil.copytree(request.model_uri, tmp_path / "model")
    wanted = dataclasses.replace(
        exported.evaluate_request(str(model), None),
        challenger=Challenger(model_uri=str(model), report_uri=request.report_uri),
        evaluation_uri=str(tmp_path / "evaluation.json"),
    )

    def judge_it() -> None:
        with open_source(manifest, manifest.splits, exported.storage) as source:
            evaluate(wanted, manifest, source, exported.storage)

    judge_it()
    (tmp_path / "evaluation.json").unlink()
    variables = next((model / "variables").glob("variables.data*"))
    variables.write_bytes(variables.read_bytes()[:-1] + b"x")
    with refuses(DataError, found="written again", way_out="Param force") as refused:
        judge_it()
    assert json.loads(Path(request.report_uri).read_bytes())["model_digest"] in str(refused.value)
    assert not (tmp_path / "evaluation.json").exists()


def test_another_model_than_the_champions_report_describes_is_not_judged(trained, exported, tmp_path: Path) -> None:
    """Its files were exchanged after it was registered: they are not even loaded, and the way out is the champion's."""
    request, manifest = trained[0], exported.manifest()
    model = shutil.copytree(request.model_uri, tmp_path / "model")
    digest = digest_folder(model)
    asked = exported.evaluate_request(request.model_uri, str(model))
    asked = dataclasses.replace(
        asked,
        champion=dataclasses.replace(asked.champion, model_digest=digest),
        evaluation_uri=str(tmp_path / "evaluation.json"),
    )
    stored = (model / "saved_model.pb").read_bytes()
    (model / "saved_model.pb").write_bytes(b"none that TensorFlow could load")
    with (
        open_source(manifest, manifest.splits, exported.storage) as source,
        pytest.raises(DataError, match=rf"written again since the report.*{digest}.*DAG rollback"),
    ):
        evaluate(asked, manifest, source, exported.storage)
    assert not (tmp_path / "evaluation.json").exists()
    (model / "saved_model.pb").write_bytes(stored)
    with open_source(manifest, manifest.splits, exported.storage) as source:
        assert evaluate(asked, manifest, source, exported.storage).champion


def test_both_models_are_judged_on_the_same_examples(trained, judge, exported, tmp_path: Path) -> None:
    weak_request = relocated(
        exported.train_request(training={"epochs": 1, "model": "dense", "hyperparameters": {"learning_rate": 1e-5}}),
        tmp_path / "weak",
    )
    exported.train(weak_request)
    found = judge(trained[0].model_uri, weak_request.model_uri)
    test = exported.manifest().splits["test"]
    assert found.rows == test.rows == 400
    assert {shard.sha256 for shard in found.shards} == {file.sha256 for file in test.files}
    assert found.challenger.metrics.auc > 0.8 > found.champion.metrics.auc
    assert found.challenger.metrics.log_loss < found.baseline.log_loss
    assert found.difference.mean == pytest.approx(found.challenger.metrics.auc - found.champion.metrics.auc)
    assert 0 < found.difference.low < found.difference.high
    assert found.difference.confidence == 0.9
    measured = ["auc", "accuracy", "log_loss", "brier", "pr_auc", "calibration_error", "f1", "f2", "f0_5", "mcc"]
    assert [item.metric for item in found.differences] == measured
    values = [(item.column, item.value) for item in found.challenger.slices]
    assert [(item.column, item.value) for item in found.slice_differences] == values
    for ours, theirs, item in zip(found.challenger.slices, found.champion.slices, found.slice_differences, strict=True):
        assert item.difference.mean == pytest.approx(ours.metrics.auc - theirs.metrics.auc)
        assert item.difference.low < item.difference.mean < item.difference.high
    assert ("express", "true") in values
    assert ("express", "false") in values
    assert all(item.rows >= 80 for item in found.challenger.slices)
    assert values == [(item.column, item.value) for item in found.champion.slices]
    assert json.loads((tmp_path / "evaluation.json").read_bytes())["difference"]["samples"] == 200


def test_costs_and_the_order_within_groups_may_decide(trained, judge, exported, tmp_path: Path) -> None:
    """The same two models, in the two other units."""
    weak = relocated(
        exported.train_request(training={"epochs": 1, "model": "dense", "hyperparameters": {"learning_rate": 1e-5}}),
        tmp_path / "weak",
    )
    exported.train(weak)
    label = {"name": "late", "kind": "binary", "costs": {"false_positive": 1, "false_negative": 4}}
    dear = judge(trained[0].model_uri, weak.model_uri, label=label, metric="cost")
    ours, theirs = dear.challenger.metrics, dear.champion.metrics
    assert 0 < ours.cost < theirs.cost <= 4
    assert dear.difference.metric == "cost"
    assert dear.difference.mean == pytest.approx(ours.cost - theirs.cost)
    assert dear.difference.high < 0  # lower is better
    assert all(item.difference.metric == "cost" for item in dear.slice_differences if item.difference)
    order = judge(trained[0].model_uri, weak.model_uri, metric="ndcg10", group="zone")
    assert order.challenger.metrics.ndcg10 > order.champion.metrics.ndcg10
    assert order.challenger.metrics.cost is None
    assert order.difference_evidence.units.endswith("labels to order")
    assert order.drawn_by == "groups"


def test_without_a_champion_there_is_no_difference(trained, judge) -> None:
    found = judge(trained[0].model_uri, None)
    assert found.champion is None
    assert found.difference is None


def test_the_largest_errors_are_named_and_shown_where_it_is_asked(trained, judge, exported) -> None:
    """Keys alone by default; with `show_rows` the features' values as they stand in the examples."""
    found = judge(trained[0].model_uri, None).worst
    assert [example.loss for example in found] == sorted((example.loss for example in found), reverse=True)
    assert len(found) == 20
    assert all(example.values == {} for example in found)
    rows = {row["parcel_id"]: row for row in exported.rows.to_pylist()}
    shown = judge(trained[0].model_uri, None, show_rows=True).worst
    assert [example.key for example in shown] == [example.key for example in found]
    for example in shown:
        row = rows[example.key]
        assert example.label == row["late"]
        assert example.values == {
            "carrier": row["carrier"] or "",
            "zone": str(row["zone"]),
            "distance": "" if row["distance"] is None else str(row["distance"]),
            "weight": "" if row["weight"] is None else f"{np.float32(row['weight']):g}",
            "express": str(row["express"]).lower(),
        }


def test_two_columns_are_crossed_and_groups_are_drawn_together(trained, judge) -> None:
    """One model against itself: nothing differs, in any slice that has two groups."""
    uri, crossed = trained[0].model_uri, {"slices": [], "crossed_slices": [["carrier", "express"]]}
    drawn = {"samples": 200, "seed": 3, "confidence": 0.9, "min_rows": 2, "min_groups": 2}
    found = judge(uri, uri, **crossed, group="zone", bootstrap=drawn, min_slice_examples=1)
    assert {item.column for item in found.challenger.slices} == {"carrier & express"}
    assert sum(item.rows for item in found.challenger.slices) == 400
    assert "Ünter & true" in {item.value for item in found.challenger.slices}
    known = [item.difference for item in found.slice_differences if item.difference]
    assert known
    assert all((each.mean, each.deviation) == (0, 0) for each in known)


def test_the_threshold_is_chosen_on_the_validation_split(trained, judge, tmp_path: Path) -> None:
    """The model against itself, at a number and at that which its rule finds: the same, of the same test rows."""
    uri = trained[0].model_uri
    chosen = judge(uri, uri, threshold={"rule": "recall", "at": 0.9}).threshold
    assert chosen.message.startswith("recall>=0.9 on 155 validation")
    assert chosen.champion == chosen.challenger
    right = chosen.challenger
    counts = (right.true_positives, right.false_positives, right.false_negatives, right.true_negatives)
    assert sum(counts) == 400
    assert right.recall.value == pytest.approx(counts[0] / (counts[0] + counts[2]))
    assert right.recall.low < right.recall.value < right.recall.high
    (tmp_path / "evaluation.json").unlink()
    given = judge(uri, None, threshold={"rule": "number", "at": chosen.threshold}).threshold
    assert (given.challenger, given.champion) == (right, None)
    assert given.message.endswith("the model's file says")


def test_examples_count_as_much_as_their_weight(trained, judge, exported, tmp_path: Path) -> None:
    """In every metric, slice, interval, baseline and threshold; a slice's rows are still rows."""
    uri = trained[0].model_uri
    changes = {"threshold": {"rule": "max_f1"}, "scores_uri": str(tmp_path / "scores")}
    found = judge(uri, uri, weight="zone", **changes)
    table = pq.read_table(tmp_path / "scores" / "challenger" / "test.parquet")
    zones = dict(zip(exported.rows["parcel_id"].to_pylist(), exported.rows["zone"].to_pylist(), strict=True))
    weights = np.array([zones[key] for key in table["key"].to_pylist()], np.float64)
    labels, scores = table["label"].to_numpy(), table["score"].to_numpy()
    for name, value in vars(measure_scores(labels, scores, weights)).items():
        assert getattr(found.challenger.metrics, name) == (None if value is None else pytest.approx(value, abs=1e-6))
    assert found.label_rate == pytest.approx(np.average(labels, weights=weights))
    assert sum(part.rows for part in found.challenger.slices if part.column == "express") == found.rows == 400
    at = found.threshold.challenger
    cells = (at.true_positives, at.false_positives, at.false_negatives, at.true_negatives)
    assert sum(cells) == pytest.approx(weights.sum())
    assert {item.mean for item in found.differences} == {0.0}
    (tmp_path / "evaluation.json").unlink()
    with refuses(RequestError, where="weight", found=("'carrier'", "STRING")):
        judge(uri, None, weight="carrier")
    with refuses(DataError, where="split test, weight 'distance'", found="missing"):
        judge(uri, None, weight="distance")


@pytest.mark.long
def test_a_training_counts_examples_by_their_weight(exported, tmp_path: Path) -> None:
    """It learns and measures something else; what is no weight is refused."""
    dense = {"epochs": 1, "model": "dense", "hyperparameters": {"hidden_units": [8]}}
    plain, by_zone = (
        exported.train(exported.train_request_in(tmp_path / str(weight), training=dense, weight=weight))
        for weight in (None, "zone")
    )
    assert by_zone.metrics["val_loss"] != pytest.approx(plain.metrics["val_loss"], abs=1e-4)
    with refuses(DataError, where="split train, weight 'distance'", found="missing"):
        exported.train(exported.train_request_in(tmp_path / "gaps", training=dense, weight="distance"))
    with refuses(DataError, where="weight 'carrier'", found="STRING"):
        exported.train(exported.train_request_in(tmp_path / "text", training=dense, weight="carrier"))


def test_slices_below_the_least_size_are_left_out(trained, judge) -> None:
    assert judge(trained[0].model_uri, None, min_slice_examples=401).challenger.slices == ()
    everything = judge(trained[0].model_uri, None, min_slice_examples=1)
    by_carrier = [item for item in everything.challenger.slices if item.column == "carrier"]
    assert sum(item.rows for item in by_carrier) == 400
    assert "" in {item.value for item in by_carrier}
    assert "Ünter" in {item.value for item in by_carrier}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"slices": ["colour"]}, "slice 'colour': there is no such column", id="slice"),
        pytest.param({"crossed_slices": [["carrier", "hue"]]}, "slice 'hue': there is no such column", id="crossed"),
        pytest.param({"group": "plane"}, "slice 'plane': there is no such column", id="group"),
        pytest.param({"slices": ["weight"]}, "slice 'weight': column of type FLOAT", id="slice-type"),
        pytest.param({"challenger": "/nowhere/model"}, "/nowhere/model: there is no model", id="model"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(trained, judge, changes: dict, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        judge(**{"challenger": trained[0].model_uri, "champion": None, **changes})


def test_a_folder_that_is_no_model_is_named(tmp_path: Path, exported) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"no model")
    with pytest.raises(DataError, match="no SavedModel"):
        load_model(str(tmp_path), exported.storage)
