"""A whole training that begins with an earlier one's weights: proven, repeatable, and said in its report."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.refusals import refuses
from trainer.contract.documents import InitialModel, TrainRequest
from trainer.contract.reading import serialise
from trainer.errors import DataError, RequestError
from trainer.input import open_source
from trainer.training.epochs import LEAST_STEPS
from trainer.training.job import train

RUN_KEY = "20240109t030000z-0a1b2c3d4e5f"


@pytest.fixture(scope="module")
def champion(exported, tmp_path_factory: pytest.TempPathFactory) -> InitialModel:
    """A training of three epochs, as a version."""
    folder = tmp_path_factory.mktemp("champion")
    request = exported.train_request_in(folder)
    report = exported.train(request)
    (folder / "train_request.json").write_bytes(serialise(request))
    return InitialModel(
        version_id="7",
        run_key=RUN_KEY,
        model_uri=request.model_uri,
        model_digest=report.model_digest,
        request_uri=str(folder / "train_request.json"),
        report_uri=request.report_uri,
    )


def warm(exported, champion: InitialModel, folder: Path, **changes: Any) -> TrainRequest:
    request = exported.train_request_in(folder, **changes)
    return dataclasses.replace(request, initial=champion)


def weights(request: TrainRequest) -> list[np.ndarray[Any, Any]]:
    """Of a stored model."""
    return [item.numpy() for item in tf.saved_model.load(request.model_uri).weights]


def test_it_begins_where_the_champion_ended_and_says_so(exported, champion, tmp_path) -> None:
    """One epoch more is better than the first one of a training from nothing; every variable was taken."""
    anew = exported.train(exported.train_request_in(tmp_path / "anew"))
    said: list[str] = []
    report = exported.train(warm(exported, champion, tmp_path / "warm", training={"epochs": 1}), said)
    assert report.history["val_loss"][0] < 0.9 * anew.history["val_loss"][0]
    assert report.initial is not None
    assert (report.initial.version_id, report.initial.run_key, dict(report.initial.anew)) == ("7", RUN_KEY, {})
    assert "by value" in report.initial.taken["embed_carrier/embeddings"]
    assert any("begins with 11 of 11 variables of version 7" in line for line in said), said
    assert anew.initial is None


def test_the_same_request_gives_the_same_model(exported, champion, tmp_path) -> None:
    first, second = (warm(exported, champion, tmp_path / name) for name in ("first", "second"))
    reports = [exported.train(request) for request in (first, second)]
    assert reports[0].history == reports[1].history
    for one, other in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(one, other)


WORSE = {"epochs": 3, "hyperparameters": {"learning_rate": 0.3, "dropout": 0.1, "hidden_units": [16, 8]}}
"""A rate that ruins weights that had learnt, within fewer steps than a training from nothing needs to learn."""


def test_the_first_epoch_may_be_the_best_one_of_weights_that_had_learnt(exported, champion, tmp_path) -> None:
    """Of weights that the seed drew it may not, before they have learnt anything: the newest is kept."""
    went_on = exported.train(warm(exported, champion, tmp_path / "warm", training=WORSE))
    assert went_on.initial.taken
    assert went_on.steps < LEAST_STEPS
    assert went_on.best_epoch == int(np.argmin(went_on.history["val_loss"])) + 1 < 3
    anew = exported.train(exported.train_request_in(tmp_path / "anew", training=WORSE))
    assert anew.best_epoch == anew.epochs_run == 3


def test_an_interrupted_one_goes_on_from_its_own_checkpoint(exported, champion, tmp_path) -> None:
    """And not from the champion again: it ends where a whole one ends."""
    whole = warm(exported, champion, tmp_path / "whole")
    report = exported.train(whole)
    cut = warm(exported, champion, tmp_path / "whole")
    newest = max((tmp_path / "whole" / "checkpoints").glob("step-*"))
    shutil.rmtree(newest)
    Path(cut.report_uri).unlink()
    again = exported.train(cut)
    assert again.resumed_from_epoch == 2
    assert again.history == report.history
    assert again.initial == report.initial


def test_other_files_than_the_reports_are_refused(exported, champion, tmp_path) -> None:
    """Before anything of them is read; with its files back, or without the version, it trains."""
    model = tmp_path / "model"
    shutil.copytree(champion.model_uri, model)
    moved = dataclasses.replace(champion, model_uri=str(model))
    (path,) = (model / "variables").glob("*.data*")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    request = warm(exported, moved, tmp_path / "warm", training={"epochs": 1})
    with refuses(DataError, where=str(model), found="SHA-256", expected="version 7 as its report has it"):
        exported.train(request)
    path.write_bytes(content)
    assert exported.train(request).initial.taken
    gone = dataclasses.replace(champion, model_uri=str(tmp_path / "nothing"))
    request = warm(exported, gone, tmp_path / "gone", training={"epochs": 1})
    with refuses(DataError, found="there is no model", way_out="take the alias champion from it"):
        exported.train(request)
    assert exported.train(dataclasses.replace(request, initial=None)).initial is None


@pytest.mark.parametrize("change", ["statistics", "answers", "hyperparameter"])
def test_weights_whose_meaning_is_not_known_are_not_taken(exported, champion, tmp_path, change) -> None:
    """Documents that make another model of them: it would answer otherwise than the champion did."""
    request, report = (json.loads(Path(uri).read_bytes()) for uri in (champion.request_uri, champion.report_uri))
    if change == "statistics":
        statistics = json.loads(Path(request["statistics_uri"]).read_bytes())
        statistics["splits"]["train"]["features"]["distance"]["mean"] += 500
        request["statistics_uri"] = str(tmp_path / "statistics.json")
        (tmp_path / "statistics.json").write_text(json.dumps(statistics))
    elif change == "answers":
        report["golden"][0]["prediction"] += 0.01
    else:
        report["hyperparameters"]["forgotten"] = 3
    for name, document in (("train_request.json", request), ("report.json", report)):
        (tmp_path / name).write_text(json.dumps(document))
    moved = dataclasses.replace(
        champion, request_uri=str(tmp_path / "train_request.json"), report_uri=str(tmp_path / "report.json")
    )
    made = exported.train(warm(exported, moved, tmp_path / "warm", training={"epochs": 1}))
    assert not made.initial.taken
    assert len(made.initial.anew) == 11
    assert all("not known what it means" in reason for reason in made.initial.anew.values())


def test_an_architecture_that_cannot_is_refused(exported, champion, tmp_path) -> None:
    request = warm(exported, champion, tmp_path, training={"model": "deep_cross", "epochs": 1})
    job = exported.job(request)
    with (
        open_source(job.manifest, job.manifest.splits, exported.storage) as source,
        refuses(RequestError, where="training.initial", found="deep_cross", way_out="Remove training.initial"),
    ):
        train(job, source)
    assert exported.train(dataclasses.replace(request, initial=None)).initial is None
