"""How far the networks of one model differ: each one's metrics of the validation split, by itself.

Comes in: a trained model of several members. Goes out: by metric one number per member, as an epoch's are named.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.objective.members import count_members
from trainer.objective.metrics import Floats
from trainer.objective.outputs import Objective


def measure_members(
    model: tf_keras.Model, inputs: tf.data.Dataset, objective: Objective, asked: str | None = None
) -> dict[str, tuple[float, ...]]:
    """Measure each member.

    Args:
        model: Gives logits, [B, members, outputs] of several members.
        inputs: Blocks of model inputs and targets of the validation split.
        objective: What was learnt.
        asked: A metric to measure beside those of each epoch.

    Returns:
        By metric, one number per member; nothing of one network, or without examples.
    """
    forward = tf.function(lambda block: model(block, training=False), autograph=False, reduce_retracing=True)
    targets: list[Floats] = []
    scores: list[list[Floats]] = []  # float32: as long as the split, once for each member
    for block, labels in inputs:
        logits = forward(block)
        members = count_members(logits)
        if members == 1:
            return {}
        each = [objective.epoch_scores(logits[:, place]).numpy() for place in range(members)]
        targets.append(labels.numpy().astype(np.float64))
        scores.append(each)
    if not targets:
        return {}
    labels = np.concatenate(targets)
    measured = [
        objective.epoch_metrics(labels, np.concatenate(its).astype(np.float64), asked)
        for its in zip(*scores, strict=True)
    ]
    names = [name for name in measured[0] if all(name in found for found in measured)]
    return {name: tuple(float(found[name]) for found in measured) for name in names}
