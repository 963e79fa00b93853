"""What each BigQuery type becomes in a `tf.train.Example`, by the table of column types; nothing else decides it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from trainer.contract.column_types import API_NAMES, COLUMN_TYPES, MAX_COLUMNS, RUN_COLUMNS, SQL_NAMES, WAYS_OUT
from trainer.contract.documents import Column
from trainer.errors import RequestError

_SQL_NAMES = {**SQL_NAMES, "RECORD": "STRUCT"}


class FeatureKind(Enum):
    """The three lists of `tf.train.Feature`."""

    INT64 = "int64_list"
    FLOAT = "float_list"
    BYTES = "bytes_list"


def kind_of(type_: str) -> FeatureKind | None:
    """Return the list that a type goes to, by either of its names; None: it has no mapping."""
    row = COLUMN_TYPES.get(API_NAMES.get(type_, type_))
    return FeatureKind(row.feature) if row else None


def require_mapped(schema: Iterable[Column], where: str) -> None:
    """Refuse a schema that cannot be exported.

    Args:
        schema: Columns with STRUCTs flattened, the run table's own left out.
        where: Names the schema in messages.

    Raises:
        RequestError: Too many columns, types without mapping, or names that the run table needs itself; names them all.
    """
    columns = list(schema)
    _require_few(len(columns), where)
    unmapped = [column for column in columns if kind_of(column.type) is None]
    if unmapped:
        types = dict.fromkeys(_SQL_NAMES.get(column.type, column.type) for column in unmapped)
        raise RequestError(
            where,
            f"no TFRecord mapping for column {', '.join(f'{column.name} ({column.type})' for column in unmapped)}",
            f"types {', '.join(row.sql for row in COLUMN_TYPES.values())}",
            "; ".join(dict.fromkeys(WAYS_OUT.get(type_, "Select CAST(x AS STRING)") for type_ in types)),
        )
    taken = sorted({column.name for column in columns} & set(RUN_COLUMNS))
    if taken:
        raise RequestError(
            where, f"column name {', '.join(taken)} is taken", f"names other than {', '.join(RUN_COLUMNS)}", "Rename it"
        )


def _require_few(columns: int, where: str) -> None:
    if columns > MAX_COLUMNS:
        raise RequestError(
            where,
            f"{columns:,} columns",
            f"at most {MAX_COLUMNS:,}: BigQuery's 10,000 per table less the run table's {len(RUN_COLUMNS)}",
            "Put numbers that belong together into one ARRAY<FLOAT64>",
        )
