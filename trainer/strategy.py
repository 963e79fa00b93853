"""How a training is spread over devices and machines, chosen from what is there. One device needs no strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.errors import RequestError
from trainer.replica import Replica


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A choice.

    Attributes:
        name: As the report gives it.
        scope: Where model and optimizer must be made.
        replicas: Devices that each take a batch in a step.
    """

    name: str
    scope: Any
    replicas: int


def choose_strategy(replica: Replica) -> Strategy:
    """Choose by the job's replicas and this machine's devices.

    Raises:
        RequestError: The job has several machines, which no strategy here serves yet.
    """
    if replica.count > 1:
        raise RequestError(
            "cluster",
            f"{replica.count} replicas for one training",
            "one machine",
            "Set training.cluster to one chief without workers",
        )
    devices = tf.config.list_logical_devices("GPU")
    if len(devices) > 1:
        mirrored = tf.distribute.MirroredStrategy()
        return Strategy(name="mirrored", scope=mirrored, replicas=mirrored.num_replicas_in_sync)
    return Strategy(name="one_device", scope=tf.distribute.get_strategy(), replicas=1)
