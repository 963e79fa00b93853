"""What the service refuses in a study's spec before anything is searched.

Comes in: a `StudySpec` and the field it stands in. Goes out: findings (field, message).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from google.cloud.aiplatform_v1.types import StudySpec

from localcloud.vertex.jobs.tuning.search.space import EPSILON, condition_values, is_same
from localcloud.vertex.resources.validation import Finding
from localcloud.vertex.wire.methods import Message, raw

MAX_DISCRETE_VALUES = 1000
_KIND_OF_CONDITION = {
    "parent_discrete_values": "discrete",
    "parent_int_values": "integer",
    "parent_categorical_values": "categorical",
}


def check_study_spec(spec: StudySpec, field: str) -> Iterator[Finding]:
    """Find everything about a study's spec that can be known before it begins."""
    inner = raw(spec)
    if not inner.metrics:
        yield f"{field}.metrics", "No metric was given. Expected one that trials report, with its goal."
    yield from _check_ids([metric.metric_id for metric in inner.metrics], f"{field}.metrics", "metric_id")
    for index, metric in enumerate(inner.metrics):
        if not metric.goal:
            yield f"{field}.metrics[{index}].goal", "Required field is not set."
    if not inner.parameters:
        yield f"{field}.parameters", "No parameter was given. Expected one or more to search."
    names = [parameter.parameter_id for parameter in inner.parameters]
    yield from _check_ids(names, f"{field}.parameters", "parameter_id")
    for index, parameter in enumerate(inner.parameters):
        yield from _check_parameter(parameter, f"{field}.parameters[{index}]", frozenset(names))
    if spec.algorithm == StudySpec.Algorithm.GRID_SEARCH:
        yield from _check_grid(inner.parameters, f"{field}.parameters")
    if inner.WhichOneof("automated_stopping_spec") and len(inner.metrics) > 1:
        yield (
            f"{field}.{inner.WhichOneof('automated_stopping_spec')}",
            f"Trials can be stopped early by one metric, the study has {len(inner.metrics)}. Leave one out.",
        )


def _check_ids(ids: Sequence[str], field: str, what: str) -> Iterator[Finding]:
    for index, name in enumerate(ids):
        where = f"{field}[{index}].{what}"
        if not name:
            yield where, "Required field is not set."
        if re.search(r"\s", name):
            yield where, f"The {what} {name!r} is invalid. Expected one without whitespace."
        if name and name in ids[:index]:
            yield where, f"The {what} {name!r} is given twice. Expected each once."


def _check_parameter(parameter: Message, field: str, taken: frozenset[str]) -> Iterator[Finding]:
    chosen = parameter.WhichOneof("parameter_value_spec")
    if chosen is None:
        yield (
            field,
            (
                f"Parameter {parameter.parameter_id!r} has no values. Expected one of double_value_spec,"
                " integer_value_spec, categorical_value_spec, discrete_value_spec."
            ),
        )
        return
    own, kind, where = getattr(parameter, chosen), chosen.removesuffix("_value_spec"), f"{field}.{chosen}"
    if kind in ("double", "integer"):
        numbers = [own.min_value, own.max_value]
        yield from _check_bounds(own.min_value, own.max_value, where)
    else:
        numbers = list(own.values) if kind == "discrete" else []
        yield from _check_values(own.values, kind, where)
    yield from _check_scale(parameter.scale_type, kind, numbers, field)
    if own.HasField("default_value") and not _has_default(own, kind):
        yield f"{where}.default_value", f"The default {own.default_value!r} is no value of the parameter."
    yield from _check_children(parameter, kind, field, taken)


def _check_bounds(low: float, high: float, field: str) -> Iterator[Finding]:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        yield field, f"The range is {low} to {high}. Expected finite bounds, min_value at most max_value."


def _check_values(values: Sequence[str | float], kind: str, field: str) -> Iterator[Finding]:
    where = f"{field}.values"
    if not values:
        yield where, "No value was given. Expected one or more."
    if kind == "categorical":
        if len(set(values)) != len(values):
            yield where, f"The values {list(values)} repeat themselves. Expected each once."
        return
    if len(values) > MAX_DISCRETE_VALUES:
        yield where, f"{len(values)} values were given. Expected at most {MAX_DISCRETE_VALUES}."
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)) or any(b - a < EPSILON for a, b in itertools.pairwise(numbers)):
        yield where, f"The values {list(values)} are not in increasing order, at least {EPSILON:g} apart."


def _check_scale(scale: int, kind: str, numbers: list[float], field: str) -> Iterator[Finding]:
    name = StudySpec.ParameterSpec.ScaleType(scale).name
    if kind == "categorical" and scale:
        yield f"{field}.scale_type", f"A categorical parameter has no scale, found {name}. Leave it unset."
    if "LOG" in name and min(numbers, default=1.0) <= 0:
        yield f"{field}.scale_type", f"{name} needs values above 0, found {min(numbers)}. Raise the least value."


def _has_default(own: Message, kind: str) -> bool:
    if kind == "categorical":
        return own.default_value in own.values
    # A discrete default is rounded to the nearest value.
    return kind == "discrete" or own.min_value <= own.default_value <= own.max_value


def _check_children(parameter: Message, kind: str, field: str, taken: frozenset[str]) -> Iterator[Finding]:
    seen: dict[str, list[float | str]] = {}
    for index, child in enumerate(parameter.conditional_parameter_specs):
        where = f"{field}.conditional_parameter_specs[{index}]"
        condition, name = child.WhichOneof("parent_value_condition"), child.parameter_spec.parameter_id
        values = condition_values(child)
        if _KIND_OF_CONDITION.get(condition) != kind:
            fits = next((key for key, value in _KIND_OF_CONDITION.items() if value == kind), None)
            expected = f"Expected {fits}." if fits else "A double parameter cannot have conditional parameters."
            yield where, f"The condition of {name!r} is {condition or 'missing'}. {expected}"
        elif not values or not all(_is_value(parameter, kind, value) for value in values):
            yield f"{where}.{condition}.values", f"{list(values)} are no values of {parameter.parameter_id!r}."
        if not name:
            yield f"{where}.parameter_spec.parameter_id", "Required field is not set."
        if name in taken:
            yield f"{where}.parameter_spec.parameter_id", f"The parameter_id {name!r} is given twice."
        if any(is_same(value, other) for value in values for other in seen.get(name, [])):
            yield where, f"{name!r} stands below the same value of {parameter.parameter_id!r} twice."
        seen.setdefault(name, []).extend(values)
        below = taken | {each.parameter_spec.parameter_id for each in parameter.conditional_parameter_specs}
        yield from _check_parameter(child.parameter_spec, f"{where}.parameter_spec", below)


def _is_value(parameter: Message, kind: str, value: float | str) -> bool:
    own = getattr(parameter, f"{kind}_value_spec")
    if kind == "integer":
        return bool(own.min_value <= value <= own.max_value)
    return any(is_same(value, known) for known in own.values)


def _check_grid(parameters: Sequence[Message], field: str) -> Iterator[Finding]:
    for index, parameter in enumerate(parameters):
        where = f"{field}[{index}]"
        if parameter.WhichOneof("parameter_value_spec") == "double_value_spec":
            yield (
                f"{where}.double_value_spec",
                (
                    f"GRID_SEARCH cannot list the values of the double parameter {parameter.parameter_id!r}. Expected"
                    " integer, categorical and discrete parameters only."
                ),
            )
        children = [child.parameter_spec for child in parameter.conditional_parameter_specs]
        yield from _check_grid(children, f"{where}.conditional_parameter_specs")
