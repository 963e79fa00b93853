"""A training that is interrupted anywhere ends where an undisturbed one does."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.support.refusals import refuses
from trainer.cluster.preemption import start_again
from trainer.errors import DataError, Diverged, PeerLost, Preempted
from trainer.storage import Storage
from trainer.training.checkpoints import Attached, Checkpoints, TrainingState

TRAINING = {
    "epochs": 3,
    "early_stopping_patience": 2,
    "checkpoint": {"every_steps": 4, "every_seconds": None},
    "callbacks": {"reduce_lr": {"patience": 1, "factor": 0.5}},
    "hyperparameters": {"learning_rate": 0.05, "dropout": 0.2, "hidden_units": [16]},
}


class DoomedStorage(Storage):
    """Ends the process when a checkpoint's last file is written: by SIGTERM, or at once."""

    def __init__(self, step: int, *, at_once: bool) -> None:
        super().__init__()
        self._last, self._at_once = f"step-{step:09d}/state.json", at_once

    def replace(self, uri: str, content: bytes) -> None:
        """Write, or end."""
        if uri.endswith(self._last) and self._at_once:
            raise KeyboardInterrupt
        super().replace(uri, content)
        if uri.endswith(self._last):
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def whole(exported, tmp_path_factory: pytest.TempPathFactory):
    """The report of an undisturbed training."""
    return exported.train(exported.train_request_in(tmp_path_factory.mktemp("whole"), training=TRAINING))


@pytest.fixture(scope="module")
def preempted(exported, tmp_path_factory: pytest.TempPathFactory):
    """Gives a request whose training SIGTERM ended after step 20, and its error; its folder is as it was then."""

    @functools.cache
    def preempt(loop: str):
        folder, copy = (tmp_path_factory.mktemp(name) for name in ("preempted", "copy"))
        request = exported.train_request_in(folder, training={**TRAINING, "loop": loop})
        with pytest.raises(Preempted) as ended:
            exported.train(request, storage=DoomedStorage(16, at_once=False))
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        return request, ended.value, folder, copy

    def restore(loop: str = "fit"):
        request, error, folder, copy = preempt(loop)
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
        return request, error

    return restore


def assert_same(report, whole) -> None:
    assert report.history == whole.history
    assert report.golden == whole.golden
    assert (report.steps, report.epochs_run, report.best_epoch) == (whole.steps, whole.epochs_run, whole.best_epoch)


def test_the_state_to_interrupt_is_a_rich_one(whole) -> None:
    assert whole.steps == 3 * 11
    assert whole.resumed_from_step is None


@pytest.mark.parametrize("loop", ["fit", pytest.param("custom", marks=pytest.mark.long)])
def test_sigterm_inside_an_epoch_costs_nothing(exported, preempted, whole, loop: str) -> None:
    request, error = preempted(loop)
    assert "SIGTERM after step 20" in str(error)
    assert error.exit_code == 143
    assert not Path(request.report_uri).exists()
    said: list[str] = []
    report = exported.train(request, said)
    assert any("after epoch 1, step 9" in line for line in said)
    assert (report.resumed_from_epoch, report.resumed_from_step) == (1, 20)
    assert_same(report, whole)


@pytest.mark.long
def test_sigterm_at_an_epochs_end_costs_nothing(exported, tmp_path: Path, whole) -> None:
    request = exported.train_request_in(tmp_path, training=TRAINING)
    with pytest.raises(Preempted, match="SIGTERM after step 11"):
        exported.train(request, storage=DoomedStorage(11, at_once=False))
    report = exported.train(request)
    assert report.resumed_from_step == 11
    assert_same(report, whole)


def test_a_sudden_end_costs_the_steps_since_the_last_whole_checkpoint(exported, tmp_path: Path, whole) -> None:
    """The checkpoint at whose writing the process dies does not count."""
    request = exported.train_request_in(tmp_path, training=TRAINING)
    with pytest.raises(KeyboardInterrupt):
        exported.train(request, storage=DoomedStorage(16, at_once=True))
    assert (tmp_path / "checkpoints/step-000000016/weights.index").exists()
    report = exported.train(request)
    assert report.resumed_from_step == 12
    assert_same(report, whole)


def test_a_damaged_checkpoint_is_passed_over_and_named(exported, preempted, whole) -> None:
    request, _ = preempted()
    damaged = Path(request.checkpoint_uri, "step-000000020/weights.data-00000-of-00001")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    said: list[str] = []
    report = exported.train(request, said)
    assert any(str(damaged) in line and "SHA-256" in line for line in said)
    assert report.resumed_from_step == 16
    assert_same(report, whole)


def test_a_training_whose_steps_are_done_is_only_stored(exported, tmp_path: Path, whole) -> None:
    """It needs no cluster any more: the other replicas may be gone."""
    request = exported.train_request_in(tmp_path, training=TRAINING)
    with pytest.raises(KeyboardInterrupt):
        exported.train(request, storage=FailingModel())
    report = exported.train(request)
    assert report.resumed_from_step == whole.steps
    assert_same(report, whole)


class FailingModel(Storage):
    """Ends the process when the model is stored."""

    def upload_folder(self, folder_path: Path, uri: str) -> None:
        """Upload, or end."""
        if uri.endswith("/model"):
            raise KeyboardInterrupt
        super().upload_folder(folder_path, uri)


def test_another_requests_checkpoint_is_not_resumed(exported, preempted) -> None:
    request, _ = preempted()
    assert Checkpoints(request.checkpoint_uri, Storage()).newest_state().step == 20
    other = exported.train_request_in(Path(request.report_uri).parent, training={**TRAINING, "epochs": 1})
    assert exported.train(other).resumed_from_step is None


# The largest rate that is taken: one step makes every weight about 1000, and twelve layers of them overflow float32.
DIVERGES = {"learning_rate": 1000, "hidden_units": [8] * 12}


@pytest.mark.parametrize("loop", ["fit", "custom"])
def test_a_loss_that_is_not_a_number_stops_the_training(exported, tmp_path: Path, loop: str) -> None:
    """The message names the step, and the last checkpoint."""
    request = exported.train_request_in(tmp_path, training={"hyperparameters": DIVERGES, "loop": loop})
    with refuses(DataError, where="epoch 1, step ", found="nan", way_out="no checkpoint"):
        exported.train(request)
    assert Checkpoints(request.checkpoint_uri, Storage()).steps() == set()


def test_a_loss_that_is_not_a_number_names_the_last_checkpoint_with_finite_weights(exported, tmp_path: Path) -> None:
    """The first step's loss is a number, and its weights are finite, if too large; the second one's loss is not."""
    training = {"hyperparameters": DIVERGES, "checkpoint": {"every_steps": 1, "every_seconds": None}}
    request = exported.train_request_in(tmp_path, training=training)
    with pytest.raises(DataError) as ended:
        exported.train(request)
    last = Checkpoints(request.checkpoint_uri, Storage()).newest_state()
    assert last is not None
    assert str(ended.value).startswith(f"epoch 1, step {last.step + 1}: loss is nan")
    assert f"The last checkpoint with finite weights is {request.checkpoint_uri}/step-{last.step:09d}" in str(
        ended.value
    )
    assert ended.value.exit_code == 2
    assert not Path(request.report_uri).exists()


def test_a_checkpoint_whose_weights_are_not_numbers_is_not_written(exported, tmp_path: Path, monkeypatch) -> None:
    """A step may break the weights while its loss, of the weights before it, is still a number."""
    checked, asked = Attached.is_finite, []

    def is_finite(self) -> bool:
        if len(asked) == 2:
            weight = self._model.trainable_variables[0]
            weight.assign(tf.fill(weight.shape, np.inf))
        asked.append(len(asked))
        return checked(self)

    monkeypatch.setattr(Attached, "is_finite", is_finite)
    request = exported.train_request_in(tmp_path, training=TRAINING)
    with refuses(Diverged, where="epoch 1, step 11", found="weight is NaN", way_out="/step-000000008"):
        exported.train(request)
    assert Checkpoints(request.checkpoint_uri, Storage()).steps() == {4, 8}


def test_another_trainings_checkpoint_is_not_named_as_the_last(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path / "all"), Storage())
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    for step, request in ((10, "mine"), (20, "other")):
        checkpoints.store_step(step, folder, vars(TrainingState(request_sha256=request, step=step)), {10})
    assert checkpoints.describe_last(TrainingState(request_sha256="mine", step=30)).endswith("/step-000000010")
    assert checkpoints.describe_last(TrainingState(request_sha256="new", step=30)) == "There is no checkpoint before it"


@pytest.fixture
def restarted(monkeypatch):
    """Environments of the fresh processes that replaced this one."""
    environs: list[dict[str, str]] = [{"HOME": "/home"}]
    monkeypatch.setattr(os, "execve", lambda _path, _arguments, environ: environs.append(environ))
    return environs


def lose(environs: list[dict[str, str]], *steps: int | None) -> list[int]:
    """Lose a peer, and be started again, at these steps; gives how often that was done when each time was over."""
    done = []
    for step in steps:
        start_again(environs[-1], PeerLost("the training's cluster", "another replica went away (x)", step=step))
        done.append(len(environs) - 1)
    return done


def test_two_restarts_that_do_not_get_past_a_step_are_the_last(restarted, caplog) -> None:
    """What looks like a lost replica may be the program's own error, which comes at the same step every time."""
    assert lose(restarted, 40, 40, 37) == [1, 2, 2]
    said = caplog.messages
    assert [line.endswith("Starting again.") for line in said] == [True, True, False]
    assert "2 restarts" in said[-1]
    assert "step 40" in said[-1]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "ERROR"]
    assert restarted[-1]["HOME"] == "/home"


def test_a_restart_that_gets_further_counts_from_there(restarted) -> None:
    assert lose(restarted, 40, 40, 41, 41, 41) == [1, 2, 3, 4, 4]


def test_who_waits_for_a_lost_replica_is_started_again_twenty_times(restarted, caplog) -> None:
    assert lose(restarted, *[None] * 21)[-2:] == [20, 20]
    assert "done 20 times." in caplog.messages[-1]


def test_of_old_checkpoints_two_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(str(tmp_path / "all"), Storage())
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    for step in (10, 20, 30, 40):
        checkpoints.store_step(step, folder, vars(TrainingState(request_sha256="x", step=step)), {10})
    assert checkpoints.steps() == {10, 30, 40}
    assert checkpoints.newest_state().step == 40
    content = json.loads((tmp_path / "all/step-000000040/state.json").read_bytes())
    assert list(content["files"]) == ["weights"]
