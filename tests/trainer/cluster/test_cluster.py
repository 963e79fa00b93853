"""Several processes train one model: in lockstep, with parameter servers, and through the loss of each of them.

Each replica is a process as the service starts it: the same command line, and TF_CONFIG.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.job_log import messages
from tests.trainer.conftest import FEATURES
from trainer.contract.documents import Report
from trainer.contract.reading import parse_document
from trainer.storage import Storage
from trainer.training.checkpoints import Checkpoints

REPOSITORY_PATH = Path(__file__).resolve().parents[3]
TRAINING = {
    "epochs": 2,
    "batch_size": 64,
    "scale_learning_rate": False,
    "warmup_fraction": 0,
    "hyperparameters": {"learning_rate": 0.01, "hidden_units": [8]},
}
LONG = 12  # epochs: long enough to lose a replica in the middle
LOCKSTEP = {**TRAINING, "batch_size": 32}


class Cluster:
    """The replicas of one job; those that exit as if their machine had gone are started again, as the service does."""

    def __init__(self, request: str, roles: Mapping[str, int]) -> None:
        self._request = request
        self._cluster = {role: [_free_address() for _ in range(count)] for role, count in roles.items()}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self.lines: list[tuple[str, str]] = []
        self.restarts = 0
        for role, count in roles.items():
            for index in range(count):
                self.start(role, index)

    def start(self, role: str, index: int) -> None:
        """Start a replica."""
        cluster = {name: hosts for name, hosts in self._cluster.items() if name != "evaluator"}
        config = {"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"}
        environ = {"TF_CONFIG": json.dumps(config), "TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"}
        name = f"{role}-{index}"
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer.task", "train", f"--request={self._request}"],
            cwd=REPOSITORY_PATH,
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes[name] = process
        threading.Thread(target=self._listen, args=(name, process), daemon=True).start()

    def wait_for(self, words: str, name: str = "chief-0", timeout_s: float = 90.0) -> None:
        """Return when a replica has said something."""
        end = time.monotonic() + timeout_s
        while not any(who == name and words in line for who, line in self.lines):
            assert time.monotonic() < end, self.tail()
            self._start_lost_ones()
            time.sleep(0.02)

    def kill(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a replica."""
        self._processes[name].send_signal(number)

    def wait(self, timeout_s: float = 120.0) -> dict[str, int]:
        """Wait until all have ended; gives exit codes."""
        end = time.monotonic() + timeout_s
        while any(process.poll() is None for process in self._processes.values()):
            self._start_lost_ones()
            assert time.monotonic() < end, self.tail()
            assert self._processes["chief-0"].poll() in (None, 0), self.tail()
            time.sleep(0.05)
        return {name: process.returncode for name, process in self._processes.items()}

    def close(self) -> None:
        """End what is left."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def tail(self) -> str:
        """Return the last lines."""
        return "\n".join(f"{name}: {line}" for name, line in self.lines[-60:])

    def _start_lost_ones(self) -> None:
        for name, process in list(self._processes.items()):
            if process.poll() in (143, -signal.SIGTERM, -signal.SIGKILL):
                self.restarts += 1
                role, index = name.split("-")
                self.start(role, int(index))

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines += [(name, message) for message in messages(line)]


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def run_cluster(exported, tmp_path: Path):
    """Starts clusters of a training."""
    clusters: list[Cluster] = []

    def begin(
        training: dict[str, Any],
        *,
        trial_metric: str | None = None,
        changes: Mapping[str, Any] | None = None,
        **roles: int,
    ) -> tuple[Any, Cluster]:
        request = exported.train_request_in(tmp_path / "cluster", training=training)
        (tmp_path / "cluster").mkdir()
        document = exported.train_json(
            training=training,
            trial_metric=trial_metric,
            **(changes or {}),
            **{
                field: getattr(request, field)
                for field in ("model_uri", "report_uri", "checkpoint_uri", "tensorboard_uri")
            },
        )
        path = tmp_path / "request.json"
        path.write_text(json.dumps(document))
        clusters.append(Cluster(str(path), roles))
        return request, clusters[-1]

    yield begin
    for cluster in clusters:
        cluster.close()


def report_of(request: Any) -> Report:
    return parse_document(Report, Path(request.report_uri).read_bytes(), "report")


def scores_of(model_uri: str) -> np.ndarray:
    """What a stored model says of some examples."""
    served = tf.saved_model.load(model_uri).signatures["serving_default"]
    random = np.random.default_rng(3)
    return served(
        carrier=tf.constant(["AA", "DL", "UA", "", "Ünter"] * 20),
        zone=tf.constant(["1", "2", "3", "4", ""] * 20),
        distance=tf.constant(random.uniform(0, 3000, 100), tf.float32),
        weight=tf.constant(random.normal(10, 4, 100), tf.float32),
        express=tf.constant(random.integers(0, 2, 100), tf.float32),
    )["score"].numpy()


def assert_like(request: Any, alone: Any, one: Report) -> Report:
    """The batches are the same; only the order of float32 sums differs: 1e-4 on every score and on every loss."""
    found = report_of(request)
    assert (found.strategy, found.replicas, found.steps) == ("multi_worker", 2, one.steps)
    assert found.history["val_loss"] == pytest.approx(one.history["val_loss"], abs=1e-4)
    assert scores_of(request.model_uri) == pytest.approx(scores_of(alone.model_uri), abs=1e-4)
    return found


def test_two_workers_one_of_them_preempted_end_in_the_weights_of_one(exported, tmp_path: Path, run_cluster) -> None:
    """SIGTERM at one: both save after the same step, it ends as preempted, the other begins again and waits for it."""
    alone = exported.train_request_in(tmp_path / "alone", training={**TRAINING, "epochs": LONG})
    one = exported.train(alone)
    request, cluster = run_cluster({**LOCKSTEP, "epochs": LONG}, chief=1, worker=1)
    cluster.wait_for("epoch 2/")
    cluster.kill("worker-0", signal.SIGTERM)
    assert cluster.wait() == {"chief-0": 0, "worker-0": 0}, cluster.tail()
    assert cluster.restarts == 1
    report = assert_like(request, alone, one)
    assert report.resumed_from_step >= 2 * 11
    said = [line for name, line in cluster.lines if name == "worker-0"]
    assert any(line.startswith(f"Preempted: train: SIGTERM after step {report.resumed_from_step}") for line in said)


@pytest.mark.long
@pytest.mark.parametrize("weight", [None, "zone"])
def test_two_workers_left_alone_end_in_the_weights_of_one(
    exported, tmp_path: Path, run_cluster, weight: str | None
) -> None:
    """Also where examples count differently: the last batches, which are filled up, among them."""
    alone = exported.train_request_in(tmp_path / "alone", training=TRAINING, weight=weight)
    one = exported.train(alone)
    request, cluster = run_cluster(LOCKSTEP, changes={"weight": weight}, chief=1, worker=1)
    assert cluster.wait() == {"chief-0": 0, "worker-0": 0}, cluster.tail()
    assert assert_like(request, alone, one).resumed_from_step is None


@pytest.mark.parametrize(
    ("training", "roles", "strategy", "close"),
    [
        pytest.param(LOCKSTEP, {"chief": 1, "worker": 1}, ("multi_worker", 2), 1e-4, id="in-lockstep"),
        pytest.param(
            TRAINING,
            {"chief": 1, "worker": 2, "ps": 1},
            ("parameter_server", 1),
            0.1,
            id="with-parameter-servers",
            marks=pytest.mark.long,
        ),
    ],
)
def test_two_workers_learn_auxiliary_labels_as_one_does(
    exported, tmp_path: Path, run_cluster, training: dict, roles: dict, strategy: tuple[str, int], close: float
) -> None:
    zone = {"label": {"name": "zone", "kind": "multiclass", "classes": 5}, "weight": 0.3}
    express = {"label": {"name": "express", "kind": "binary"}, "weight": 0.5}
    features = [feature for feature in FEATURES if feature["name"] not in ("zone", "express")]
    changes = {"auxiliary_labels": [zone, express], "features": features}
    one = exported.train(exported.train_request_in(tmp_path / "alone", training=TRAINING, **changes))
    request, cluster = run_cluster(training, changes=changes, **roles)
    assert set(cluster.wait().values()) == {0}, cluster.tail()
    found = report_of(request)
    assert (found.strategy, found.replicas, found.steps) == (*strategy, one.steps)
    assert {"val_auc", "val_zone_accuracy", "val_express_auc"} < set(found.metrics)
    for name in ("val_loss", "val_zone_loss", "val_express_loss"):
        assert found.history[name] == pytest.approx(one.history[name], abs=close), name


@pytest.mark.long
@pytest.mark.parametrize("name", ["chief-0", "worker-0"])
def test_a_replica_that_vanishes_costs_the_steps_since_the_last_checkpoint(
    exported, tmp_path: Path, run_cluster, name: str
) -> None:
    alone = exported.train_request_in(tmp_path / "alone", training={**TRAINING, "epochs": LONG})
    one = exported.train(alone)
    rhythm = {"every_steps": 5, "every_seconds": None}
    request, cluster = run_cluster({**LOCKSTEP, "epochs": LONG, "checkpoint": rhythm}, chief=1, worker=1)
    cluster.wait_for("epoch 3/")  # said before that epoch's checkpoint; the one before it is of step 30
    cluster.kill(name, signal.SIGKILL)
    assert cluster.wait() == {"chief-0": 0, "worker-0": 0}, cluster.tail()
    assert assert_like(request, alone, one).resumed_from_step >= 30


def test_an_evaluator_scores_checkpoints_beside_the_training_and_ends_with_it(run_cluster) -> None:
    training = {**LOCKSTEP, "epochs": 100}
    request, cluster = run_cluster(training, chief=1, evaluator=1)
    assert cluster.wait() == {"chief-0": 0, "evaluator-0": 0}, cluster.tail()
    assert any(name == "evaluator-0" and "val_loss=" in line for name, line in cluster.lines), cluster.tail()
    assert list(Path(request.tensorboard_uri).glob("evaluator/*tfevents*"))
    assert report_of(request).strategy == "one_device"


@pytest.mark.long
def test_workers_that_read_their_own_files_learn_as_well(exported, tmp_path: Path, run_cluster) -> None:
    """Other batches than one device's: a validation loss within 0.05."""
    one = exported.train(exported.train_request_in(tmp_path / "alone", training={**TRAINING, "epochs": 4}))
    request, cluster = run_cluster({**LOCKSTEP, "epochs": 4, "sharding": "files"}, chief=1, worker=1)
    assert cluster.wait() == {"chief-0": 0, "worker-0": 0}, cluster.tail()
    found = report_of(request)
    assert found.metrics["val_loss"] == pytest.approx(one.metrics["val_loss"], abs=0.05)
    assert found.train_rows == one.train_rows


@pytest.mark.long
def test_a_trial_of_two_workers_that_diverges_at_once_is_infeasible_and_not_failed(run_cluster, monkeypatch) -> None:
    """A replica that failed would fail the job, and with it perhaps the study."""
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "3")
    hyperparameters = {"learning_rate": 1000, "hidden_units": [8] * 12}  # overflows float32
    training = {**LOCKSTEP, "hyperparameters": hyperparameters}
    request, cluster = run_cluster(training, trial_metric="val_auc", chief=1, worker=1)
    assert cluster.wait() == {"chief-0": 0, "worker-0": 0}, cluster.tail()
    result = json.loads(Path(request.report_uri.removesuffix(".json"), "3.json").read_text())
    assert "the trial is infeasible" in result["words"]


SERVED = {"chief-0": 0, "worker-0": 0, "worker-1": 0, "ps-0": 0}


@pytest.mark.parametrize(
    ("lost", "number"),
    [
        pytest.param(None, signal.SIGTERM, id="nobody"),
        pytest.param("worker-1", signal.SIGKILL, id="worker", marks=pytest.mark.long),
        pytest.param("ps-0", signal.SIGKILL, id="parameter-server", marks=pytest.mark.long),
        pytest.param("chief-0", signal.SIGTERM, id="chief", marks=pytest.mark.long),
    ],
)
def test_parameter_servers_reach_the_loss_of_one_device_whoever_is_lost(
    exported, tmp_path: Path, run_cluster, lost: str | None, number: signal.Signals
) -> None:
    """Workers go at their own pace: the same number of steps, and a validation loss within 0.05 of one device's."""
    training = {**TRAINING, "epochs": LONG if lost else 2, "checkpoint": {"every_steps": 8, "every_seconds": None}}
    one = exported.train(exported.train_request_in(tmp_path / "alone", training=training))
    request, cluster = run_cluster(training, chief=1, worker=2, ps=1)
    stood = None
    if lost:
        cluster.wait_for("epoch 3/")
        stood = Checkpoints(request.checkpoint_uri, Storage()).newest_state()
        cluster.kill(lost, number)
    assert cluster.wait() == SERVED, cluster.tail()
    assert cluster.restarts == (lost is not None)
    report = report_of(request)
    assert (report.strategy, report.replicas, report.steps) == ("parameter_server", 1, one.steps)
    assert report.metrics["val_loss"] == pytest.approx(one.metrics["val_loss"], abs=0.05)
    assert report.golden
    if lost in ("ps-0", "chief-0"):
        assert stood is not None
        assert report.resumed_from_step >= stood.step >= 2 * 11
    else:
        assert report.resumed_from_step is None
