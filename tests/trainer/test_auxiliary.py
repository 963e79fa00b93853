"""Several labels of one model, from export to evaluation: one decides, the others are learnt beside it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.support.flights import (
    COUNT,
    FEATURES,
    SCHEMA,
    draw_features,
    label_statistics,
    make_table,
    write_statistics,
)
from tests.support.refusals import refuses
from tests.support.trainer_documents import make_label
from trainer.contract.documents import Evaluation, Report, WeightedLabel
from trainer.errors import DataError, RequestError
from trainer.evaluation.job import evaluate
from trainer.input import open_source
from trainer.objective.outputs import Weighting, objective_of
from trainer.training.job import train

LABEL = {"name": "late", "kind": "binary"}
MINUTES = {"label": {"name": "minutes", "kind": "regression", "loss": "huber"}, "weight": 0.5}
GATE = {"label": {"name": "gate", "kind": "multiclass", "classes": 3}, "weight": 0.25}
COLUMNS_OF_LABELS = [
    {"name": "late", "type": "BOOLEAN", "mode": "NULLABLE"},
    {"name": "minutes", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "gate", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "wrong", "type": "INTEGER", "mode": "NULLABLE"},
]


def make_rows() -> pa.Table:
    """Flights: late by distance, with minutes that a third of them lacks, and a gate by carrier and distance."""
    random, distance, slow = draw_features()
    unknown = random.random((2, COUNT)) < 0.33
    labels = {
        "late": pa.array(distance + random.normal(0, 200, COUNT) > 1500),
        "minutes": pa.array(30 + distance / 8 + 60 * slow + random.normal(0, 8, COUNT), mask=unknown[0]),
        "gate": pa.array(np.where(slow, 2, (distance > 1000).astype(np.int64)), mask=unknown[1]),
        "wrong": pa.array(np.full(COUNT, 3)),
    }
    return make_table(random, distance, slow, **labels)


@pytest.fixture(scope="module")
def flights(exported, tmp_path_factory: pytest.TempPathFactory):
    """An exported run with three labels."""
    run = type(exported)(path=tmp_path_factory.mktemp("flights"), rows=make_rows())
    run.export(schema=SCHEMA + COLUMNS_OF_LABELS, model="flights")
    minutes = run.rows["minutes"].drop_null().to_numpy()
    auxiliary = {"minutes": label_statistics(minutes, minutes)}
    write_statistics(run, "statistics.json", label={"mean": 0.5, "nulls": 0}, auxiliary_labels=auxiliary)
    return run


def request_in(run, out: Path, *auxiliary: dict[str, Any], **changes: Any):
    training = {
        "model": "dense",
        "epochs": 8,
        "batch_size": 32,
        "hyperparameters": {"learning_rate": 0.01, "hidden_units": [16], "dropout": 0.0},
        **changes.pop("training", {}),
    }
    wanted = {"model": "flights", "label": LABEL, "features": FEATURES, "key": "flight_id", **changes}
    return run.train_request_in(out, training=training, auxiliary_labels=list(auxiliary), **wanted)


def start(run, out: Path, *auxiliary: dict[str, Any], **changes: Any) -> Report:
    """Train in this process."""
    return run.train(request_in(run, out, *auxiliary, **changes))


def judge(run, out: Path, challenger: str, champion: str | None = None, **changes: Any) -> Evaluation:
    """Evaluate in this process."""
    wanted = {
        "model": "flights",
        "label": LABEL,
        "auxiliary_labels": [MINUTES["label"], GATE["label"]],
        "features": FEATURES,
        "key": "flight_id",
        "slices": [],
        "evaluation_uri": str(out / "evaluation.json"),
        **changes,
    }
    request, manifest = run.evaluate_request(challenger, champion, **wanted), run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        return evaluate(request, manifest, source, run.storage)


@pytest.fixture(scope="module")
def trained(flights, tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = tmp_path_factory.mktemp("trained")
    return start(flights, out, MINUTES, GATE, training={"export_lite": ["float16"]})


@pytest.fixture(scope="module")
def alone(flights, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The same without auxiliary labels."""
    return start(flights, tmp_path_factory.mktemp("alone"))


def answers(report: Report, run) -> dict[str, np.ndarray]:
    """What a stored model says of every example."""
    model, rows = tf.saved_model.load(report.model_uri).signatures["serving_default"], run.rows
    distance = tf.constant(rows["distance"].to_numpy(), tf.float32)
    found = model(distance=distance, carrier=tf.constant(rows["carrier"].to_pylist()))
    return {name: values.numpy() for name, values in found.items()}


def test_all_labels_are_learnt_and_reported_under_their_names(trained: Report) -> None:
    assert set(trained.history) == {
        *("loss", "val_loss", "val_auc"),
        *("val_minutes_loss", "val_minutes_mae", "val_minutes_rmse", "val_minutes_r2"),
        *("val_gate_loss", "val_gate_accuracy", "val_gate_auc"),
    }
    assert trained.metrics["val_auc"] > 0.9
    assert trained.metrics["val_minutes_r2"] > 0.9
    assert trained.metrics["val_gate_accuracy"] > 0.8


def test_each_is_an_output_in_its_own_form(trained: Report, flights) -> None:
    assert trained.signature.outputs == {"score": "float32", "minutes": "float32", "gate": "float32"}
    found, rows = answers(trained, flights), flights.rows.num_rows
    assert {name: values.shape for name, values in found.items()} == {
        "score": (rows,),
        "minutes": (rows,),
        "gate": (rows, 3),
    }
    assert found["gate"].sum(axis=1) == pytest.approx(np.ones(rows), abs=1e-5)
    known = flights.rows["minutes"].is_valid().to_numpy(zero_copy_only=False)
    errors = found["minutes"][known] - flights.rows["minutes"].to_numpy(zero_copy_only=False)[known]
    assert np.abs(errors).mean() < 40  # minutes, of 30 to 465
    assert all(isinstance(item.prediction, float) for item in trained.golden)


def test_the_judge_measures_them_and_compares_by_the_label_alone(trained, alone, flights, tmp_path: Path) -> None:
    lite = {"forms": ["float16"], "folder_uri": str(tmp_path / "lite")}
    found = judge(flights, tmp_path, trained.model_uri, alone.model_uri, lite=lite)
    assert found.champion_skipped is None
    assert found.champion.auxiliary == {}
    assert found.difference.metric == "auc"
    assert set(found.challenger.auxiliary) == {"minutes", "gate"}
    assert found.challenger.auxiliary["minutes"].rows < found.rows
    assert found.challenger.auxiliary["minutes"].metrics.r2 > 0.9
    assert found.challenger.auxiliary["gate"].metrics.accuracy > 0.8
    every = [found.challenger.counted, *(of.counted for of in found.challenger.auxiliary.values())]
    assert [sum(counted.counts) for counted in every] == [found.rows] * 3
    assert found.lite[0].metrics is not None, found.lite[0].message
    assert abs(found.lite[0].difference) < 0.01


def test_a_champion_with_outputs_of_its_own_is_compared_too(trained, alone, flights, tmp_path: Path) -> None:
    other = {"label": {"name": "gate", "kind": "multiclass", "classes": 4}, "weight": 1.0}
    champion = start(flights, tmp_path / "champion", other, MINUTES, training={"epochs": 1})
    found = judge(flights, tmp_path, trained.model_uri, champion.model_uri)
    assert found.difference is not None
    assert set(found.champion.auxiliary) == {"minutes"}  # its gate has another form
    plain = judge(flights, tmp_path / "plain", alone.model_uri, champion.model_uri, auxiliary_labels=[])
    assert plain.champion.metrics == found.champion.metrics


def test_an_auxiliary_label_without_a_right_value_is_refused_by_name(flights, tmp_path: Path) -> None:
    wrong = {"label": {"name": "wrong", "kind": "multiclass", "classes": 3}, "weight": 1.0}
    with refuses(DataError, where="auxiliary label 'wrong'", found="another value"):
        start(flights, tmp_path, wrong)
    with refuses(DataError, where="label 'carrier'", found="STRING"):
        start(flights, tmp_path, {"label": {"name": "carrier", "kind": "binary"}, "weight": 1.0})


@pytest.mark.parametrize("loop", ["fit", "custom"])
@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_both_loops_learn_the_same_with_and_without_a_mirrored_strategy(
    strategy: str, loop: str, trained, flights, tmp_path: Path
) -> None:
    report = start(flights, tmp_path, MINUTES, GATE, training={"strategy": strategy, "loop": loop})
    for name, values in answers(trained, flights).items():
        assert answers(report, flights)[name] == pytest.approx(values, rel=1e-3, abs=1e-3), name


OBJECTIVE = objective_of(
    make_label(name="late", kind="binary"),
    [
        WeightedLabel(label=make_label(name="gate", kind="multiclass", classes=3), weight=0.25),
        WeightedLabel(label=make_label(name="minutes", kind="regression"), weight=0.5),
    ],
)
COLUMNS = {
    "late": tf.constant([1, 0, 1], tf.int64),
    "gate": tf.constant([2, np.iinfo(np.int64).min, 0], tf.int64),
    "minutes": tf.constant([0.5, 2.0, np.nan]),
}
LOGITS = [[0.3, 1.0, -1.0, 0.2, 0.1], [-0.7, 0.4, 0.0, 0.3, 0.0], [1.2, 0.5, 0.5, -2.0, 0.9]]


def test_the_loss_is_the_labels_plus_the_weighted_others_of_examples_that_have_them() -> None:
    loss = OBJECTIVE.loss()(OBJECTIVE.targets(COLUMNS), tf.constant(LOGITS)).numpy()
    logits = np.array(LOGITS)
    late = np.log1p(np.exp(-logits[:, 0] * [1, -1, 1]))
    chances = np.exp(logits[:, 1:4]) / np.exp(logits[:, 1:4]).sum(axis=1, keepdims=True)
    gate = -np.log([chances[0, 2], 1.0, chances[2, 0]])
    minutes = np.array([(0.5 - 0.1) ** 2, (2.0 - 0.0) ** 2, 0.0])
    assert loss == pytest.approx((late + 0.25 * gate + 0.5 * minutes).mean(), rel=1e-5)


def test_what_is_missing_has_no_gradient_and_none_is_nan() -> None:
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = OBJECTIVE.loss()(OBJECTIVE.targets(COLUMNS), logits)
    gradient = tape.gradient(loss, logits).numpy()
    assert np.isfinite(gradient).all()
    assert (gradient[1, 1:4] == 0).all()
    assert gradient[2, 4] == 0
    assert (gradient[[0, 2], 1] != 0).all()


def test_a_tiny_weight_trains_the_label_as_if_it_were_alone() -> None:
    def gradient(weight: float) -> np.ndarray:
        others = tuple(dataclasses.replace(item, weight=weight) for item in OBJECTIVE.auxiliary)
        objective, shared = dataclasses.replace(OBJECTIVE, auxiliary=others), tf.Variable(tf.ones([5, 5]))
        with tf.GradientTape() as tape:
            loss = objective.loss()(objective.targets(COLUMNS), tf.constant(LOGITS) @ shared)
        return tape.gradient(loss, shared).numpy()

    kind = OBJECTIVE.kind
    shared = tf.Variable(tf.ones([5, 5]))
    with tf.GradientTape() as tape:
        loss = kind.loss()(kind.targets(COLUMNS["late"]), (tf.constant(LOGITS) @ shared)[:, :1])
    assert gradient(1e-9) == pytest.approx(tape.gradient(loss, shared).numpy(), abs=1e-7)
    assert gradient(1.0) != pytest.approx(gradient(1e-9), abs=1e-3)


def test_epochs_are_measured_where_a_label_is_known() -> None:
    targets = OBJECTIVE.targets(COLUMNS).numpy().astype(np.float64)
    scores = OBJECTIVE.epoch_scores(tf.constant(LOGITS)).numpy().astype(np.float64)
    metrics = OBJECTIVE.epoch_metrics(targets, scores)
    assert metrics["val_gate_accuracy"] == 0.5
    assert metrics["val_minutes_mae"] == pytest.approx((0.4 + 2.0) / 2)
    only = objective_of(OBJECTIVE.label).epoch_metrics(targets[:, 0], scores[:, :1])
    assert {name: metrics[name] for name in only} == only
    unknown = {**COLUMNS, "minutes": tf.constant([np.nan] * 3)}
    none = OBJECTIVE.epoch_metrics(OBJECTIVE.targets(unknown).numpy().astype(np.float64), scores)
    assert not [name for name in none if name.startswith("val_minutes_")]


def test_examples_count_as_much_as_their_weight() -> None:
    """Over the mean weight: an example of weight 0 adds nothing, one of the mean what it did."""
    weighted = dataclasses.replace(OBJECTIVE, weighting=Weighting(column="importance", mean=2.0))
    columns = {**COLUMNS, "importance": tf.constant([4.0, 0.0, 2.0])}
    targets, logits = weighted.targets(columns), tf.constant(LOGITS)
    each = OBJECTIVE.losses(OBJECTIVE.targets(COLUMNS), logits).numpy()
    assert weighted.losses(targets, logits).numpy() == pytest.approx(each * [2, 0, 1])
    alone = dataclasses.replace(weighted, auxiliary=())
    own = alone.losses(alone.targets(columns), logits[:, :1]).numpy()
    plain = alone.kind.loss().call(tf.cast(COLUMNS["late"], tf.float32)[:, tf.newaxis], logits[:, :1]).numpy()
    assert own == pytest.approx(plain * [2, 0, 1])
    scores = weighted.epoch_scores(logits).numpy().astype(np.float64)
    measured = weighted.epoch_metrics(targets.numpy().astype(np.float64), scores)
    assert measured["val_loss"] == pytest.approx((2 * plain[0] + plain[2]) / 3, rel=1e-5)
    assert measured["val_gate_accuracy"] == pytest.approx(1 / 3)  # wrong with weight 4, right with 2
    with refuses(DataError, where="split train, weight 'importance'", found="1 examples", expected="finite"):
        alone.require_labels(np.array([[1.0, 1.0], [0.0, -1.0]]), "split train, ")


def test_an_architecture_with_too_few_logits_is_refused_by_name() -> None:
    with refuses(RequestError, where="training.model", found="1 logits", expected="5"):
        OBJECTIVE.parts(tf.zeros([3, 1]))


def test_numbers_need_statistics_of_their_own(flights, tmp_path: Path) -> None:
    unknown = {"label": {"name": "distance", "kind": "regression"}, "weight": 1.0}
    with refuses(DataError, found="'distance'"):
        start(flights, tmp_path, unknown, features=FEATURES[1:])


def test_a_trial_reports_the_metric_of_an_auxiliary_label(flights, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "1")
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(tmp_path / "metrics"))
    request = request_in(flights, tmp_path, MINUTES, trial_metric="val_minutes_medae", training={"epochs": 2})
    job = flights.job(request)
    with open_source(job.manifest, job.manifest.splits, flights.storage) as source:
        assert train(job, source) is None
    lines = [json.loads(line) for line in (tmp_path / "metrics").read_text().splitlines()]
    assert [0 < float(line["val_minutes_medae"]) < 300 for line in lines] == [True, True]
