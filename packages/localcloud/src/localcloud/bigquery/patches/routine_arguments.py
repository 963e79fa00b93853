"""Patches arguments of routines: a kind and a mode that nobody gave come back as if somebody had.

Both have defaults (cloud.google.com/bigquery/docs/reference/rest/v2/routines#argument), which Google's client compares
with what it sent.
"""

from __future__ import annotations

from typing import Any

from localcloud.untyped import Untyped

_DEFAULTS = {"argumentKind": "FIXED_TYPE", "mode": "IN"}


def apply() -> None:
    """Leave the defaults out of what is answered."""
    from bqemulator.api.routes import routines

    original = routines._arg_to_rest

    def to_rest(argument: Untyped) -> dict[str, Any]:
        document: dict[str, Any] = original(argument)
        return {name: value for name, value in document.items() if value != _DEFAULTS.get(name)}

    routines._arg_to_rest = to_rest
