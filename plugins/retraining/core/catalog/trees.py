"""What of a spec is for networks alone: asked where `training.model` grows trees.

Comes in: a spec. Goes out: every key that the trainer would refuse, or that would do nothing, with the way out.
"""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.spec.cluster import Cluster, resolve_tier
from retraining.core.spec.messages import Finding
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.training import Callbacks, Training

LOSSES = {"boosted_trees": ("mse", "mae", "poisson"), "random_forest": ("mse", "poisson")}
"""Of numbers, by architecture."""
MOST_IDS = 49_999
"""Of a category, as many as Yggdrasil Decision Forests takes."""
_OTHER = "or choose another architecture"
_OF_STEPS = (
    "batch_size",
    "strategy",
    "loop",
    "precision",
    "sharding",
    "scale_learning_rate",
    "warmup_fraction",
    "clip_norm",
    "accumulate_steps",
    "checkpoint",
    "augmentation",
    "export_lite",
)
"""Keys of `training` that say how steps are taken."""


def tree_findings(spec: ModelSpec) -> Iterator[Finding]:
    """Yield what trees have not, of what a spec has written."""
    model = spec.training.model
    yield from _of_labels(spec)
    yield from _of_features(spec)
    yield from _of_machines(resolve_tier(spec.training.cluster), model)
    for key in _given(spec.training):
        yield (
            f"training.{key}",
            f"is given, and architecture {model!r} grows trees, not by steps",
            "nothing: a tree is grown from all rows on one machine",
            f"Remove it, {_OTHER}",
        )
    if model == "random_forest" and spec.training.early_stopping_patience is not None:
        yield (
            "training.early_stopping_patience",
            f"is given, and all trees of architecture {model!r} stay",
            "nothing: no tree is one too many",
            "Remove it; training.epochs says how many trees there are",
        )
    if spec.training.runtime.framework is not None:
        yield (
            "training.runtime.framework",
            f"{spec.training.runtime.framework}, and architecture {model!r} needs Yggdrasil Decision Forests",
            "an image that has it: pre-built containers have not",
            f"Remove it: this project's image has it, {_OTHER}",
        )


def _of_labels(spec: ModelSpec) -> Iterator[Finding]:
    model, label = spec.training.model, spec.label
    if spec.auxiliary_labels:
        named = ", ".join(item.name for item in spec.auxiliary_labels)
        yield (
            "auxiliary_labels",
            f"{named}, and architecture {model!r} learns one label",
            "none",
            f"Remove them, {_OTHER}",
        )
    losses = LOSSES[model]
    if label.kind == "regression" and label.loss == "mae" and "mae" in losses and spec.data.weight is not None:
        found = f"{spec.data.weight}, and architecture {model!r} has no weighted median for loss mae to begin with"
        yield "data.weight", found, "loss mse or poisson beside it", f"Change label.loss, {_OTHER}"
    if label.kind == "regression" and label.loss not in losses:
        yield (
            "label.loss",
            f"{label.loss}, and architecture {model!r} grows trees",
            f"one of: {', '.join(losses)}",
            f"Change label.loss, {_OTHER}",
        )


def _of_features(spec: ModelSpec) -> Iterator[Finding]:
    model = spec.training.model
    for feature in spec.features:
        if feature.kind == "bag":
            found = f"feature {feature.name!r} of kind bag, and architecture {model!r} grows trees"
            yield "features", found, "numbers, categories and times", f"Remove it, {_OTHER}"
        if feature.kind == "categorical" and (feature.hash_buckets or 0) > MOST_IDS - 1002:
            found = f"{feature.hash_buckets} of {feature.name!r}, and architecture {model!r} grows trees"
            yield "features, hash_buckets", found, f"at most {MOST_IDS - 1002}", f"Lower it, {_OTHER}"
    for cross in spec.crosses:
        if cross.buckets > MOST_IDS - 2:
            found = f"{cross.buckets} of {' and '.join(cross.columns)}, and architecture {model!r} grows trees"
            yield "crosses, buckets", found, f"at most {MOST_IDS - 2}", "Remove the cross: trees find it by themselves"


def _of_machines(cluster: Cluster, model: str) -> Iterator[Finding]:
    roles = (("workers", cluster.workers), ("parameter_servers", cluster.parameter_servers))
    names = [name for name, role in roles if role is not None and role.count]
    if cluster.evaluator is not None:
        names.append("evaluator")
    if names:
        found = f"{', '.join(names)}, and architecture {model!r} grows its trees on one machine"
        yield "training.cluster", found, "a chief alone", f"Remove them, or take a larger chief, {_OTHER}"
    if cluster.chief is not None and (cluster.chief.accelerator is not None or cluster.chief.is_tpu):
        found = f"an accelerator, and architecture {model!r} grows its trees on processors"
        yield "training.cluster", found, "a machine without one: it would be paid for nothing", f"Remove it, {_OTHER}"


def _given(training: Training) -> Iterator[str]:
    """Yield the keys of steps that say something else than their default."""
    fields = Training.model_fields
    for key in _OF_STEPS:
        if getattr(training, key) != fields[key].get_default(call_default_factory=True):
            yield key
    callbacks, plain = training.callbacks, Callbacks()
    if callbacks.reduce_lr is not None:
        yield "callbacks.reduce_lr"
    for key in ("histograms", "profile"):
        if getattr(callbacks.tensorboard, key) != getattr(plain.tensorboard, key):
            yield f"callbacks.tensorboard.{key}"
