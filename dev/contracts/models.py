"""The pydantic models that a document is made of, and the names that the source gives to its types."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, cast

import annotated_types
from pydantic import BaseModel, StringConstraints
from pydantic.fields import FieldInfo

from contracts.docstrings import name_docstrings
from retraining.core import metrics
from retraining.core.documents import (
    answers,
    checks,
    document,
    evaluation,
    export,
    multivariate,
    plan,
    snapshot,
    training,
)
from retraining.core.spec import cluster, features, packages
from retraining.core.spec import section as spec_section
from retraining.core.spec import training as spec_training

SOURCES = (
    document, metrics, snapshot, export, training, answers, evaluation, plan, checks, multivariate, features, cluster,
    packages, spec_training, spec_section,
)  # fmt: skip

Annotation = Any
"""A type as it stands after a field's name."""
_LIMITS = {"ge": "minimum", "gt": "above", "le": "maximum", "lt": "below"}


@dataclass(frozen=True, kw_only=True)
class Alias:
    """A type that has a name in the source: `Count`, `Address`, `Feature`."""

    name: str
    annotation: Annotation
    docstring: str | None


def aliases() -> list[Alias]:
    """Return all named types; of two with one name the first is taken, the other is written out."""
    named: dict[str, Alias] = {}
    for module in SOURCES:
        for name, value in vars(module).items():
            parts = typing.get_args(value)
            if name[0].isupper() and parts and not _is_open(value):
                named.setdefault(name, Alias(name=name, annotation=value, docstring=name_docstrings(module).get(name)))
    return list(named.values())


def _is_open(annotation: Annotation) -> bool:
    return bool(getattr(annotation, "__parameters__", ()))


def annotations_of(model: type[BaseModel]) -> Mapping[str, Annotation]:
    """Return the fields' types by name, as the source has them."""
    hints = typing.get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}


def document_models_in(annotation: Annotation) -> Iterator[type[BaseModel]]:
    """Yield the models that a type names."""
    if isinstance(annotation, type) and not typing.get_args(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    elif origin_of(annotation) is not Literal:
        inner = typing.get_args(annotation)
        for part in inner[:1] if origin_of(annotation) is Annotated else inner:
            yield from document_models_in(part)


def document_models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and all that it is made of, what is used before what uses it.

    Raises:
        ValueError: Two of them have one name.
    """
    models: list[type[BaseModel]] = []

    def visit(current: type[BaseModel]) -> None:
        for annotation in annotations_of(current).values():
            for part in document_models_in(annotation):
                if part not in models:
                    visit(part)
        if current not in models:
            models.append(current)

    visit(model)
    names = [cls.__name__ for cls in models]
    if len(set(names)) < len(names):
        raise ValueError(f"{model.__name__} has two parts of one name: {sorted(names)}")
    return models


def is_union(annotation: Annotation) -> bool:
    """Say whether a type is one of several."""
    return origin_of(annotation) in (Union, types.UnionType)


def origin_of(annotation: Annotation) -> Any:  # noqa: ANN401 - special forms have no type
    """Return what a type is made with: `tuple`, `Union`, `Annotated`, …; None for a class."""
    return typing.get_origin(annotation)


def limits_of(notes: Sequence[Any]) -> dict[str, Any]:
    """Return the limits among what is noted about a type, by the names that the trainer has for them."""
    limits: dict[str, Any] = {}
    for note in notes:
        if isinstance(note, FieldInfo):
            extra = note.json_schema_extra if isinstance(note.json_schema_extra, dict) else {}
            limits |= {"required": tuple(cast(list[str], extra["required"]))} if "required" in extra else {}
            limits |= {"distinct": True} if extra.get("uniqueItems") else {}
            for rule in note.metadata:
                limits |= _limit(rule)
        elif isinstance(note, StringConstraints):
            given = {name: getattr(note, name) for name in ("pattern", "min_length", "max_length")}
            limits |= {name: value for name, value in given.items() if value is not None}
    return limits


def _limit(rule: object) -> dict[str, Any]:
    if isinstance(rule, annotated_types.MinLen):
        return {"min_length": rule.min_length}
    if isinstance(rule, annotated_types.MaxLen):
        return {"max_length": rule.max_length}
    return {ours: getattr(rule, name) for name, ours in _LIMITS.items() if hasattr(rule, name)}
