"""A number as label, from export to evaluation: trained, stored, judged against baselines and a champion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.support import flights as data
from tests.support.flights import COUNT, draw_features, label_statistics, make_table, write_statistics
from tests.support.refusals import refuses
from trainer.contract.documents import Evaluation, NumberMetrics, Report
from trainer.contract.reading import parse_document
from trainer.errors import DataError, RequestError
from trainer.evaluation.job import evaluate
from trainer.input import open_source

LABEL = {"name": "minutes", "kind": "regression"}
QUANTILES = {**LABEL, "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]}
FEATURES = [data.FEATURES[0], {**data.FEATURES[1], "embedding_dim": None}]
COLUMNS_OF_LABELS = [
    {"name": "minutes", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "delays", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "last_minutes", "type": "FLOAT", "mode": "NULLABLE"},
]


def make_rows() -> pa.Table:
    """Flights whose minutes follow from distance and carrier, with a little noise."""
    random, distance, slow = draw_features()
    minutes = 30 + distance / 8 + 60 * slow + random.normal(0, 8, COUNT)
    last = np.where(random.random(COUNT) < 0.1, np.nan, minutes + random.normal(0, 90, COUNT))
    labels = {
        "minutes": minutes,
        "delays": random.poisson(np.exp(distance / 1500)).astype(np.int64),
        "last_minutes": pa.array(last, mask=np.isnan(last)),
    }
    return make_table(random, distance, slow, **labels)


@pytest.fixture(scope="module")
def flights(exported, tmp_path_factory: pytest.TempPathFactory):
    """An exported run whose label is a number."""
    run = type(exported)(path=tmp_path_factory.mktemp("flights"), rows=make_rows())
    run.export(schema=data.SCHEMA + COLUMNS_OF_LABELS, model="flights")
    minutes, delays = (run.rows[name].to_numpy().astype(np.float64) for name in ("minutes", "delays"))
    write_statistics(run, "statistics.json", label=label_statistics(minutes, minutes))
    write_statistics(run, "log1p.json", label=label_statistics(minutes, np.log1p(minutes)))
    write_statistics(run, "delays.json", label=label_statistics(delays, delays))
    return run


def start(run, out: Path, statistics: str = "statistics.json", **changes: Any) -> Report:
    """Train in this process."""
    training = {
        "model": "dense",
        "epochs": 12,
        "batch_size": 32,
        "hyperparameters": {"learning_rate": 0.01, "hidden_units": [16], "dropout": 0.0},
        **changes.pop("training", {}),
    }
    wanted = {"model": "flights", "label": LABEL, "features": FEATURES, "key": "flight_id", **changes}
    request = run.train_request_in(out, training=training, statistics_uri=run.uri(statistics), **wanted)
    return run.train(request)


def judge(run, out: Path, challenger: str, champion: str | None = None, **changes: Any) -> Evaluation:
    """Evaluate in this process."""
    wanted = {
        "model": "flights",
        "label": LABEL,
        "features": FEATURES,
        "key": "flight_id",
        "slices": ["carrier"],
        "metric": "mae",
        "baselines": {"last_value": "last_minutes"},
        "evaluation_uri": str(out / "evaluation.json"),
        **changes,
    }
    request, manifest = run.evaluate_request(challenger, champion, **wanted), run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        return evaluate(request, manifest, source, run.storage)


@pytest.fixture(scope="module")
def trained(flights, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return start(flights, tmp_path_factory.mktemp("trained"), training={"export_lite": ["float16"]})


@pytest.fixture(scope="module")
def weak(flights, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A champion that learned next to nothing."""
    return start(flights, tmp_path_factory.mktemp("weak"), training={"epochs": 1, "hyperparameters": {}})


def numbers(metrics: Any) -> NumberMetrics:
    assert isinstance(metrics, NumberMetrics)
    return metrics


def test_it_learns_and_answers_in_minutes(trained: Report) -> None:
    assert set(trained.history) == {"loss", "val_loss", "val_mae", "val_rmse", "val_r2"}
    assert trained.metrics["val_r2"] > 0.95
    assert trained.signature.outputs == {"prediction": "float32"}
    model = tf.saved_model.load(trained.model_uri).signatures["serving_default"]
    answer = model(distance=tf.constant([800.0, 2400.0]), carrier=tf.constant(["fast", "slow"]))["prediction"].numpy()
    assert answer == pytest.approx([130, 390], abs=25)
    assert [isinstance(item.prediction, float) for item in trained.golden] == [True] * 5


def test_both_models_are_judged_beside_answers_without_a_model(trained, weak, flights, tmp_path: Path) -> None:
    found = judge(flights, tmp_path, trained.model_uri, weak.model_uri)
    ours = numbers(found.challenger.metrics)
    assert (found.label_rate, found.label_counts, found.baseline) == (None, None, None)
    assert found.difference.metric == "mae"
    assert found.difference.high < 0
    assert ours.mae < numbers(found.champion.metrics).mae
    baselines = {item.name: item for item in found.baselines}
    assert set(baselines) == {"mean", "median", "last_value"}
    assert baselines["mean"].metrics.r2 == pytest.approx(0, abs=1e-9)
    assert baselines["last_value"].rows < found.rows
    assert all(item.challenger.mae < item.metrics.mae for item in found.baselines)
    assert sum(found.challenger.answers.residuals.counts) == found.rows
    assert {item.value for item in found.challenger.slices} == {"fast", "slow"}
    assert parse_document(Evaluation, (tmp_path / "evaluation.json").read_bytes(), "evaluation") == found


def test_quantiles_cover_what_they_say(flights, tmp_path: Path) -> None:
    report = start(flights, tmp_path, label=QUANTILES, training={"epochs": 25})
    assert report.signature.outputs == {"quantiles": "float32"}
    assert report.signature.output_shapes == {"quantiles": (3,)}
    assert all(list(item.prediction) == sorted(item.prediction) for item in report.golden)
    found = judge(flights, tmp_path, report.model_uri, label=QUANTILES, metric="pinball")
    assert numbers(found.challenger.metrics).pinball < found.baselines[0].metrics.pinball
    model = tf.saved_model.load(report.model_uri).signatures["serving_default"]
    rows = flights.rows
    answers = model(
        distance=tf.constant(rows["distance"].to_numpy(), tf.float32), carrier=tf.constant(rows["carrier"].to_pylist())
    )["quantiles"].numpy()
    below = (rows["minutes"].to_numpy()[:, np.newaxis] < answers).mean(axis=0)
    assert below == pytest.approx([0.1, 0.5, 0.9], abs=0.12)


@pytest.mark.parametrize(
    ("label", "statistics"),
    [
        pytest.param({**LABEL, "transform": "log1p", "loss": "huber"}, "log1p.json", id="log1p"),
        pytest.param({"name": "delays", "kind": "regression", "loss": "poisson"}, "delays.json", id="poisson"),
    ],
)
def test_other_losses_answer_in_the_labels_unit(label, statistics: str, flights, tmp_path: Path) -> None:
    report = start(flights, tmp_path, statistics, label=label, training={"loop": "custom"})
    found = judge(flights, tmp_path, report.model_uri, label=label, metric="rmse", baselines={})
    assert numbers(found.challenger.metrics).rmse < 0.8 * found.baselines[0].metrics.rmse
    assert found.challenger.answers.quantiles[0] > 0


def test_the_tf_lite_file_says_the_same(trained: Report, flights, tmp_path: Path) -> None:
    lite = {"forms": ["float16"], "folder_uri": str(tmp_path / "lite")}
    found = judge(flights, tmp_path, trained.model_uri, lite=lite)
    assert found.lite[0].metrics is not None, found.lite[0].message
    assert abs(found.lite[0].difference) < 0.05 * numbers(found.challenger.metrics).mae


def test_a_champion_of_other_quantiles_is_left_out_with_words(trained, flights, tmp_path: Path) -> None:
    other = start(flights, tmp_path / "other", label=QUANTILES, training={"epochs": 1})
    found = judge(flights, tmp_path, trained.model_uri, other.model_uri)
    assert found.champion_skipped.endswith("quantiles 0.1, 0.5, 0.9")


@pytest.mark.parametrize(
    ("label", "words"),
    [
        pytest.param({**LABEL, "name": "carrier"}, "column of type STRING", id="type"),
        pytest.param({**LABEL, "max": 200.0}, "a finite number, at most 200", id="range"),
    ],
)
def test_a_label_that_is_no_right_number_is_refused_by_name(flights, label, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        start(flights, tmp_path, label=label)


def test_a_baseline_that_is_no_number_is_refused_by_name(trained: Report, flights, tmp_path: Path) -> None:
    with refuses(RequestError, where="baseline 'last'", found="STRING"):
        judge(flights, tmp_path, trained.model_uri, baselines={"last": "carrier"})
