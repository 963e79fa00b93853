"""How a training is spread over devices and machines: named by the request, or chosen from what is there.

Comes in: this process's place in the job (`TF_CONFIG`), this machine's devices, the request's strategy. Goes out: one
`Strategy`. One device needs none; several on one machine train in lockstep, so do several machines; parameter servers
hold the variables of workers that each go at their own pace. https://www.tensorflow.org/guide/distributed_training
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.cluster.replica import Replica
from trainer.errors import PeerLost, RequestError
from trainer.input.source import WHOLE, Share

CHIEF_DEVICE = "/job:chief/replica:0/task:0/device:CPU:0"
_AMBIGUOUS = (tf.errors.FailedPreconditionError, tf.errors.InternalError, tf.errors.UnknownError)
_GONE = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    *_AMBIGUOUS,  # the codes of lost replicas, and of errors of the program too
)
_PEERS_ERROR = "Collective ops is aborted"  # heard from another replica, whatever went wrong there
_TPU_ADDRESS = "local"  # the TPU of the machine that this runs on, as in Vertex AI's TPU VMs


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A choice.

    Attributes:
        name: As the report gives it.
        scope: TensorFlow's own: model and optimizer must be made in its scope.
        replicas: Devices that take a step together, each with a batch of its own.
        share: Which of the processes that train this one is, and how many there are.
        is_chief: Whether this process writes what the job gives.
    """

    name: str
    scope: Any
    replicas: int = 1
    share: Share = WHOLE
    is_chief: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether one device trains alone."""
        return self.name == "one_device"

    @property
    def is_asynchronous(self) -> bool:
        """Whether workers go at their own pace, and variables are on parameter servers."""
        return self.name == "parameter_server"

    @property
    def io_device(self) -> str | None:
        """Where files must be written and read that TensorFlow would otherwise write where the variables are."""
        return CHIEF_DEVICE if self.is_asynchronous else None

    @property
    def is_alone(self) -> bool:
        """Whether this process trains without others."""
        return self.share.count == 1 and not self.is_asynchronous

    def tables(self) -> AbstractContextManager[object]:
        """Return the scope in which lookup tables must be made that input pipelines use."""
        return self.scope.scope() if self.is_asynchronous else contextlib.nullcontext()

    def gather(self, values: tf.Tensor) -> tf.Tensor:
        """Join what the processes that train have, in their order; all of them get the same. [n, …] → [N, …]."""
        if self.share.count == 1 or self.is_asynchronous:
            return values

        def once(mine: tf.Tensor) -> tf.Tensor:
            place = tf.distribute.get_replica_context().replica_id_in_sync_group
            is_first = place % (self.replicas // self.share.count) == 0
            return mine[: tf.shape(mine)[0] * tf.cast(is_first, tf.int32)]

        return self.scope.gather(self.scope.run(once, args=(values,)), axis=0)

    def agree(self, numbers: Sequence[int]) -> list[int]:
        """Add up what the processes that train say, each its own numbers; all of them get the same sums.

        Also a meeting point: it ends when all have come. Every process must call it at the same step.
        """
        if self.share.count == 1 or self.is_asynchronous:
            return [int(number) for number in numbers]
        per_replica = self.scope.run(tf.identity, args=(tf.constant([int(number) for number in numbers], tf.int32),))
        local = len(self.scope.experimental_local_results(per_replica))
        return [int(number) // local for number in self.scope.reduce("SUM", per_replica, axis=None).numpy()]


def choose_strategy(replica: Replica, strategy: str = "auto") -> Strategy:
    """Choose by the job's replicas and this machine's devices.

    Must come before anything that TensorFlow computes: a cluster is joined here.

    Args:
        strategy: A name of the table below, or `auto`.

    Raises:
        RequestError: The job's replicas or the machine's devices do not fit the strategy that was named.
    """
    name = _fitting(replica) if strategy == "auto" else strategy
    _require_fit(name, replica)
    return _MAKERS[name](replica)


@contextlib.contextmanager
def naming_lost_peers(alone: bool, reached: Callable[[], int] | None = None) -> Iterator[None]:
    """Turn what TensorFlow says when another replica went away, or is not back yet, into an error of ours.

    Args:
        alone: Whether this process trains alone: then nobody can be lost.
        reached: Gives the step that the training has reached; None before it takes steps.

    Raises:
        PeerLost: Another replica went away.
    """
    try:
        yield
    except _GONE as error:
        if alone:
            raise
        ambiguous = isinstance(error, _AMBIGUOUS) and _PEERS_ERROR not in error.message
        step = reached() if reached and ambiguous else None
        reason = " ".join(error.message.split())[:200]
        raise PeerLost("the training's cluster", f"another replica went away ({reason})", step=step) from error


def _fitting(replica: Replica) -> str:
    if replica.servers:
        return "parameter_server"
    if replica.count > 1:
        return "multi_worker"
    if tf.config.list_physical_devices("TPU"):
        return "tpu"
    return "mirrored" if len(tf.config.list_logical_devices("GPU")) > 1 else "one_device"


def _require_fit(name: str, replica: Replica) -> None:
    there = f"{replica.count} replicas and {replica.servers} parameter servers"
    needed = {
        "multi_worker": (replica.count > 1 and not replica.servers, "several replicas without parameter servers"),
        "parameter_server": (
            replica.count > 1 and replica.servers > 0,
            "a chief, at least one worker and one parameter server",
        ),
    }
    fits, expected = needed.get(name, (replica.count == 1 and not replica.servers, "one machine"))
    if not fits:
        raise RequestError(
            f"training.strategy {name}", there, expected, "Change training.cluster, or set training.strategy to auto"
        )


def _one_device(_replica: Replica) -> Strategy:
    return Strategy(name="one_device", scope=tf.distribute.get_strategy())


def _mirrored(_replica: Replica) -> Strategy:
    devices = [device.name for kind in ("GPU", "CPU") for device in tf.config.list_logical_devices(kind)]
    of_a_kind = [device for device in devices if device.split(":")[-2] == devices[0].split(":")[-2]]
    scope = tf.distribute.MirroredStrategy(of_a_kind)
    return Strategy(name="mirrored", scope=scope, replicas=scope.num_replicas_in_sync)


def _multi_worker(replica: Replica) -> Strategy:
    scope = tf.distribute.MultiWorkerMirroredStrategy()
    return Strategy(
        name="multi_worker",
        scope=scope,
        replicas=scope.num_replicas_in_sync,
        share=Share(index=replica.index, count=replica.count),
        is_chief=replica.is_chief,
    )


def _parameter_server(_replica: Replica) -> Strategy:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return Strategy(name="parameter_server", scope=tf.distribute.ParameterServerStrategy(resolver))


def _tpu(_replica: Replica) -> Strategy:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=_TPU_ADDRESS)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    scope = tf.distribute.TPUStrategy(resolver)
    return Strategy(name="tpu", scope=scope, replicas=scope.num_replicas_in_sync)


_MAKERS = {
    "one_device": _one_device,
    "mirrored": _mirrored,
    "multi_worker": _multi_worker,
    "parameter_server": _parameter_server,
    "tpu": _tpu,
}
