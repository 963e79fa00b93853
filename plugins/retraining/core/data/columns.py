"""The examples query's own columns as the export sees them: STRUCTs flattened, types that TFRecords can hold.

What cannot be exported is refused here, before anything is paid for: the table is `docs/types.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from retraining.core.column_types import API_NAMES, COLUMN_TYPES, MAX_COLUMNS, RUN_COLUMNS, WAYS_OUT
from retraining.core.data.shard_format import form_of
from retraining.core.documents.document import canonical_json
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.section import RESERVED_COLUMNS


def own_columns(schema: Iterable[Column | Mapping[str, Any]], where: str = "examples query") -> tuple[Column, ...]:
    """Return the query's own columns of a run table's schema, with the API's type names.

    A STRUCT's fields as `outer.inner`.

    The fields of a REPEATED STRUCT are REPEATED columns.

    Args:
        schema: As BigQuery's API gives it: name, type, mode, and the fields of a RECORD.
        where: Names the query in messages.

    Raises:
        DataError: There are too many columns, a name is taken or stands twice, or a column cannot be exported.
    """
    listed = [item.model_dump() if isinstance(item, Column) else dict(item) for item in schema]
    own = [item for item in listed if item["name"] not in RUN_COLUMNS]
    _require_free_names([str(item["name"]) for item in own], where)
    columns = tuple(leaf for item in own for leaf in _leaves(item, "", where, repeated=False))
    if len(columns) > MAX_COLUMNS:
        raise DataError(
            where,
            f"{len(columns):,} columns",
            f"at most {MAX_COLUMNS:,}: BigQuery's 10,000 per table less the run table's {len(RUN_COLUMNS)}",
            "Put numbers that belong together into one ARRAY<FLOAT64>",
        )
    _require_exported(columns, where)
    return columns


def top_columns(schema: Iterable[Mapping[str, Any]]) -> dict[str, Column]:
    """Return a table's columns by name, with the API's type names; a STRUCT is one of them."""
    found = {}
    for item in schema:
        kind = str(item["type"]).upper()
        values = {"type": API_NAMES.get(kind, kind), "mode": str(item.get("mode") or "NULLABLE").upper()}
        found[str(item["name"])] = Column.model_validate({"name": item["name"], **values})
    return found


def schema_hash(columns: Sequence[Column], spec: ModelSpec) -> str:
    """Return 16 hex digits over names, types and modes in the query's order, and over what the export makes of them."""
    text = canonical_json([[[column.name, column.type, column.mode] for column in columns], form_of(spec)])
    return hashlib.sha256(text).hexdigest()[:16]


def _leaves(item: Mapping[str, Any], prefix: str, where: str, *, repeated: bool) -> Iterator[Column]:
    name = f"{prefix}{item['name']}"
    kind = API_NAMES.get(str(item["type"]).upper(), str(item["type"]).upper())
    mode = str(item.get("mode") or "NULLABLE").upper()
    if mode == "REPEATED" and repeated:
        raise DataError(
            where,
            f"column {name} is REPEATED inside a REPEATED STRUCT",
            "one level of REPEATED: an Example's lists do not nest",
            "UNNEST it, or join its values into one STRING, in the query",
        )
    inside = repeated or mode == "REPEATED"
    if kind == "RECORD" and item.get("fields"):
        for field in item["fields"]:
            yield from _leaves(field, f"{name}.", where, repeated=inside)
    else:
        yield Column(name=name, type=kind, mode="REPEATED" if inside else mode)  # type: ignore[arg-type]  # pydantic checks the literal


def _require_free_names(names: Sequence[str], where: str) -> None:
    taken = [name for name in names if name.lower() in RESERVED_COLUMNS]
    if taken:
        raise DataError(
            where,
            f"a column named {', '.join(map(repr, taken))}",
            "another name: the run table uses it",
            "Rename it with AS",
        )


def _require_exported(columns: Sequence[Column], where: str) -> None:
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError(
            where,
            f"column {', '.join(twice)} stands twice after STRUCTs are flattened",
            "distinct names",
            "Rename one with AS",
        )
    refused = [column for column in columns if column.type not in COLUMN_TYPES]
    if refused:
        ways = dict.fromkeys(WAYS_OUT.get(column.type, "Select CAST(x AS STRING)") for column in refused)
        raise DataError(
            where,
            f"no TFRecord mapping for column {', '.join(f'{column.name} ({column.type})' for column in refused)}",
            f"types {', '.join(sorted(COLUMN_TYPES))}",
            "; ".join(ways),
        )
