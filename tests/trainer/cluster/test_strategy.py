"""Which strategy a training gets, and what its replicas read."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from trainer.cluster.replica import Replica, most_rows, training_share
from trainer.cluster.strategy import Strategy, choose_strategy, naming_lost_peers
from trainer.contract.documents import Checkpoint, ManifestSplit, Training
from trainer.errors import PeerLost, RequestError
from trainer.input.pipeline import Blocks
from trainer.input.source import Share
from trainer.training.batches import Steps, plan_steps, training_batches
from trainer.training.learning_rate import Rate, plan_rate
from trainer.training.step_control import Pace

TRAINING = Training(
    model="dense", epochs=4, batch_size=8, hyperparameters={}, early_stopping_patience=0, checkpoint=Checkpoint()
)
REPOSITORY_PATH = Path(__file__).resolve().parents[3]


def test_one_device_needs_no_strategy() -> None:
    found = choose_strategy(Replica())
    assert (found.name, found.replicas, found.is_plain) == ("one_device", 1, True)
    assert found.agree([3, 4]) == [3, 4]


@pytest.mark.parametrize(
    ("replica", "wanted"),
    [
        pytest.param(Replica(count=2), "one_device", id="one-device-on-two-machines"),
        pytest.param(Replica(count=2), "mirrored", id="mirrored-on-two-machines"),
        pytest.param(Replica(), "multi_worker", id="several-alone"),
        pytest.param(Replica(count=2, servers=1), "multi_worker", id="lockstep-with-servers"),
        pytest.param(Replica(count=2), "parameter_server", id="servers-without-servers"),
        pytest.param(Replica(servers=1), "auto", id="servers-without-workers"),
        pytest.param(Replica(count=2), "tpu", id="tpu-on-two-machines"),
    ],
)
def test_what_does_not_fit_the_job_is_refused_with_the_way_out(replica: Replica, wanted: str) -> None:
    with pytest.raises(RequestError, match=r"training\.strategy .* replicas and .*Change training\.cluster"):
        choose_strategy(replica, wanted)


def test_a_tpu_is_found_connected_and_initialised_before_its_strategy_is_made(monkeypatch) -> None:
    """No TPU is here: the calls and their order are what is held, with a resolver that only records them."""
    calls: list[str] = []
    resolver = SimpleNamespace(name="resolver")

    def record(name: str, result: object = None):
        def called(*arguments: object, **named: object) -> object:
            calls.append(f"{name} {[*arguments, *named.values()][0] if name == 'resolve' else ''}".strip())
            assert name == "resolve" or arguments == (resolver,)
            return result

        return called

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["TPU:0"] if kind == "TPU" else [])
    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", record("resolve", resolver))
    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", record("connect"))
    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", record("initialise"))
    made = SimpleNamespace(num_replicas_in_sync=8)
    monkeypatch.setattr(tf.distribute, "TPUStrategy", record("make", made))
    found = choose_strategy(Replica())
    assert calls == ["resolve local", "connect", "initialise", "make"]
    assert (found.name, found.replicas, found.scope) == ("tpu", 8, made)


def split(*rows: int) -> ManifestSplit:
    files = tuple(SimpleNamespace(rows=number) for number in rows)
    return ManifestSplit(rows=sum(rows), files=files)


@pytest.mark.parametrize(
    ("rows", "count", "most"),
    [
        pytest.param((10, 20, 30), 1, 60, id="alone"),
        pytest.param((10, 20, 30), 2, 40, id="files"),
        pytest.param((11,), 2, 6, id="records"),
    ],
)
def test_the_most_that_one_process_reads_follows_from_the_manifest(rows: tuple, count: int, most: int) -> None:
    assert most_rows(split(*rows), Share(count=count)) == most


@pytest.mark.parametrize(
    ("sharding", "rows", "replica", "share"),
    [
        pytest.param("auto", 100, Replica(index=1, count=2), Share(), id="small"),
        pytest.param("auto", 30_000_000, Replica(index=1, count=2), Share(index=1, count=2), id="large"),
        pytest.param("files", 100, Replica(index=1, count=2), Share(index=1, count=2), id="wanted"),
        pytest.param("files", 100, Replica(), Share(), id="alone"),
        pytest.param("files", 100, Replica(count=2, servers=1), Share(), id="asynchronous"),
    ],
)
def test_files_are_shared_where_it_pays(sharding: str, rows: int, replica: Replica, share: Share) -> None:
    assert training_share(dataclasses.replace(TRAINING, sharding=sharding), rows, replica) == share


def of_two(index: int) -> Strategy:
    """A place in a lockstep training whose data sets can be looked at here."""
    scope = SimpleNamespace(distribute_datasets_from_function=lambda function: function(None))
    return Strategy(name="multi_worker", scope=scope, replicas=2, share=Share(index=index, count=2))


def rows_of(dataset: tf.data.Dataset) -> list[tuple[list[int], list[float]]]:
    return [(inputs.numpy().tolist(), weights.numpy().tolist()) for inputs, _, weights in dataset]


def examples(rows: range) -> SimpleNamespace:
    numbers = tf.constant(list(rows))
    return SimpleNamespace(train=Blocks(plain=tf.data.Dataset.from_tensors((numbers, numbers))), augmentation=None)


def test_two_workers_take_halves_of_the_batches_that_one_device_gets() -> None:
    strategies = [Strategy(name="one_device", scope=None), of_two(0), of_two(1)]
    steps = Steps(rows=21, rows_per_step=8, per_epoch=3, epochs=2)
    alone, left, right = (training_batches(examples(range(21)), steps, 0, 5, each, Share()) for each in strategies)
    whole = [inputs.numpy().tolist() for inputs, _ in alone]
    halves = list(zip(rows_of(left), rows_of(right), strict=True))
    assert len(whole) == len(halves) == 6
    for batch, ((one, one_weights), (other, other_weights)) in zip(whole, halves, strict=True):
        assert (one + other)[: len(batch)] == batch
        weights = np.array(one_weights + other_weights)
        assert weights[: len(batch)] == pytest.approx(8 / len(batch))
        assert not weights[len(batch) :].any()
    later = training_batches(examples(range(21)), steps, 4, 5, of_two(1), Share())
    assert rows_of(later) == rows_of(right)[4:]


def test_by_files_every_worker_gives_as_many_batches_as_the_one_with_the_most() -> None:
    share = Share(index=1, count=2)
    training = dataclasses.replace(TRAINING, batch_size=4, epochs=2)
    steps = plan_steps(training, split(13, 6), of_two(1), share)
    assert (steps.rows_per_step, steps.per_epoch, steps.total) == (8, 4, 8)
    batches = rows_of(training_batches(examples(range(100, 106)), steps, 0, 5, of_two(1), share))
    assert [len(rows) for rows, _ in batches] == [4] * 8
    assert {row for rows, _ in batches[:4] for row in rows} == set(range(100, 106))
    assert rows_of(training_batches(examples(range(100, 106)), steps, 5, 5, of_two(1), share)) == batches[5:]


def test_the_rate_is_scaled_and_warmed_up_where_several_replicas_are_in_lockstep() -> None:
    steps = Steps(rows=1000, rows_per_step=16, per_epoch=50, epochs=4)
    assert plan_rate(TRAINING, 0.1, steps, Strategy(name="one_device", scope=None)).make() == 0.1
    rate = plan_rate(TRAINING, 0.1, steps, of_two(0)).make()
    assert isinstance(rate, Rate)
    assert [float(rate(tf.constant(step))) for step in (0, 4, 9, 10, 199)] == pytest.approx([0.02, 0.1, 0.2, 0.2, 0.2])
    rate.set_factor(0.5)
    assert float(rate(tf.constant(199))) == pytest.approx(0.1)
    unscaled = dataclasses.replace(TRAINING, scale_learning_rate=False, warmup_fraction=0)
    assert plan_rate(unscaled, 0.1, steps, of_two(0)).make() == 0.1


def test_calls_grow_to_two_seconds_and_end_where_a_checkpoint_is_due(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("trainer.training.step_control.time.monotonic", lambda: now[0])
    pace = Pace(every_steps=50)
    taken = []
    done = 0
    while done < 200:
        steps = pace.next_steps(done, pace.steps)
        done += steps
        now[0] += steps * 0.125 + (30 if len(taken) == 0 else 0)  # the first call compiles
        taken.append(steps)
        pace.next_steps(done, pace.propose_steps(steps))
    assert taken[:5] == [8, 8, 16, 16, 2]
    assert max(taken) <= 16
    assert {50, 100, 150, 200} <= set(np.cumsum(taken))


INCARNATION = "Collective ops is aborted by: the incarnation of task 1 does not match"


@pytest.mark.parametrize(
    ("error", "words", "step"),
    [
        pytest.param(tf.errors.InternalError, "no kernel image", 7, id="perhaps-the-program"),
        pytest.param(tf.errors.FailedPreconditionError, INCARNATION, None, id="said-by-another"),
        pytest.param(tf.errors.UnavailableError, "connection refused", None, id="certainly-lost"),
    ],
)
def test_an_error_that_may_be_the_programs_own_is_told_with_its_step(error: type, words: str, step: int | None) -> None:
    with pytest.raises(PeerLost, match=r"another replica went away \(") as found, naming_lost_peers(False, lambda: 7):
        raise error(None, None, words)
    assert found.value.step == step
    with pytest.raises(error), naming_lost_peers(True, lambda: 7):
        raise error(None, None, words)
    with pytest.raises(PeerLost) as before, naming_lost_peers(False):
        raise error(None, None, words)
    assert before.value.step is None


_TWO_DEVICES = """
import json, sys
import tensorflow as tf
cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer.task import main
sys.exit(main(["train", "--request", sys.argv[1]]))
"""


_TWO_MASKS = """
import json
import random
import tensorflow as tf
cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer.models.dropout import SeededDropout

def masks(scope):
    random.seed(3)
    with scope.scope():
        layer = SeededDropout(0.5, "dropout")
        layer.build([None, 64])
    draw = tf.function(lambda: scope.run(lambda: layer(tf.ones([1, 64]), training=True)))
    return [[mask.numpy().tolist() for mask in scope.experimental_local_results(draw())] for _ in range(2)]

print(json.dumps([masks(tf.distribute.get_strategy()), masks(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))]))
"""


def run_alone(code: str, *arguments: str) -> str:
    """Run a program in a process of its own, which has devices of its own; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=REPOSITORY_PATH,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_replicas_in_lockstep_drop_units_of_their_own() -> None:
    """The first one drops what a device alone drops, step by step."""
    alone, lockstep = json.loads(run_alone(_TWO_MASKS))
    assert [masks[0] for masks in alone] == [first for first, _ in lockstep]
    drawn = [str(mask) for masks in lockstep for mask in masks]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("weight", [None, pytest.param("zone", marks=pytest.mark.long)])
def test_two_devices_of_a_machine_end_in_the_weights_of_one(exported, tmp_path: Path, weight: str | None) -> None:
    """Two virtual devices and the custom loop; 1e-4 on every loss, as with two machines, however examples count."""
    training = {"epochs": 2, "loop": "custom", "clip_norm": 1.0, "hyperparameters": {"hidden_units": [8]}}
    alone = {**training, "batch_size": 64}
    one = exported.train(exported.train_request_in(tmp_path / "one", training=alone, weight=weight))
    changes = {"strategy": "mirrored", "batch_size": 32, "scale_learning_rate": False, "warmup_fraction": 0}
    request = exported.train_request_in(tmp_path / "two", training=training)
    uris = {name: getattr(request, name) for name in ("model_uri", "report_uri", "checkpoint_uri", "tensorboard_uri")}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(exported.train_json(training={**training, **changes}, weight=weight, **uris)))
    run_alone(_TWO_DEVICES, str(path))
    two = json.loads(Path(request.report_uri).read_text())
    assert (two["strategy"], two["replicas"], two["steps"]) == ("mirrored", 2, one.steps)
    assert two["history"]["val_loss"] == pytest.approx(one.history["val_loss"], abs=1e-4)
