"""The tables of column types in the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from retraining.core.column_types import (
    COLUMN_TYPES,
    EVENT_TIME_TYPES,
    KEY_TYPES,
    READ_BY_TENSORFLOW_IO,
    READ_FROM_TABLE,
    ROLE_TYPES,
    WITHOUT_CSV,
)

_ROLES: Mapping[str, str] = {
    "numeric": "numeric feature, or a sequence of numbers",
    "categorical": "categorical feature, or a sequence of categories",
    "image": "image",
    "image_address": "image with `objects`",
    "text": "text",
    "time": "time (`hour`: no `DATE`)",
    "bag": "bag",
    "binary": "binary label, unless `classes` lists texts (`STRING`)",
    "multiclass": "multiclass label, unless `classes` lists texts (`STRING`)",
    "regression": "regression label",
    "slice": "slice of an evaluation",
    "weight": "weight of an example",
}


def render_types() -> str:
    """Return what each type becomes in an Example."""
    rows = ["| BigQuery | list of the feature | value | to keep it exact, select |", "|---|---|---|---|"]
    for row in COLUMN_TYPES.values():
        rows.append(f"| `{row.sql}` | `{row.feature}` | {row.value} | {row.exact or 'it is exact'} |")
    return "\n".join(rows)


def render_roles() -> str:
    """Return what each role takes."""
    taken = {_ROLES[role]: _listed(types) for role, types in ROLE_TYPES.items()}
    taken[_ROLES["image_address"]] += ", an address"
    taken |= {
        "event time": _listed(EVENT_TIME_TYPES),
        "key": f"any scalar but {_listed(name for name in COLUMN_TYPES if name not in KEY_TYPES)}",
        "features and label where `training.input` is `bigquery`": _listed(READ_FROM_TABLE),
        "the same with `training.reader: tensorflow_io` (`training.input`)": _listed(READ_BY_TENSORFLOW_IO),
        "every column where `training.input` is `csv`": f"any scalar but {_listed(WITHOUT_CSV)}",
    }
    return "\n".join(["| role | types |", "|---|---|", *(f"| {role} | {types} |" for role, types in taken.items())])


def _listed(types: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in types)
