"""Reference lines: a linear model and small boosted trees of the same shards, beside the challenger."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.trainer.conftest import Run
from trainer.contract.documents import BinaryLabel, Evaluation, MulticlassLabel, ReferenceRequest, RegressionLabel
from trainer.evaluation.job import evaluate
from trainer.evaluation.reference.columns import MAX_CODES, Coder, Design
from trainer.evaluation.reference.fits import fit_linear, fit_trees
from trainer.evaluation.reference.lines import train_lines
from trainer.evaluation.reference.losses import loss_of
from trainer.evaluation.scoring import Columns
from trainer.evaluation.splits import TRAIN, chosen_splits
from trainer.input import open_source
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics

ASKED = {"rows": 50_000, "seconds": 60, "seed": 1}
BINARY = BinaryLabel(name="y", kind="binary")
NUMBER = RegressionLabel(name="y", kind="regression")


def never() -> None:
    """There is time."""


def draw(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, and a label that follows from their sum."""
    random = np.random.default_rng(seed)
    numbers = random.normal(size=(rows, 2))
    chances = 1 / (1 + np.exp(-(numbers.sum(axis=1) - 1)))
    return np.column_stack([numbers, np.ones(rows)]), (random.random(rows) < chances).astype(float)


@pytest.mark.parametrize("weights", [np.ones(400), np.arange(400) % 3], ids=["equal", "weighted"])
def test_a_linear_model_is_where_the_regularised_loss_is_flat(weights) -> None:
    matrix, labels = draw(400)
    weights = weights / weights.mean()
    loss = loss_of(BINARY, labels, weights)
    found = fit_linear(matrix, labels, weights, loss, never)
    slopes = matrix.T @ (weights[:, None] * loss.slopes(loss.start() + matrix @ found, labels))
    assert np.abs(slopes[:-1] - found[:-1]).max() < 1e-4
    assert abs(slopes[-1, 0]) < 1e-4


def test_of_a_number_it_is_ridge_regression() -> None:
    matrix, _ = draw(300)
    labels = 40 + matrix[:, 0] * 7 - matrix[:, 1] * 3
    weights = np.ones(300)
    loss = loss_of(NUMBER, labels, weights)
    found = fit_linear(matrix, labels, weights, loss, never)
    centred = (labels - labels.mean()) / labels.std()
    ridge = np.linalg.solve(matrix.T @ matrix + np.diag([1, 1, 1e-6]), matrix.T @ centred)
    np.testing.assert_allclose(found[:, 0], ridge, atol=1e-8)


def test_of_several_classes_it_comes_near_the_flat_place_too() -> None:
    random = np.random.default_rng(2)
    matrix, weights = np.column_stack([random.normal(size=(500, 3)), np.ones(500)]), np.ones(500)
    labels = (matrix[:, :3] + random.gumbel(size=(500, 3))).argmax(axis=1).astype(float)
    loss = loss_of(MulticlassLabel(name="y", kind="multiclass", classes=3), labels, weights)
    found = fit_linear(matrix, labels, weights, loss, never)
    slopes = matrix.T @ loss.slopes(loss.start() + matrix @ found, labels)
    assert np.abs(slopes[:-1] - found[:-1]).max() < 0.05


def test_trees_find_what_no_linear_model_can() -> None:
    """The label is whether two numbers have the same sign."""
    numbers = np.random.default_rng(3).normal(size=(2000, 2))
    labels, weights = (numbers.prod(axis=1) > 0).astype(float), np.ones(2000)
    columns = {"a": numbers[:, 0], "b": numbers[:, 1]}
    loss = loss_of(BINARY, labels, weights)
    coder = Coder(columns, labels, weights)
    boosted = fit_trees(coder.codes(columns), labels, weights, loss, 1, never)
    assert loss.losses(boosted.scores(coder.codes(columns)), labels).mean() < 0.2
    design = Design(columns)
    matrix = design.matrix(columns)
    linear = matrix @ fit_linear(matrix, labels, weights, loss, never) + loss.start()
    assert loss.losses(linear, labels).mean() > 0.65


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_rows_and_seed_give_the_same_trees(seed) -> None:
    matrix, labels = draw(600)
    columns, weights = {"a": matrix[:, 0], "b": matrix[:, 1]}, np.ones(600)
    loss = loss_of(BINARY, labels, weights)
    codes = Coder(columns, labels, weights).codes(columns)
    first, again = (fit_trees(codes, labels, weights, loss, seed, never).scores(codes) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_row_that_counts_nothing_changes_no_line() -> None:
    matrix, labels = draw(400)
    spoilt = labels.copy()
    spoilt[::4] = 1 - spoilt[::4]
    weights = np.where(np.arange(400) % 4 == 0, 0.0, 4 / 3)
    kept = weights > 0
    of_all = fit_linear(matrix, spoilt, weights, loss_of(BINARY, spoilt, weights), never)
    whole = weights[kept]
    of_kept = fit_linear(matrix[kept], labels[kept], whole, loss_of(BINARY, labels[kept], whole), never)
    np.testing.assert_allclose(of_all, of_kept, atol=1e-6)


def test_missing_values_and_unknown_categories_have_a_place() -> None:
    columns = {
        "number": np.array([1.0, np.nan, 3.0, 5.0] * 30),
        "text": np.array([b"a", b"b", b"", b"a"] * 30, object),
    }
    labels, weights = np.array([0.0, 1.0, 0.0, 1.0] * 30), np.ones(120)
    strange = {"number": np.array([np.nan, 1e30]), "text": np.array([b"never seen", b""], object)}
    matrix = Design(columns).matrix(strange)
    assert np.isfinite(matrix).all()
    assert np.abs(matrix).max() <= 8
    codes = Coder(columns, labels, weights).codes(strange)
    assert codes[:, 1].tolist() == [0, 0]
    assert codes[0, 0] == 0 < codes[1, 0] < MAX_CODES


@pytest.fixture(scope="module")
def model_uri(exported: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that has learnt nothing to speak of."""
    training = {"epochs": 1, "model": "dense", "hyperparameters": {"learning_rate": 1e-6, "hidden_units": [2]}}
    return exported.train(exported.train_request_in(tmp_path_factory.mktemp("model"), training=training)).model_uri


@pytest.fixture
def judge(exported: Run, model_uri: str, tmp_path: Path) -> Callable[..., Evaluation]:
    def evaluate_model(**changes: Any) -> Evaluation:
        wanted = {"evaluation_uri": str(tmp_path / "evaluation.json"), "reference": ASKED, **changes}
        request, manifest = exported.evaluate_request(model_uri, None, **wanted), exported.manifest()
        with open_source(manifest, chosen_splits(request, manifest), exported.storage) as source:
            return evaluate(request, manifest, source, exported.storage)

    return evaluate_model


def test_a_model_that_learnt_nothing_loses_to_a_line(judge) -> None:
    lines = {line.name: line for line in judge().reference}
    assert {name: line.not_judged for name, line in lines.items()} == {"linear": None, "trees": None}
    for line in lines.values():
        assert line.difference.confidence == pytest.approx(0.95)  # the request has 0.9, and two share it
        assert line.rows > 100
    assert lines["linear"].difference.high < 0
    assert lines["linear"].metrics.auc > 0.6


def test_what_is_not_asked_is_not_trained(judge) -> None:
    assert judge(reference=None).reference == ()


def test_lines_change_nothing_else_of_an_evaluation(judge, tmp_path: Path) -> None:
    """And the same request gives the same lines."""
    with_lines = judge()
    (tmp_path / "evaluation.json").unlink()
    again = judge()
    (tmp_path / "evaluation.json").unlink()
    without = judge(reference=None)
    assert with_lines.reference == again.reference
    assert with_lines.challenger == without.challenger
    assert with_lines.worst == without.worst
    assert with_lines.serving.inputs == without.serving.inputs


def trained(exported: Run, model_uri: str, clock=lambda: 0.0, manifest=None, **changes: Any):
    """Train lines alone."""
    request = exported.evaluate_request(model_uri, None, reference=ASKED)
    request = dataclasses.replace(request, **changes)
    there = manifest or exported.manifest()
    with open_source(there, chosen_splits(request, there), exported.storage) as source:
        return train_lines(request, there, source, Columns(exported.manifest(), request.label), clock)


def test_a_line_that_takes_too_long_is_given_up(exported, model_uri) -> None:
    ticks = iter(range(0, 10**6, 25))
    lines = trained(exported, model_uri, clock=lambda: float(next(ticks)))
    assert {line.not_judged for line in lines} == {"it was not trained in 60 seconds"}


def test_images_alone_have_no_line(exported, model_uri) -> None:
    image = SimpleNamespace(name="photo", kind="image")
    lines = trained(exported, model_uri, features=(image,))
    assert {line.not_judged for line in lines} == {"no feature is a number or a category"}


def test_rows_that_lie_in_no_files_have_no_line(exported, model_uri) -> None:
    manifest = exported.manifest()
    train = dataclasses.replace(manifest.splits[TRAIN], files=())
    manifest = dataclasses.replace(manifest, splits={**manifest.splits, TRAIN: train})
    (first, _) = trained(exported, model_uri, manifest=manifest)
    assert first.not_judged == "the training split lies in no files (training.input: bigquery)"


def test_few_rows_have_no_line(exported, model_uri) -> None:
    few = ReferenceRequest(rows=60, seconds=60, seed=1)
    (first, _) = trained(exported, model_uri, reference=few)
    assert first.not_judged == "it has 60 training rows, 100 are needed"


def test_no_more_files_are_fetched_than_the_rows_need(exported, model_uri) -> None:
    manifest = exported.manifest()
    files = [file for file in manifest.splits[TRAIN].files if file.rows]
    few = ReferenceRequest(rows=files[0].rows, seconds=60, seed=1)
    request = dataclasses.replace(exported.evaluate_request(model_uri, None), reference=few)
    chosen = chosen_splits(request, manifest)[TRAIN]
    assert len(chosen.files) < len(files)
    assert few.rows <= chosen.rows == sum(file.rows for file in chosen.files)
    assert TRAIN not in chosen_splits(dataclasses.replace(request, reference=None), manifest)


def test_a_missing_shard_is_a_sentence_and_no_failure(exported, model_uri) -> None:
    manifest = exported.manifest()
    train = manifest.splits[TRAIN]
    gone = tuple(dataclasses.replace(file, uri=f"{file.uri}.gone") for file in train.files)
    splits = {**manifest.splits, TRAIN: dataclasses.replace(train, files=gone)}
    (first, _) = trained(exported, model_uri, manifest=dataclasses.replace(manifest, splits=splits))
    assert first.line is None
    assert ".gone" in first.not_judged


def test_equally_good_models_are_seldom_stopped() -> None:
    """Challenger and two lines err alike and independently; at 95 % at most 2.5 % of them may be stopped by chance."""
    random, stopped = np.random.default_rng(5), 0
    for _ in range(60):
        truth = random.normal(size=1500)
        labels = (random.random(1500) < 1 / (1 + np.exp(2 - truth))).astype(float)
        ours, *lines = (1 / (1 + np.exp(2 - truth - random.normal(0, 0.7, 1500))) for _ in range(3))
        resampling = Resampling(samples=200, seed=1, confidence=0.975)
        pairs = [Pair(labels=labels, challenger=ours, champion=line) for line in lines]
        stopped += any(bootstrap_metrics(pair, ["auc"], resampling)["auc"].high < 0 for pair in pairs)
    assert stopped <= 6
