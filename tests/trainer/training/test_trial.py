"""Trials of a study: where they work, what they report, how they end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.refusals import refuses
from trainer.cluster.strategy import Strategy
from trainer.contract.results import is_done
from trainer.errors import ContractError, Diverged, RequestError
from trainer.storage import Storage
from trainer.task import main
from trainer.training.job import _report_trial
from trainer.training.trial import Measurements, Trial, place


@pytest.fixture
def as_trial(monkeypatch, tmp_path):
    """Be a trial with a number; gives the file that the service reads."""
    path = tmp_path / "hypertune" / "output.metrics"
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "3")
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(path))
    return path


def lines(path: Path) -> list[dict[str, object]]:
    """What was reported."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_trial_works_below_the_common_addresses_with_its_own_flags(run):
    request = run.train_request(trial_metric="val_auc")
    placed, flags = place(request, {"dropout": "0.5"}, {"CLOUD_ML_TRIAL_ID": "3"})
    assert placed.checkpoint_uri == f"{request.checkpoint_uri}/3"
    assert placed.tensorboard_uri == f"{request.tensorboard_uri}/3"
    assert placed.model_uri == f"{request.model_uri}/3"
    assert placed.report_uri == request.report_uri.removesuffix(".json") + "/3.json"
    assert (placed.training, flags) == (request.training, {"dropout": "0.5"})


@pytest.mark.parametrize("given", ["1", "1.0"])
def test_a_prior_goes_over_the_request_and_under_no_flag(run, given):
    priors = [{"dropout": 0.1}, {"dropout": 0.2, "hidden_units": "8,4"}]
    request = run.train_request(trial_metric="val_auc", priors=priors)
    placed, flags = place(request, {"prior": given}, {"CLOUD_ML_TRIAL_ID": "1"})
    assert placed.training.hyperparameters == {"learning_rate": 0.01, "dropout": 0.2, "hidden_units": "8,4"}
    assert flags == {}


@pytest.mark.parametrize("given", ["2", "-1", "0.5", "first", "nan"])
def test_a_prior_that_is_not_there_is_refused(run, given):
    request = run.train_request(trial_metric="val_auc", priors=[{"dropout": 0.1}, {"dropout": 0.2}])
    with refuses(RequestError, where="flag --prior", expected="from 0 to 1"):
        place(request, {"prior": given}, {"CLOUD_ML_TRIAL_ID": "1"})


@pytest.mark.parametrize("number", [None, "", "one"])
def test_a_process_that_is_no_trial_is_told(run, number):
    environ = {} if number is None else {"CLOUD_ML_TRIAL_ID": number}
    with refuses(RequestError, found="CLOUD_ML_TRIAL_ID", expected="number of a trial"):
        place(run.train_request(trial_metric="val_auc"), {}, environ)


def test_the_file_is_as_hypertune_writes_it(tmp_path):
    """Its keys, its text for numbers, its hundred lines, the whole file anew with each report."""
    path = tmp_path / "deep" / "output.metrics"
    environ = {"CLOUD_ML_TRIAL_ID": "7", "CLOUD_ML_HP_METRIC_FILE": str(path)}
    measurements = Measurements("val_auc", environ, clock=lambda: 1763711000.5)
    measurements.report(0.25, 1)
    expected = {"checkpoint_path": "", "global_step": "1", "timestamp": 1763711000.5, "trial": "7", "val_auc": "0.25"}
    assert path.read_text() == json.dumps(expected, sort_keys=True) + "\n"
    for epoch in range(1, 151):
        measurements.report(epoch / 1000, epoch)
    assert [line["global_step"] for line in lines(path)] == [str(epoch) for epoch in range(51, 151)]


@pytest.fixture
def train(exported, as_trial, tmp_path):
    """The command line of a trial whose outputs are below `tmp_path`; gives its exit code."""

    def call(*flags: str, metric: str = "val_auc", **changes) -> int:
        places = {"model_uri": "model", "report_uri": "report.json"}
        places |= {"checkpoint_uri": "checkpoints", "tensorboard_uri": "logs"}
        uris = {field: str(tmp_path / name) for field, name in places.items()}
        path = tmp_path / "trials.json"
        path.write_text(json.dumps(exported.train_json(trial_metric=metric, **uris, **changes)))
        return main(["train", f"--request={path}", *flags])

    del as_trial
    return call


def test_a_trial_reports_each_epoch_and_stores_no_model(train, as_trial, tmp_path, capsys):
    """And when it is started again it trains no more, and reports the same."""
    assert train("--learning_rate=0.02", "--hidden_units=8,4") == 0
    reported = lines(as_trial)
    assert [(line["trial"], line["global_step"]) for line in reported] == [("3", "1"), ("3", "2"), ("3", "3")]
    assert 0.5 < float(reported[-1]["val_auc"]) < 1
    result = json.loads((tmp_path / "report/3.json").read_text())
    assert result["hyperparameters"]["hidden_units"] == [8, 4]
    assert [str(value) for value in result["history"]["val_auc"]] == [line["val_auc"] for line in reported]
    assert not (tmp_path / "model").exists()
    assert [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()] == []
    as_trial.unlink()
    capsys.readouterr()
    assert train("--learning_rate=0.02", "--hidden_units=8,4") == 0
    assert "is there already" in capsys.readouterr().out
    assert [line["val_auc"] for line in lines(as_trial)] == [line["val_auc"] for line in reported]


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("boosted_trees", ["--learning_rate=0.2", "--max_leaves=4.0", "--min_examples=5", "--subsample=0.5"]),
        ("random_forest", ["--column_share=0.5", "--min_examples=5.0", "--subsample=0.7"]),
    ],
)
def test_a_trial_of_trees_reports_each_tree(model, flags, train, as_trial, tmp_path):
    """With flags of their own space, numbers as the service writes them."""
    assert train(*flags, training={"model": model, "epochs": 5, "hyperparameters": {}}) == 0
    assert [line["global_step"] for line in lines(as_trial)] == [str(tree) for tree in range(1, 6)]
    result = json.loads((tmp_path / "report/3.json").read_text())
    given = {name: float(value) for name, value in (flag.removeprefix("--").split("=") for flag in flags)}
    assert given.items() <= result["hyperparameters"].items()
    assert float(lines(as_trial)[-1]["val_auc"]) == result["history"]["val_auc"][-1] > 0.5
    assert not (tmp_path / "model").exists()


def test_another_trial_of_the_same_number_is_not_taken_for_this_one(train, as_trial, tmp_path, capsys):
    """A second tuning job of the same run counts its trials from 1 again, in the same folder."""
    path = tmp_path / "report/3.json"
    assert train("--learning_rate=0.02") == 0
    first = json.loads(path.read_text())
    capsys.readouterr()
    assert train("--learning_rate=0.0001") == 0
    said = "".join(capsys.readouterr())
    assert f"{path} is of a trial" in said
    assert "is there already" not in said
    second = json.loads(path.read_text())
    assert second["hyperparameters"]["learning_rate"] == 0.0001
    assert second["history"]["val_auc"] != first["history"]["val_auc"]
    assert [line["val_auc"] for line in lines(as_trial)] == [str(value) for value in second["history"]["val_auc"]]


def test_nobody_ends_on_the_result_of_another_trial(run, tmp_path):
    """A worker waits for the result of its own trial; a result without a digest is nobody's."""
    request = run.train_request(trial_metric="val_auc", report_uri=str(tmp_path / "3.json"))
    other = dataclasses.replace(request, seed=request.seed + 1)
    storage = Storage()
    storage.replace(request.report_uri, b'{"history": {"val_auc": [0.9]}}')
    assert not is_done(request, storage)
    measurements = Measurements("val_auc", {"CLOUD_ML_HP_METRIC_FILE": str(tmp_path / "metrics")})
    Trial(request=request, storage=storage, measurements=measurements).finish({}, {"val_auc": [0.5]}, "1 epoch")
    assert is_done(request, storage)
    assert not is_done(other, storage)


@pytest.mark.parametrize("left", [b"{", b"[]", b'{"history": NaN}'])
def test_a_result_that_is_none_is_named_and_without_it_the_trial_runs(run, tmp_path, left):
    """The way out of its message is followed."""
    request = run.train_request(trial_metric="val_auc", report_uri=str(tmp_path / "3.json"))
    storage = Storage()
    storage.replace(request.report_uri, left)
    with refuses(ContractError, where="3.json", expected="trial's result", way_out="Delete it"):
        is_done(request, storage)
    storage.delete_object(request.report_uri)
    assert not is_done(request, storage)


def test_a_trial_that_diverges_at_once_is_infeasible_and_not_failed(train, as_trial, tmp_path, capsys):
    """Nothing reported, exit code 0: the service calls that infeasible and does not count it as a failure."""
    assert train("--learning_rate=1000", "--hidden_units=" + ",".join(["8"] * 12)) == 0  # overflows float32
    assert not as_trial.exists()
    assert "no epoch has val_auc" in capsys.readouterr().out


def test_a_trial_that_diverges_later_fails(train, as_trial, monkeypatch, capsys):
    """What it reported before must not make it the best."""
    from trainer.training.epochs import Fit

    def diverge(self, finished=None):
        del finished
        (listener,) = self.listeners
        listener.on_epoch_end(0, {"loss": 0.5, "val_auc": 0.9})
        raise Diverged("epoch 2, step 9", "loss is nan", "a finite number")

    monkeypatch.setattr(Fit, "train_epochs", diverge)
    assert train() == 2
    assert [line["val_auc"] for line in lines(as_trial)] == ["0.9"]
    assert "epoch 2, step 9: loss" in capsys.readouterr().err


@dataclasses.dataclass(frozen=True)
class DivergingWorker:
    """What a replica that is not the chief trains with; diverges at once, or after an epoch."""

    job: SimpleNamespace
    at_once: bool
    strategy: Strategy
    listeners: tuple = ()

    def train_epochs(self, finished):
        """Diverge."""
        assert finished is None
        (listener,) = self.listeners
        if not self.at_once:
            listener.on_epoch_end(0, {"loss": 0.5, "val_auc": 0.9})
        raise Diverged("epoch 1, step 2", "loss is nan", "a finite number")


@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "later"])
def test_a_worker_of_a_trial_that_diverges_ends_as_its_chief(run, as_trial, monkeypatch, at_once):
    """It waits for the result of one without a score, and fails with one that had a score; it reports nothing."""
    request = run.train_request(trial_metric="val_auc")
    waited = []
    monkeypatch.setattr("trainer.training.job.wait_for_report", lambda _storage, request: waited.append(request))
    storage, worker = Storage(), Strategy(name="multi_worker", scope=None, is_chief=False)
    trial = Trial.of(request, storage)
    with contextlib.nullcontext() if at_once else pytest.raises(Diverged):
        _report_trial(
            trial, DivergingWorker(SimpleNamespace(request=request, storage=storage), at_once, worker), None, {}
        )
    assert waited == ([request] if at_once else [])
    assert not as_trial.exists()
    assert not Path(request.report_uri).exists()


def test_a_preempted_trial_goes_on_where_it_was(train, as_trial, monkeypatch, capsys):
    """SIGTERM after the first epoch: exit code 143; started again, the file has the epochs that were missing."""
    import signal

    from trainer.training.callbacks import EpochReport

    original = EpochReport.on_epoch_end

    def ends(self, epoch, logs):
        original(self, epoch, logs)
        if epoch == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(EpochReport, "on_epoch_end", ends)
    assert train() == 143
    first = [line["global_step"] for line in lines(as_trial)]
    monkeypatch.setattr(EpochReport, "on_epoch_end", original)
    assert train() == 0
    assert "goes on after epoch" in capsys.readouterr().out
    assert first == ["1"]
    assert sorted(line["global_step"] for line in lines(as_trial)) == ["1", "2", "3"]


def test_a_metric_that_no_epoch_has_makes_the_trial_infeasible(train, as_trial, tmp_path, capsys):
    assert train(metric="val_mae", training={"epochs": 1}) == 0
    assert "has val_mae" in capsys.readouterr().out
    assert not as_trial.exists()
