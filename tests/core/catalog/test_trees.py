"""What trees have not is refused before a job is paid for, key by key."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.errors import SpecError
from tests.support.small_model import make_spec

KNOWN = load_capabilities()
NUMBER = {"name": "delay", "kind": "regression"}
JUDGED = {"evaluation": {"metric": "mae", "max_value": 9}, "data": {"query": "q.sql", "key": "id", "event_time": "at"}}
UNCHECKED = {"data": {"query": "q.sql", "key": "id", "event_time": "at"}, "evaluation": {"min_value": 0.6}}
WORKERS = {"tier": "CUSTOM", "chief": {"machine": "n1-standard-8"}, "workers": {"machine": "n1-standard-8", "count": 2}}


def require(training: dict[str, Any] | None = None, **changes: Any) -> None:
    require_trainable(make_spec(training={"model": "boosted_trees", **(training or {})}, **changes), KNOWN)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"training": {"epochs": 500, "early_stopping_patience": 20, "hyperparameters": {"max_leaves": 7}}},
        {"training": {"cluster": {"tier": "CUSTOM", "chief": {"machine": "n1-highmem-16"}}}},
        {"label": {**NUMBER, "loss": "poisson"}, **JUDGED},
        {"label": {**NUMBER, "loss": "mae", "transform": "log1p"}, **JUDGED},
        {"training": {"model": "random_forest", "epochs": 100, "hyperparameters": {"column_share": 0.5}}},
        {"training": {"model": "random_forest"}, "label": {**NUMBER, "loss": "poisson"}, **JUDGED},
    ],
    ids=["plain", "hyperparameters", "machine", "counts", "log1p", "forest", "forest of counts"],
)
def test_what_trees_have_is_taken(changes: dict[str, Any]) -> None:
    require(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"label": {**NUMBER, "loss": "huber"}, **JUDGED}, r"label.loss: huber.*one of: mse, mae, poisson"),
        (
            {"label": {**NUMBER, "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]}, **JUDGED},
            r"label.loss: quantile.*one of: mse, mae, poisson",
        ),
        (
            {
                "label": {**NUMBER, "loss": "mae"},
                **JUDGED,
                "data": {"query": "q.sql", "key": "id", "event_time": "at", "weight": "seats"},
            },
            r"data.weight: seats.*no weighted median",
        ),
        ({"auxiliary_labels": [{"name": "cost", "kind": "regression"}]}, r"auxiliary_labels: cost.*learns one label"),
        ({"training": {"cluster": WORKERS}}, r"training.cluster: workers.*on one machine. Expected a chief alone"),
        (
            {"training": {"cluster": {"tier": "BASIC_GPU"}, "runtime": {"image": "europe-docker.pkg.dev/p/r/gpu:1"}}},
            r"training.cluster: an accelerator.*paid for nothing",
        ),
        ({"training": {"batch_size": 64}}, r"training.batch_size: is given.*grows trees.*Remove it"),
        ({"training": {"precision": "mixed_bfloat16"}}, r"training.precision: is given"),
        ({"training": {"clip_norm": 1.0}}, r"training.clip_norm: is given"),
        ({"training": {"export_lite": ["float16"]}}, r"training.export_lite: is given"),
        (
            {"training": {"callbacks": {"reduce_lr": {"patience": 3}}}},
            r"training.callbacks.reduce_lr: is given",
        ),
        (
            {"training": {"callbacks": {"tensorboard": {"histograms": True}}}},
            r"training.callbacks.tensorboard.histograms: is given",
        ),
        ({"training": {"runtime": {"framework": "2.15"}}}, r"training.runtime.framework: 2.15.*pre-built containers"),
        ({"training": {"hyperparameters": {"hidden_units": [8]}}}, r"no hyperparameter 'hidden_units'.*max_leaves"),
        ({"training": {"hyperparameters": {"learning_rate": 2}}}, r"learning_rate: 2. Expected a number above 0"),
        (
            {
                "features": [
                    {"name": "carrier", "kind": "categorical"},
                    {"name": "photo", "kind": "image", "height": 32, "width": 32},
                ],
                **UNCHECKED,
            },
            r"'boosted_trees' does not read images, and 'photo' is one",
        ),
        (
            {"features": [{"name": "note", "kind": "bag", "of": "words"}], **UNCHECKED},
            r"'note' of kind bag.*grows trees",
        ),
        (
            {"features": [{"name": "carrier", "kind": "categorical", "hash_buckets": 60000}], **UNCHECKED},
            r"hash_buckets: 60000 of 'carrier'.*at most 48997",
        ),
        (
            {"training": {"model": "random_forest"}, "label": {**NUMBER, "loss": "mae"}, **JUDGED},
            r"label.loss: mae, and architecture 'random_forest' grows trees. Expected one of: mse, poisson",
        ),
        (
            {"training": {"model": "random_forest", "early_stopping_patience": 3}},
            r"training.early_stopping_patience: is given, and all trees.*Remove it; training.epochs says",
        ),
    ],
)
def test_what_trees_have_not_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        require(**changes)
