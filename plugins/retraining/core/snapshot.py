"""From the examples query to a run table of spans, and from their fingerprints to what must be exported tonight."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from typing import Any

from retraining.core import names
from retraining.core.checks import missing_columns
from retraining.core.documents.data import Column, Part, Snapshot, SnapshotSpan
from retraining.core.documents.document import canonical_json, format_time
from retraining.core.documents.planning import Plan
from retraining.core.errors import DataError
from retraining.core.model_spec import ModelSpec
from retraining.core.queries import Parameter, Query, quote_column, quote_table, render, without_semicolon
from retraining.core.shard_form import form_of
from retraining.core.spec_sections import RESERVED_COLUMNS
from retraining.core.windows import midnight

# The columns the snapshot adds to the query's own.
SYSTEM_COLUMNS = ("span", "part", "shard", "row_hash")

_Part = tuple[str, int, str, str, int]  # part, rows, XOR, sum, shards

# BigQuery's API and its SQL call some types differently; documents have the API's names.
_API_TYPES = {
    "INT64": "INTEGER",
    "FLOAT64": "FLOAT",
    "BOOL": "BOOLEAN",
    "STRUCT": "RECORD",
    "DECIMAL": "NUMERIC",
    "BIGDECIMAL": "BIGNUMERIC",
}


def query_parameters(plan: Plan) -> tuple[Parameter, ...]:
    """What the examples query may use: `@window_start`, `@window_end` (half-open) and `@as_of`, all TIMESTAMP."""
    return (
        Parameter(name="window_start", type="TIMESTAMP", value=midnight(plan.window.start)),
        Parameter(name="window_end", type="TIMESTAMP", value=midnight(plan.window.end)),
        Parameter(name="as_of", type="TIMESTAMP", value=format_time(plan.as_of)),
    )


def render_examples_check_sql(plan: Plan) -> Query:
    """The examples query alone, for a dry run: errors in it are found before anything is written."""
    return Query(sql=plan.query.sql, parameters=query_parameters(plan))


def render_snapshot_sql(plan: Plan) -> Query:
    """Statement that makes the run table: the query's rows in the window, with span, part, shard and row hash.

    Running it again gives the same table. It expires by itself after `data.keep_table_days`.
    """
    data = plan.spec.data
    sql = render(
        "snapshot.sql.j2",
        table=names.run_table(plan),
        query=without_semicolon(plan.query.sql),
        key=data.key,
        event_time=data.event_time,
        keep_days=data.keep_table_days,
    )
    return Query(
        sql=sql,
        parameters=(
            *query_parameters(plan),
            Parameter(name="validation_percent", type="INT64", value=data.validation_percent),
            Parameter(name="rows_per_shard", type="INT64", value=data.rows_per_shard),
        ),
    )


def render_fingerprint_sql(plan: Plan) -> Query:
    """Query of one row per span and part: `span, part, row_count, bit_xor, hash_sum, shards`.

    XOR alone would lose doubled rows, the sum alone swapped ones; together with the count they hold. Order-free.
    """
    return Query(sql=render("fingerprint.sql.j2", table=names.run_table(plan)))


def render_drop_sql(plan: Plan) -> Query:
    """Statement that drops the run table."""
    return Query(sql=f"DROP TABLE IF EXISTS {quote_table(names.run_table(plan))}")


def own_columns(schema: Iterable[Column | Mapping[str, Any]]) -> tuple[Column, ...]:
    """The query's own columns of a run table's schema, with the API's type names.

    Raises:
        DataError: A column has a name that cannot be used.
    """
    columns = []
    for item in schema:
        values = item.model_dump() if isinstance(item, Column) else dict(item)
        name = str(values["name"])
        if name in SYSTEM_COLUMNS:
            continue
        if name.lower() in RESERVED_COLUMNS:
            raise DataError(
                "examples query", f"a column named {name!r}", "another name: the run table uses it", "Rename it with AS"
            )
        quote_column(name)
        kind = str(values["type"]).upper()
        columns.append(
            Column(name=name, type=_API_TYPES.get(kind, kind), mode=str(values.get("mode") or "NULLABLE").upper())  # type: ignore[arg-type]  # pydantic checks the literal
        )
    return tuple(columns)


def schema_hash(columns: Sequence[Column], spec: ModelSpec) -> str:
    """16 hex digits over names, types and modes, in the query's order, and over what the export makes of them."""
    text = canonical_json([[[column.name, column.type, column.mode] for column in columns], form_of(spec)])
    return hashlib.sha256(text).hexdigest()[:16]


def span_fingerprint(parts: Iterable[_Part]) -> str:
    """32 hex digits over a span's `(part, rows, bit_xor, hash_sum, shards)`, in order of part."""
    text = canonical_json([list(part) for part in sorted(parts)])
    return hashlib.sha256(text).hexdigest()[:32]


def build_snapshot(
    plan: Plan,
    schema: Iterable[Column | Mapping[str, Any]],
    fingerprint_rows: Iterable[Mapping[str, Any]],
    stored: Mapping[str, AbstractSet[str]],
    bytes_processed: int = 0,
) -> Snapshot:
    """The snapshot document: what the run table holds and which spans the store has already.

    Args:
        plan: The run.
        schema: Of the run table; columns the snapshot added are left out.
        fingerprint_rows: Result of `render_fingerprint_sql`.
        stored: Span (ISO date) to the fingerprints that are complete in the store of this schema.
        bytes_processed: By the snapshot's query.

    Raises:
        DataError: The window is empty, or a row is outside it.
    """
    columns = own_columns(schema)
    _require_columns(plan, columns)
    hashed = schema_hash(columns, plan.spec)
    grouped = _by_day(fingerprint_rows)
    if not grouped:
        raise DataError(
            names.run_table(plan),
            f"no example between {plan.window.start} and {plan.window.end} (exclusive)",
            f"rows with {plan.spec.data.event_time} in these days",
            "Look at the source tables, at as_of and at data.window_days",
        )
    return Snapshot(
        model=plan.model,
        run_key=plan.run_key,
        table=names.run_table(plan),
        bytes_processed=bytes_processed,
        schema=columns,
        schema_hash=hashed,
        spans_uri=names.spans_uri(plan.bucket, plan.model, hashed),
        spans=tuple(_span(day, grouped[day], stored.get(day, frozenset())) for day in sorted(grouped)),
    )


def _by_day(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[_Part]]:
    grouped: dict[str, list[_Part]] = defaultdict(list)
    for row in rows:
        sum_ = str(row["hash_sum"]).split(".")[0]  # some engines write the zeros of a NUMERIC's scale
        part = (str(row["part"]), int(row["row_count"]), str(row["bit_xor"]), sum_, max(1, int(row["shards"])))
        grouped[_day(row["span"])].append(part)
    return grouped


def explain(snapshot: Snapshot) -> list[str]:
    """A line per span for the task log: what is done with it, because of what."""
    return [
        f"{span.span}: {span.action}, {sum(part.rows for part in span.parts)} rows, because {span.because}"
        for span in snapshot.spans
    ]


def _span(day: str, parts: list[_Part], stored: AbstractSet[str]) -> SnapshotSpan:
    fingerprint = span_fingerprint(parts)
    if fingerprint in stored:
        action, because = "reuse", "same fingerprint as stored"
    elif stored:
        action, because = "export", f"changed: stored fingerprint {', '.join(sorted(stored))}"
    else:
        action, because = "export", "new span"
    return SnapshotSpan(
        span=date.fromisoformat(day),
        fingerprint=fingerprint,
        parts=tuple(Part(part=part, rows=rows, shards=shards) for part, rows, _, _, shards in sorted(parts)),  # type: ignore[arg-type]  # pydantic checks the literal
        action=action,  # type: ignore[arg-type]  # one of the two literals above
        because=because,
    )


def _require_columns(plan: Plan, columns: Sequence[Column]) -> None:
    for finding in missing_columns(plan.spec, columns):
        raise DataError(plan.query.path, finding.found, finding.expected, finding.words)


def _day(value: object) -> str:
    if isinstance(value, datetime):
        value = value.date()
    return value.isoformat() if isinstance(value, date) else str(value)[:10]
