"""What an image of one's own can train, as it says of itself: asked before a job of it is paid for.

In: `include/trainers/<image's name>.json`, what its command `describe` prints (docs/trainer-contract.md), and a spec.
Out: everything that the image would refuse, with the way out. An image without such a file is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from retraining.core.documents.document import Document, Text
from retraining.core.errors import ContractError, SettingsError, suggest
from retraining.core.spec.cluster import resolve_tier
from retraining.core.spec.features import Loss, class_names
from retraining.core.spec.messages import Finding, raise_findings
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import folder_of
from retraining.core.spec.training import MEMBERS, InputSource

_BUILD_ANEW = "Build the image anew with this release's contract, and write down what its command describe prints"
_ANOTHER = "Change the value, or train in an image that can (training.runtime.image)"


FeatureOption = Literal["transform", "max_vocabulary", "hash_buckets", "crosses", "class_names"]


class Trainer(Document):
    """What an image takes. `losses` and `transforms` are those of numbers as label."""

    kind: Literal["trainer"] = "trainer"
    labels: tuple[Literal["binary", "multiclass", "regression"], ...]
    losses: tuple[Loss, ...]
    transforms: tuple[Literal["none", "log1p"], ...]
    features: tuple[Literal["numeric", "categorical", "image", "sequence", "text", "time", "bag"], ...]
    inputs: tuple[InputSource, ...]
    hyperparameters: tuple[Text, ...]
    auxiliary_labels: bool
    weights: bool = False
    trials: bool
    several_machines: bool
    feature_options: tuple[FeatureOption, ...] = ()
    """Which keys of features, `crosses`, and texts as `classes` of labels (`class_names`) it does as they say; another
    release's image says nothing of them."""
    warm_start: bool = False
    """Whether a training can begin with the champion's weights."""
    request_digest: bool = False
    """Whether its results have the digest of their request; one built by an earlier release's contract refuses."""


def trainer_path(spec: ModelSpec, include: Path) -> Path | None:
    """Return where the spec's own image is described, if it is, by its team or for all; None: the spec has none."""
    name = spec.training.runtime.image_name
    if name is None:
        return None
    own, shared = (folder / "trainers" / f"{name}.json" for folder in (folder_of(include, spec.name), include))
    return own if own.is_file() else shared


def require_trainer(spec: ModelSpec, include: Path, where: str | None = None) -> None:
    """Refuse a spec, or a run's changed one, that its own image would refuse.

    Args:
        spec: With the run's overrides, where there are some.
        include: Folder with `trainers`.
        where: Names the spec in messages; by default its file.

    Raises:
        SpecError: The image has said that it cannot; the message has all findings.
        SettingsError: The image's file is malformed.
    """
    path = trainer_path(spec, include)
    if path is None or not path.is_file():
        return
    try:
        trainer = Trainer.parse(path.read_bytes(), f"trainers/{path.name}")
    except ContractError as error:
        raise SettingsError(
            error.where, error.found, error.expected, "Write what the image's command describe prints"
        ) from error
    where = where or f"{spec.name}.yaml"
    findings = [*_not_taken(spec, trainer, path.stem), *_not_done(spec, trainer, path.stem)]
    raise_findings(where, [(f"{where}, {item[0]}", item[1], item[2], item[3]) for item in findings])


def _not_taken(spec: ModelSpec, trainer: Trainer, image: str) -> Iterator[Finding]:
    """Yield values that are none of those that the image takes."""
    label, training = spec.label, spec.training
    asked: list[tuple[str, str, str, Sequence[str]]] = [("label", "kind", label.kind, trainer.labels)]
    if label.kind == "regression" and "regression" in trainer.labels:
        asked.append(("label", "loss", label.loss, trainer.losses))
        asked.append(("label", "transform", label.transform, trainer.transforms))
    asked += [(f"feature {item.name!r}", "kind", item.kind, trainer.features) for item in spec.features]
    asked.append(("training", "input", training.input, trainer.inputs))
    names = training.hyperparameters
    if training.ensemble not in ("auto", 1):
        asked.append(("training.ensemble", "hyperparameter", MEMBERS, trainer.hyperparameters))
    asked += [("training.hyperparameters", "hyperparameter", name, trainer.hyperparameters) for name in names]
    for place, what, value, known in asked:
        if value not in known:
            expected = f"one of: {', '.join(sorted(known))}, which the image {image} takes"
            yield place, f"{what} {value}", expected, suggest(value, sorted(known)) or _ANOTHER


def _not_done(spec: ModelSpec, trainer: Trainer, image: str) -> Iterator[Finding]:
    """Yield what the image does not do at all."""
    cluster = resolve_tier(spec.training.cluster)
    several = [role for role in (cluster.workers, cluster.parameter_servers) if role and role.count]
    asked = (
        ("auxiliary_labels", bool(spec.auxiliary_labels), trainer.auxiliary_labels, "one label"),
        ("data.weight", spec.data.weight is not None, trainer.weights, "no weights of examples"),
        (
            "training.initial",
            spec.training.initial == "champion",
            trainer.warm_start,
            "weights drawn by the seed alone",
        ),
        ("tuning", spec.tuning is not None, trainer.trials, "no trials of a study"),
        ("training.cluster", bool(several or cluster.evaluator), trainer.several_machines, "one machine"),
    )
    for place, is_asked, is_done, instead in asked:
        if is_asked and not is_done:
            found = f"the image {image} says of itself that it takes {instead}"
            yield place, found, "", "Remove the key, or train in an image that can (training.runtime.image)"
    for option, where in _feature_options(spec):
        if option not in trainer.feature_options:
            expected = f"none: the image {image} says of itself that it does not do it"
            yield where, option, expected, "Remove the key, or train in an image that can (training.runtime.image)"
    if not trainer.request_digest:
        found = f"the image {image} says of itself that its results have no request_digest"
        yield "training.runtime.image", found, "one that writes it (docs/trainer-contract.md)", _BUILD_ANEW


def _feature_options(spec: ModelSpec) -> Iterator[tuple[FeatureOption, str]]:
    """Yield what is asked of features and labels beyond their kind, with its place in the spec."""
    for feature in spec.features:
        if feature.kind == "numeric" and feature.transform:
            yield "transform", f"feature {feature.name!r}"
        if feature.kind == "categorical" and feature.max_vocabulary:
            yield "max_vocabulary", f"feature {feature.name!r}"
        if feature.kind == "categorical" and feature.hash_buckets:
            yield "hash_buckets", f"feature {feature.name!r}"
    if spec.crosses:
        yield "crosses", "crosses"
    for label in (spec.label, *spec.auxiliary_labels):
        if class_names(label):
            yield "class_names", f"label {label.name!r}, classes"
