"""How a training takes its steps: what the spec allows, and that all of it reaches the trainer."""

from __future__ import annotations

import pytest
from small_model import make_plan, make_spec

from retraining.core import orders
from retraining.core.errors import SpecError

STEPS = {
    "strategy": "multi_worker",
    "loop": "custom",
    "precision": "mixed_bfloat16",
    "sharding": "files",
    "scale_learning_rate": False,
    "warmup_fraction": 0.1,
    "clip_norm": 1.0,
    "accumulate_steps": 2,
    "checkpoint": {"every_steps": 100, "every_seconds": None},
    "callbacks": {"reduce_lr": {"patience": 1, "factor": 0.5}, "tensorboard": {"histograms": True, "profile": True}},
}
CHIEF = {"machine": "n1-standard-4"}
SERVERS = {
    "tier": "CUSTOM",
    "chief": CHIEF,
    "workers": {**CHIEF, "count": 1},
    "parameter_servers": {**CHIEF, "count": 1},
}
WORKERS = {"tier": "CUSTOM", "chief": CHIEF, "workers": {**CHIEF, "count": 1}}


def test_everything_reaches_the_trainer():
    spec = make_spec(training={"model": "dense", "cluster": WORKERS, **STEPS})
    order = orders.train_order(make_plan(spec)).request.training
    assert order.model_dump(include=set(STEPS)) == STEPS
    assert order.early_stopping_patience == spec.training.early_stopping_patience


@pytest.mark.parametrize(
    ("training", "words"),
    [
        pytest.param({"accumulate_steps": 2}, "accumulate_steps 2 needs loop custom", id="accumulate-in-fit"),
        pytest.param({"loop": "custom", "cluster": SERVERS}, "remove parameter_servers", id="custom-asynchronous"),
        pytest.param({"warmup_fraction": 0.6}, "less than or equal to 0.5", id="warmup"),
        pytest.param({"clip_norm": 0}, "greater than 0", id="clip"),
        pytest.param({"callbacks": {"reduce_lr": {"factor": 0.5}}}, "patience", id="patience"),
        pytest.param({"checkpoint": {"every_step": 5}}, "every_step", id="unknown-key"),
    ],
)
def test_what_cannot_be_is_refused(training, words):
    with pytest.raises((SpecError, ValueError), match=words):
        make_spec(training={"model": "dense", **training})
