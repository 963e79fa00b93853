"""Hyperparameters: an architecture declares them as a dataclass, with defaults and limits; a request's are read here.

Comes in: values by name, as JSON has them or as text from a flag. Goes out: the architecture's dataclass, checked.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from trainer.contract.checking import Limits as FieldLimits
from trainer.contract.checking import broken_limit
from trainer.contract.documents import HyperparameterValue
from trainer.contract.json_text import read_json
from trainer.errors import RequestError

_LIMITS = "limits"
ACTIVATIONS = (
    "elu",
    "exponential",
    "gelu",
    "hard_sigmoid",
    "linear",
    "mish",
    "relu",
    "selu",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
)
"""Of `tf_keras.activations`, in every version that the trainer runs on."""


@dataclass(frozen=True, kw_only=True)
class Limits(FieldLimits):
    """What a hyperparameter's value may be; of a list, what each of its values may be.

    Data and no function, so that `capabilities` can write it down for who plans a training.

    Attributes:
        words: All limits as text, for messages.
        may_be_empty: Whether a list may have no value.
    """

    words: str
    may_be_empty: bool = False

    def allow(self, value: HyperparameterValue) -> bool:
        """Return whether a value of the right type will do; infinity and NaN never do."""
        values = value if isinstance(value, tuple) else (value,)
        return (bool(values) or self.may_be_empty) and all(map(self._allow_one, values))

    def _allow_one(self, value: float | str) -> bool:
        return (isinstance(value, str) or math.isfinite(value)) and broken_limit(self, value) is None


Default = TypeVar("Default", bound=HyperparameterValue)


def limited(default: Default, expected: str, **limits: Any) -> Default:  # noqa: ANN401 - as `Limits` has them
    """Declare a hyperparameter.

    Args:
        default: Of the type that the field has.
        expected: What will do, for messages.
        **limits: The other attributes of `Limits`, and of the contract's.
    """
    return dataclasses.field(default=default, metadata={_LIMITS: Limits(words=expected, **limits)})


def limits_of(field: dataclasses.Field[Any]) -> Limits | None:
    """Return the limits of a hyperparameter; None: its type says it all."""
    limits: Limits | None = field.metadata.get(_LIMITS)
    return limits


def whole(default: int, low: int, high: int) -> int:
    """Declare a whole number."""
    return limited(default, f"a whole number from {low} to {high}", minimum=low, maximum=high)


def share(default: float) -> float:
    """Declare a number in [0, 1]."""
    return limited(default, "a number in [0, 1]", minimum=0, maximum=1)


def widths(default: tuple[int, ...], most: int = 65536, *, may_be_empty: bool = False) -> tuple[int, ...]:
    """Declare whole numbers, one per layer."""
    expected = f"whole numbers from 1 to {most}" if may_be_empty else f"one or more whole numbers from 1 to {most}"
    return limited(default, expected, minimum=1, maximum=most, may_be_empty=may_be_empty)


def activation(default: str = "relu") -> str:
    """Declare the name of a Keras activation."""
    return limited(default, f"a Keras activation: {', '.join(ACTIVATIONS)}", one_of=ACTIVATIONS)


@dataclass(frozen=True, kw_only=True)
class HyperparameterSet:
    """Any architecture's: its fields, which `whole`, `limited` and the others declare."""


@dataclass(frozen=True, kw_only=True)
class Hyperparameters(HyperparameterSet):
    """What every architecture has that is trained by steps.

    Attributes:
        learning_rate: Of Adam. Default: Keras's own.
        weight_decay: Share of each weight, times the learning rate, that a step takes away; of biases none. Decoupled
            from the loss: Loshchilov, Hutter, 2019, https://arxiv.org/abs/1711.05101
    """

    learning_rate: float = limited(0.001, "a number above 0, at most 1000", above=0, maximum=1000)
    weight_decay: float = limited(0.0, "a number from 0 to 1", minimum=0, maximum=1)


Known = TypeVar("Known", bound=HyperparameterSet)


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
            raise RequestError(
                "hyperparameters",
                f"unknown name {name!r}",
                f"one of: {', '.join(sorted(types))}",
                f"Did you mean {close[0]!r}?" if close else "",
            )
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
            if isinstance(value, bool):
                raise ValueError(value)
            return _whole_number(value) if type_ is int else float(value)
        if isinstance(value, str):
            value = read_json(value if value.startswith("[") else f"[{value.replace('-', ',')}]")
        return tuple(_whole_number(item) for item in ([value] if isinstance(value, int | float) else value))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        names: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
        expected = names.get(type_, "a list of whole numbers, like 64,32")
        raise RequestError("hyperparameters", f"{name} is {value!r}", expected) from None


def _whole_number(value: float | str) -> int:
    number = float(value)
    if isinstance(value, bool) or number != int(number):
        raise ValueError(value)
    return int(number)


def _require_limits(hyperparameters: HyperparameterSet) -> None:
    for field in dataclasses.fields(hyperparameters):
        limits, value = limits_of(field), getattr(hyperparameters, field.name)
        if limits and not limits.allow(value):
            raise RequestError("hyperparameters", f"{field.name} is {value!r}", limits.words)
