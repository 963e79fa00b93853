"""What each BigQuery type becomes in a `tf.train.Example`: the table in `docs/types.md`; nothing else decides it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from trainer.contract.documents import Column
from trainer.errors import RequestError

RUN_COLUMNS = ("span", "part", "shard", "row_hash")
"""Columns of the run table that say where a row goes; they are not features."""

MAX_COLUMNS = 10_000 - len(RUN_COLUMNS)
"""BigQuery's limit per table (https://cloud.google.com/bigquery/quotas#all_tables), less the run table's own."""


class FeatureKind(Enum):
    """The three lists of `tf.train.Feature`."""

    INT64 = "int64_list"
    FLOAT = "float_list"
    BYTES = "bytes_list"


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """What one type becomes.

    Attributes:
        kind: Which list.
        value: What stands in the list.
        exact: What to select instead where the value is not exact; empty: it is.
    """

    kind: FeatureKind
    value: str
    exact: str = ""


_NEAREST = "rounded to the nearest float32; beyond its range ±infinity; NaN stays NaN"
_DECIMAL = "rounded to float64, that to the nearest float32"

MAPPINGS: dict[str, Mapping] = {
    "INT64": Mapping(kind=FeatureKind.INT64, value="as it is"),
    "FLOAT64": Mapping(
        kind=FeatureKind.FLOAT, value=_NEAREST, exact="`CAST(x AS STRING)`: its digits give the same float64 back"
    ),
    "NUMERIC": Mapping(
        kind=FeatureKind.FLOAT,
        value=_DECIMAL,
        exact="`CAST(x AS STRING)`, or whole cents: `CAST(x * 100 AS INT64)`",
    ),
    "BIGNUMERIC": Mapping(kind=FeatureKind.FLOAT, value=_DECIMAL, exact="`CAST(x AS STRING)`"),
    "BOOL": Mapping(kind=FeatureKind.INT64, value="0 or 1"),
    "STRING": Mapping(kind=FeatureKind.BYTES, value="UTF-8"),
    "BYTES": Mapping(kind=FeatureKind.BYTES, value="as it is; of a feature of `kind: image` see [Images](#images)"),
    "DATE": Mapping(kind=FeatureKind.INT64, value="days since 1970-01-01"),
    "DATETIME": Mapping(kind=FeatureKind.INT64, value="microseconds since 1970-01-01 00:00, no time zone"),
    "TIME": Mapping(kind=FeatureKind.INT64, value="microseconds since midnight"),
    "TIMESTAMP": Mapping(kind=FeatureKind.INT64, value="microseconds since 1970-01-01 00:00 UTC"),
    "JSON": Mapping(kind=FeatureKind.BYTES, value="its text as BigQuery writes it, UTF-8"),
    "GEOGRAPHY": Mapping(kind=FeatureKind.BYTES, value="WKT, UTF-8"),
}
"""By the name in GoogleSQL; in the order of the page."""

LEGACY_NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
"""What BigQuery's REST API calls them."""
API_NAMES = {name: legacy for legacy, name in LEGACY_NAMES.items()}

WAYS_OUT = {
    "STRUCT": "Select its fields one by one",
    "INTERVAL": "Select CAST(x AS STRING), or parts of it: EXTRACT(DAY FROM x)",
    "RANGE": "Select RANGE_START(x) and RANGE_END(x)",
}
"""What to do about types that are refused. A STRUCT is here only as a column that was not flattened."""


def kind_of(type_: str) -> FeatureKind | None:
    """Give the list that a type goes to, by either of its names; None: it has no mapping."""
    mapping = MAPPINGS.get(LEGACY_NAMES.get(type_, type_))
    return None if mapping is None else mapping.kind


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
        types = dict.fromkeys(LEGACY_NAMES.get(column.type, column.type) for column in unmapped)
        raise RequestError(
            where,
            f"no TFRecord mapping for column {', '.join(f'{column.name} ({column.type})' for column in unmapped)}",
            f"types {', '.join(MAPPINGS)}",
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
