"""The section `deployment.explanations` of a model's YAML: what an endpoint may be asked beside its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from retraining.core.spec.features import Feature
from retraining.core.spec.section import ColumnName, Section

METHOD = "sampled_shapley"
MAX_PATHS = 50
"""https://cloud.google.com/vertex-ai/docs/reference/rest/v1/ExplanationSpec#SampledShapleyAttribution"""
NUMBERS = ("numeric", "time")
"""Kinds of features that a request has as a number; `time` as whole microseconds."""
TEXTS = ("categorical", "bag", "text")
BaselineValue = StrictInt | StrictFloat | StrictStr


class Explanations(Section):
    """What each feature adds to an answer, beside a baseline: sampled Shapley values."""

    paths: Annotated[int, Field(ge=2, le=MAX_PATHS)] = 10
    """Random orders of the features for each instance. An explanation costs up to `paths` x features + 1 predictions,
    and its error falls with the root of `paths`."""
    baselines: dict[ColumnName, BaselineValue] = Field(default_factory=dict)
    """By feature: the value that it is compared with, as a request has it. Of others it is the training split's median
    of a number, mean of a time, most frequent category, and an empty text."""

    @model_validator(mode="before")
    @classmethod
    def _has_one_method(cls, values: object) -> object:
        """Refuse a method by its name, with the reason: people look for one."""
        method = values.get("method") if isinstance(values, Mapping) else None
        if method is None:
            return values
        if method == METHOD:
            raise ValueError(f"method {METHOD} is the only one, and no key: remove it")
        raise ValueError(
            f"method {method!r} needs gradients by what a request holds, and Vertex AI has them of pre-built "
            f"containers alone, not of texts that the model looks up: remove the key, and the answers are explained by "
            f"{METHOD}"
        )


def unexplained_feature(where: str, features: Sequence[Feature]) -> str | None:
    """Return which feature has no attributions, and so stands against the key at `where`; None: none has."""
    for feature in features:
        if feature.kind not in (*NUMBERS, *TEXTS):
            return (
                f"{where} is of numbers and texts, and {feature.name!r} is of kind {feature.kind}: remove one of them"
            )
    return None


def explained_problem(explanations: Explanations, features: Sequence[Feature]) -> str | None:
    """Return why answers to these features cannot be explained; None: they can."""
    if problem := unexplained_feature("deployment.explanations", features):
        return problem
    for feature in features:
        value = explanations.baselines.get(feature.name)
        wanted = "number" if feature.kind in NUMBERS else "text"
        if value is not None and isinstance(value, str) == (wanted == "number"):
            return (
                f"deployment.explanations.baselines.{feature.name} is {value!r}, and a request has a {wanted} there: "
                f"give a {wanted}"
            )
        if feature.kind == "time" and isinstance(value, float):
            return (
                f"deployment.explanations.baselines.{feature.name} is {value!r}, and a request has whole microseconds "
                "since 1970-01-01 00:00 there: give a whole number"
            )
    return None
