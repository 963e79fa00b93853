"""Hyperparameters: an architecture declares them as a dataclass, with defaults and limits; a request's are read here.

Comes in: values by name, as JSON has them or as text from a flag. Goes out: the architecture's dataclass, checked.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import tf_keras

from trainer.documents import HyperparameterValue
from trainer.errors import RequestError

_LIMITS = "limits"


def limited(default: HyperparameterValue, allowed: Callable[[Any], bool], words: str) -> Any:  # noqa: ANN401 - a field
    """Declare a hyperparameter.

    Args:
        default: Of the type that the field has.
        allowed: Tells whether a value of that type will do.
        words: What will do, for messages.
    """
    return dataclasses.field(default=default, metadata={_LIMITS: (allowed, words)})


def whole(default: int, low: int, high: int) -> Any:  # noqa: ANN401 - a field
    """Declare a whole number."""
    return limited(default, lambda value: low <= value <= high, f"a whole number from {low} to {high}")


def share(default: float) -> Any:  # noqa: ANN401 - a field
    """Declare a number in [0, 1]."""
    return limited(default, lambda value: 0 <= value <= 1, "a number in [0, 1]")


def widths(default: tuple[int, ...], most: int = 65536, *, may_be_empty: bool = False) -> Any:  # noqa: ANN401 - a field
    """Declare whole numbers, one per layer."""
    return limited(
        default,
        lambda value: (value or may_be_empty) and all(1 <= units <= most for units in value),
        f"whole numbers from 1 to {most}" if may_be_empty else f"one or more whole numbers from 1 to {most}",
    )


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """What every architecture has.

    Attributes:
        learning_rate: Of Adam. Default: Keras's own.
    """

    learning_rate: float = limited(0.001, lambda value: 0 < value < math.inf, "a number above 0")


Known = TypeVar("Known", bound=Hyperparameters)


def read_values(known: type[Known], values: Mapping[str, HyperparameterValue]) -> Known:
    """Check hyperparameters and fill in defaults.

    Args:
        known: Names, types and limits.
        values: By name; text is read as the parameter's type (`64,32` or `[64, 32]` for a list).

    Raises:
        RequestError: An unknown name, or a value that is no such type or out of its range.
    """
    types = typing.get_type_hints(known)
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name not in types:
            close = difflib.get_close_matches(name, types, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else ""
            raise RequestError("hyperparameters", f"unknown name {name!r}", f"one of: {', '.join(sorted(types))}", hint)
        read[name] = _read_value(name, value, types[name])
    hyperparameters = known(**read)
    _require_limits(hyperparameters)
    return hyperparameters


def _read_value(name: str, given: HyperparameterValue, type_: type) -> HyperparameterValue:
    value: Any = given
    try:
        if type_ is str:
            return str(value)
        if type_ is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if type_ in (int, float):
            number = float(value)
            if isinstance(value, bool) or (type_ is int and number != int(number)):
                raise ValueError(value)
            return int(number) if type_ is int else number
        if isinstance(value, str):
            value = json.loads(value if value.startswith("[") else f"[{value.replace('-', ',')}]")
        return tuple(int(item) for item in ([value] if isinstance(value, int | float) else value))
    except (ValueError, TypeError, KeyError):
        names: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
        words = names.get(type_, "a list of whole numbers, like 64,32")
        raise RequestError("hyperparameters", f"{name} is {value!r}", words) from None


def _require_limits(hyperparameters: Hyperparameters) -> None:
    for field in dataclasses.fields(hyperparameters):
        allowed, words = field.metadata.get(_LIMITS, (lambda _value: True, ""))
        value = getattr(hyperparameters, field.name)
        if not allowed(value):
            raise RequestError("hyperparameters", f"{field.name} is {value!r}", words)


def activation(default: str = "relu") -> Any:  # noqa: ANN401 - a field
    """Declare the name of a Keras activation."""
    return limited(
        default, lambda value: hasattr(tf_keras.activations, value), "the name of a Keras activation, like relu"
    )
