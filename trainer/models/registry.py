"""Every architecture by name. To add one: a file with `build` and its hyperparameters, and a line here."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tf_keras

from trainer.documents import HyperparameterValue
from trainer.errors import RequestError
from trainer.models import cnn, dense, wide_deep
from trainer.models.dense import DenseHyperparameters as Hyperparameters
from trainer.models.features import InputShape


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """How to build a model.

    Attributes:
        build: From input shape, number of logits and hyperparameters to a Keras model.
        hyperparameters: Dataclass whose fields are the names, types and defaults.
        images: Whether it reads images; if so, it needs one.
    """

    build: Callable[[InputShape, int, Any], tf_keras.Model]
    hyperparameters: type[Hyperparameters]
    images: bool = False

    def require_inputs(self, name: str, shape: InputShape) -> None:
        """Check that it can read the features.

        Raises:
            RequestError: It does not read images and there are some, or the other way round.
        """
        if bool(shape.images) == self.images:
            return
        fitting = sorted(other for other, known in ARCHITECTURES.items() if known.images != self.images)
        found = f"it does not read images, and {shape.images[0].name!r} is one" if shape.images else "there is no image"
        raise RequestError(
            "training.model",
            f"architecture {name!r}: {found}",
            f"features {'without' if shape.images else 'with'} images",
            f"Set training.model to {' or '.join(fitting)}, or change the features",
        )


ARCHITECTURES = {
    "cnn": Architecture(build=cnn.build, hyperparameters=cnn.CnnHyperparameters, images=True),
    "dense": Architecture(build=dense.build, hyperparameters=dense.DenseHyperparameters),
    "wide_deep": Architecture(build=wide_deep.build, hyperparameters=wide_deep.WideDeepHyperparameters),
}


def find_architecture(name: str) -> Architecture:
    """Give the architecture of that name.

    Raises:
        RequestError: There is none.
    """
    if name not in ARCHITECTURES:
        raise RequestError(
            "training.model", f"unknown architecture {name!r}", f"one of: {', '.join(sorted(ARCHITECTURES))}"
        )
    return ARCHITECTURES[name]


def read_hyperparameters(architecture: Architecture, values: Mapping[str, HyperparameterValue]) -> Hyperparameters:
    """Check hyperparameters and fill in defaults.

    Args:
        architecture: Whose.
        values: By name; text is read as the parameter's type (`64,32` or `[64, 32]` for a list).

    Raises:
        RequestError: An unknown name, or a value that is no such type or out of its range.
    """
    known = typing.get_type_hints(architecture.hyperparameters)
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else ""
            raise RequestError("hyperparameters", f"unknown name {name!r}", f"one of: {', '.join(sorted(known))}", hint)
        read[name] = _read_value(name, value, known[name])
    hyperparameters = architecture.hyperparameters(**read)
    _require_ranges(dataclasses.asdict(hyperparameters))
    return hyperparameters


def _read_value(name: str, given: HyperparameterValue, type_: type) -> HyperparameterValue:
    value: Any = given
    try:
        if type_ is str:
            return str(value)
        if type_ in (int, float):
            number = float(value)
            if isinstance(value, bool) or (type_ is int and number != int(number)):
                raise ValueError(value)
            return int(number) if type_ is int else number
        if isinstance(value, str):
            value = json.loads(value if value.startswith("[") else f"[{value.replace('-', ',')}]")
        return tuple(int(item) for item in ([value] if isinstance(value, int | float) else value))
    except (ValueError, TypeError):
        words = {int: "a whole number", float: "a number"}.get(type_, "a list of whole numbers, like 64,32")
        raise RequestError("hyperparameters", f"{name} is {value!r}", words) from None


_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "learning_rate": (lambda value: 0 < value < float("inf"), "a number above 0"),
    "hidden_units": (
        lambda value: all(1 <= units <= 65536 for units in value) and value,
        "one or more whole numbers of at least 1",
    ),
    "filters": (lambda value: all(1 <= filters <= 4096 for filters in value), "whole numbers from 1 to 4096"),
    "kernel_size": (lambda value: 1 <= value <= 31, "a whole number from 1 to 31"),
    "dropout": (lambda value: 0 <= value < 1, "a number in [0, 1)"),
    "l2": (lambda value: 0 <= value < float("inf"), "a number of at least 0"),
    "cross_buckets": (lambda value: 0 <= value <= 1 << 24, "a whole number from 0 to 16777216"),
    "activation": (lambda value: hasattr(tf_keras.activations, value), "the name of a Keras activation, like relu"),
}


def _require_ranges(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        allowed, words = _RANGES.get(name, (lambda _value: True, ""))
        if not allowed(value):
            raise RequestError("hyperparameters", f"{name} is {value!r}", words)
