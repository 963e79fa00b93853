"""What this trainer can train, as a document: `python -m trainer.tools.capabilities FILE`; see `make contracts`.

Comes in: the registry of architectures, their hyperparameters with limits. Goes out: the
file by which a plan is checked before a job is paid for. Write it again after a change; a test compares it.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from pathlib import Path
from typing import Any

from trainer.models.hyperparameters import HyperparameterSet, Limits, limits_of
from trainer.models.registry import ARCHITECTURES, Architecture

_TYPE_NAMES = {bool: "boolean", int: "integer", float: "number", str: "text"}


def capabilities() -> dict[str, Any]:
    """Return the document."""
    return {
        "kind": "capabilities",
        "schema_version": 1,
        "architectures": {name: _architecture(known) for name, known in ARCHITECTURES.items()},
    }


def render_capabilities() -> str:
    """Return the file's text."""
    return json.dumps(capabilities(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _architecture(known: Architecture) -> dict[str, Any]:
    return {
        "grows": known.grows,
        "reads": list(known.reads),
        "needs": dict(known.needs),
        "hyperparameters": _hyperparameters(known.hyperparameters),
        "warm_start": known.warm_start,
    }


def _hyperparameters(known: type[HyperparameterSet]) -> dict[str, Any]:
    types = typing.get_type_hints(known)
    return {
        field.name: {
            "type": _TYPE_NAMES.get(types[field.name], "integers"),
            "default": field.default,
            **_limits(field),
        }
        for field in dataclasses.fields(known)
    }


def _limits(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """Return those that there are."""
    limits = limits_of(field)
    unlimited = vars(Limits(words=""))
    return {name: value for name, value in vars(limits).items() if value is not unlimited[name]} if limits else {}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_capabilities(), encoding="utf-8")
