"""A study's search space: a tree of parameters, some of which exist only below certain values of another.

Comes in: the parameters of a `StudySpec`. Goes out: assignments, name -> value in the order of the spec, that hold
exactly the parameters whose conditions hold.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from google.cloud.aiplatform_v1.types import StudySpec, Trial

from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.methods import Message, raw

Value = float | str
"""A hyperparameter: text of a categorical one, else a number (an int of an integer one)."""
Assignment = dict[str, Value]
Kind = Literal["double", "integer", "discrete", "categorical"]
Scale = Literal["linear", "log", "reverse_log"]
EPSILON = 1e-10  # numbers closer than this are the same value, as in the service
_SCALES: dict[int, Scale] = {2: "log", 3: "reverse_log"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Child:
    """A parameter that exists only when its parent has one of some values."""

    when: tuple[Value, ...]
    parameter: Parameter

    def applies(self, value: Value) -> bool:
        """Return whether the parent's value calls for it."""
        return any(is_same(value, condition) for condition in self.when)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter.

    Args:
        key: Its place in the tree ("1", "1.0"): names may stand twice, below values that exclude each other.
        low: Least value of a number; 0 of a categorical parameter.
        high: Greatest value of a number, inclusive.
        values: Of a discrete or categorical parameter.
        default: A good value by the caller's word, or None.
    """

    key: str
    name: str
    kind: Kind
    scale: Scale
    low: float
    high: float
    values: tuple[Value, ...]
    default: Value | None
    children: tuple[Child, ...]

    def at(self, unit: float) -> Value:
        """Return the value at a place between 0 and 1 (exclusive) of the range, on the parameter's scale."""
        if self.values:
            return self.values[int(unit * len(self.values))]
        if self.kind == "integer" and self.scale == "linear":
            return int(self.low) + int(unit * (int(self.high) - int(self.low) + 1))
        number = min(max(self._scaled(unit), self.low), self.high)
        return round(number) if self.kind == "integer" else number

    def _scaled(self, unit: float) -> float:
        if self.scale == "linear":
            return self.low + (self.high - self.low) * unit
        ratio = self.high / self.low
        if self.scale == "log":
            return self.low * math.pow(ratio, unit)
        return self.high + self.low - self.low * math.pow(ratio, 1 - unit)

    def points(self) -> Iterator[Value]:
        """Return every value, for a grid; a double parameter has none to list."""
        if self.kind == "integer":
            yield from range(int(self.low), int(self.high) + 1)
        yield from self.values

    def own_value(self, value: object) -> Value | None:
        """Return the parameter's own value that this one means, or None when it has no such value."""
        if self.values:
            return next((own for own in self.values if is_same(value, own)), None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return None
        if self.kind == "integer":
            return int(value) if value == int(value) else None
        return float(value)

    def children_of(self, value: Value) -> list[Parameter]:
        """Return the parameters that exist below this value."""
        return [child.parameter for child in self.children if child.applies(value)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Space:
    """All parameters; `roots` exist in every trial."""

    roots: tuple[Parameter, ...]

    def walk(self, choose: Callable[[Parameter], Value]) -> Assignment:
        """Return an assignment, made by asking for the value of each parameter that exists, parents first."""
        assignment: Assignment = {}

        def visit(parameter: Parameter) -> None:
            value = assignment[parameter.name] = choose(parameter)
            for child in parameter.children_of(value):
                visit(child)

        for root in self.roots:
            visit(root)
        return assignment

    def all_parameters(self) -> list[Parameter]:
        """Return every parameter of the tree, parents first."""

        def below(parameter: Parameter) -> Iterator[Parameter]:
            yield parameter
            for child in parameter.children:
                yield from below(child.parameter)

        return [parameter for root in self.roots for parameter in below(root)]

    def grid(self) -> Iterator[Assignment]:
        """Return every assignment once, the last parameter changing fastest."""

        def points(parameters: list[Parameter]) -> Iterator[Assignment]:
            if not parameters:
                yield {}
                return
            first, *rest = parameters
            for value in first.points():
                for point in points([*first.children_of(value), *rest]):
                    yield {first.name: value, **point}

        return points(list(self.roots))

    def check(self, values: Mapping[str, object], field: str) -> Assignment:
        """Return the assignment that a caller's values mean.

        Raises:
            InvalidArgument: A parameter is missing, does not exist, or cannot have its value.
        """

        def choose(parameter: Parameter) -> Value:
            if parameter.name not in values:
                raise InvalidArgument(
                    f"Parameter {parameter.name!r} is missing. Expected a value for each parameter of the study.",
                    field=field,
                )
            value = parameter.own_value(values[parameter.name])
            if value is None:
                raise InvalidArgument(
                    f"Parameter {parameter.name!r} cannot be {values[parameter.name]!r}. Expected"
                    f" {describe_range(parameter)}.",
                    field=field,
                )
            return value

        assignment = self.walk(choose)
        if strangers := sorted(set(values) - set(assignment)):
            raise InvalidArgument(
                f"Parameter {strangers[0]!r} does not exist in this study beside the other values. Expected"
                f" {', '.join(assignment)}.",
                field=field,
            )
        return assignment


def read_space(spec: StudySpec) -> Space:
    """Return the space of a spec that `study_spec` let pass."""
    return Space(
        roots=tuple(_read_parameter(parameter, str(place)) for place, parameter in enumerate(raw(spec).parameters))
    )


def values_of(trial: Trial) -> dict[str, Value]:
    """Return a trial's parameters as it names them."""
    return {
        item.parameter_id: item.value.string_value
        if item.value.WhichOneof("kind") == "string_value"
        else item.value.number_value
        for item in raw(trial).parameters
    }


def write_parameters(trial: Trial, values: Assignment) -> None:
    """Give a trial its parameters, in order."""
    trial.parameters = [Trial.Parameter(parameter_id=name, value=value) for name, value in values.items()]


def is_same(one: object, other: Value) -> bool:
    """Return whether two values are the same to the service."""
    if isinstance(one, str) or isinstance(other, str) or not isinstance(one, int | float):
        return one == other
    return abs(one - other) < EPSILON


def describe_range(parameter: Parameter) -> str:
    """Say what a parameter may be."""
    if parameter.values:
        return f"one of {list(parameter.values)}"
    kind = "a whole number" if parameter.kind == "integer" else "a number"
    return f"{kind} from {parameter.low:g} to {parameter.high:g}"


def _read_parameter(parameter: Message, key: str) -> Parameter:
    kind: Kind = parameter.WhichOneof("parameter_value_spec").removesuffix("_value_spec")
    own = getattr(parameter, f"{kind}_value_spec")
    values = tuple(own.values) if kind in ("discrete", "categorical") else ()
    numbers = values if kind == "discrete" else (0.0,) if kind == "categorical" else (own.min_value, own.max_value)
    return Parameter(
        key=key,
        name=parameter.parameter_id,
        kind=kind,
        scale=_SCALES.get(parameter.scale_type, "linear"),
        low=numbers[0],
        high=numbers[-1],
        values=values,
        default=own.default_value if own.HasField("default_value") else None,
        children=tuple(
            Child(when=condition_values(child), parameter=_read_parameter(child.parameter_spec, f"{key}.{place}"))
            for place, child in enumerate(parameter.conditional_parameter_specs)
        ),
    )


def condition_values(child: Message) -> tuple[Value, ...]:
    """Return the parent's values that a conditional parameter (plain protobuf) asks for; none when it names none."""
    chosen = child.WhichOneof("parent_value_condition")
    return tuple(getattr(child, chosen).values) if chosen else ()
