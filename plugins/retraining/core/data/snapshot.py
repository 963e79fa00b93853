"""From the examples query to a run table of spans, and from their fingerprints to what must be exported."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from retraining.core.data.class_names import class_parameters, render_unlisted_sql, with_class_numbers
from retraining.core.data.column_roles import missing_columns
from retraining.core.data.columns import own_columns, schema_hash
from retraining.core.data.image_objects import object_parameters, stored_bytes, with_objects
from retraining.core.data.source_files import with_files
from retraining.core.data.sql import Parameter, Query, midnight, render
from retraining.core.documents.document import canonical_json, format_time
from retraining.core.documents.plan import Plan
from retraining.core.documents.snapshot import (
    Column,
    GoldenWork,
    LeftOut,
    PartWork,
    Snapshot,
    SourceFilesRead,
    SpanWork,
)
from retraining.core.errors import DataError
from retraining.core.naming import bigquery, storage
from retraining.core.naming.spans import label_span
from retraining.core.spec.data import Data
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.sql_file import PARAMETERS

_Part = tuple[str, int, str, str, int]  # part, rows, XOR, sum, shards
Stored = Mapping[str, Mapping[str, int | None]]
"""Day (ISO) to the fingerprints that the span store has whole, each with its rows; None where nobody looked."""

_ANY_TIME = "2000-01-01T00:00:00Z"  # a dry run does not look at values

SAMPLE_BUCKETS = 1_000_000
"""Into so many a sample's hash puts keys."""

OTHER_DATA = (
    "When the source is mended, trigger the DAG again with this run's as_of and the Param force: this run's data stays "
    "as recorded. When the query or the spec is changed, clear plan and what follows it: that makes another run of it"
)
"""The way out where a run found other data than it recorded, or data that does not pass."""


def query_parameters(plan: Plan) -> tuple[Parameter, ...]:
    """Return what the examples query may use.

    `@window_start`, `@window_end` (half-open) and `@as_of`, all TIMESTAMP; of examples without a time the last alone.
    """
    as_of = Parameter(name="as_of", type="TIMESTAMP", value=format_time(plan.as_of))
    if plan.spec.data.split == "hash":
        return (as_of,)
    return (
        Parameter(name="window_start", type="TIMESTAMP", value=midnight(plan.window.start)),
        Parameter(name="window_end", type="TIMESTAMP", value=midnight(plan.window.end)),
        as_of,
    )


def render_columns_sql(spec: ModelSpec, sql: str) -> Query:
    """Return a spec's examples query for a dry run that asks for its columns, before there is a plan."""
    sql = sql if spec.data.files is None else with_files(sql, spec.data, None)
    return Query(sql=sql, parameters=any_time_parameters())


def any_time_parameters() -> tuple[Parameter, ...]:
    """Return what an examples query may use, for a dry run, which does not look at values."""
    return tuple(Parameter(name=name, type="TIMESTAMP", value=_ANY_TIME) for name in PARAMETERS)


def render_examples_check_sql(plan: Plan) -> Query:
    """Return the examples query alone, for a dry run: errors in it are found before anything is written."""
    sql = plan.query.sql if plan.spec.data.files is None else _examples_sql(plan)
    return Query(sql=sql, parameters=query_parameters(plan))


def _examples_sql(plan: Plan) -> str:
    """Return the examples query as it can stand in parentheses."""
    data = plan.spec.data
    return with_files(plan.query.sql, data, bigquery.files_table(plan) if data.files else None)


def render_snapshot_sql(plan: Plan) -> Query:
    """Return the statement that makes the run table.

    The query's rows in the window, with span, part, shard and row hash.

    Running it again gives the same table. It expires by itself after `data.keep_table_days`.
    """
    data = plan.spec.data
    sql = render(
        "snapshot.sql.j2",
        table=bigquery.run_table(plan),
        query=with_objects(with_class_numbers(_examples_sql(plan), plan.spec), plan),
        key=data.key,
        event_time=data.event_time,
        validation_days=data.validation_by == "days",
        keep_days=data.keep_table_days,
        golden=bigquery.frozen_set_table(plan) if plan.golden_query else None,
        sampled=data.sample_percent < 100,
        sample_buckets=SAMPLE_BUCKETS,
        image_bytes=stored_bytes(plan.spec),
    )
    sampled = round(data.sample_percent * SAMPLE_BUCKETS / 100)
    return Query(
        sql=sql,
        parameters=(
            *query_parameters(plan),
            Parameter(name="validation_percent", type="INT64", value=data.validation_percent),
            *([Parameter(name="sampled_buckets", type="INT64", value=sampled)] if data.sample_percent < 100 else []),
            *(_hash_split_parameters(plan) if data.split == "hash" else ()),
            *shard_parameters(data),
            *object_parameters(plan.spec),
            *class_parameters(plan.spec),
        ),
    )


def _hash_split_parameters(plan: Plan) -> tuple[Parameter, ...]:
    """Return which share of the keys is tested, and the two spans."""
    return (
        Parameter(name="test_percent", type="INT64", value=plan.spec.data.test_percent),
        Parameter(name="train_span", type="DATE", value=plan.window.start.isoformat()),
        Parameter(name="test_span", type="DATE", value=plan.window.test_start.isoformat()),
    )


def shard_parameters(data: Data) -> tuple[Parameter, ...]:
    """Return how large a shard may be: rows, and bytes of the rows' JSON text."""
    return (
        Parameter(name="rows_per_shard", type="INT64", value=data.rows_per_shard),
        Parameter(name="bytes_per_shard", type="INT64", value=data.shard_mb * 1_000_000),
    )


def render_left_out_sql(plan: Plan) -> Query:
    """Return the query of one row about what the examples query gives and no span holds: `future, latest, undated`.

    Future is after today, not after `as_of`: a run of the past leaves out what came later, and that is no fault.
    """
    sql = render("left_out.sql.j2", query=_examples_sql(plan), event_time=plan.spec.data.event_time)
    return Query(sql=sql, parameters=query_parameters(plan))


def render_unlisted_classes_sql(plan: Plan) -> Query:
    """Return the query of the labels' texts that the spec does not list, see `class_names`."""
    return render_unlisted_sql(_examples_sql(plan), plan.spec, query_parameters(plan))


def render_fingerprint_sql(plan: Plan) -> Query:
    """Return the query of one row per span and part: `span, part, row_count, bit_xor, hash_sum, shards`.

    XOR alone would lose doubled rows, the sum alone swapped ones; together with the count they hold. Order-free.
    """
    return Query(sql=render("fingerprint.sql.j2", table=bigquery.run_table(plan), grouped=True))


def span_fingerprint(parts: Iterable[_Part]) -> str:
    """Return 32 hex digits over a span's `(part, rows, bit_xor, hash_sum, shards)`, in order of part."""
    text = canonical_json([list(part) for part in sorted(parts)])
    return hashlib.sha256(text).hexdigest()[:32]


def build_snapshot(
    plan: Plan,
    schema: Iterable[Column | Mapping[str, Any]],
    fingerprint_rows: Iterable[Mapping[str, Any]],
    stored: Stored,
    bytes_processed: int = 0,
    frozen: GoldenWork | None = None,
    left_out: LeftOut | None = None,
    source_files: SourceFilesRead | None = None,
) -> Snapshot:
    """Return the snapshot document: what the run table holds and which spans the store has already.

    Args:
        plan: The run.
        schema: Of the run table; columns the snapshot added are left out.
        fingerprint_rows: Result of `render_fingerprint_sql`.
        stored: What the store of this schema has.
        bytes_processed: By the snapshot's query.
        frozen: The frozen set, where the plan has one.
        left_out: From the row of `render_left_out_sql`.
        source_files: That the examples came from.

    Raises:
        DataError: The window is empty, or a row is outside it.
    """
    columns = own_columns(schema, plan.query.path)
    _require_columns(plan, columns)
    hashed = schema_hash(columns, plan.spec)
    grouped = _by_day(fingerprint_rows)
    if not grouped:
        raise DataError(
            bigquery.run_table(plan),
            *_nothing_found(plan),
        )
    spans = tuple(_span(day, grouped[day], stored.get(day, {})) for day in sorted(grouped))
    return Snapshot(
        model=plan.model,
        run_key=plan.run_key,
        table=bigquery.run_table(plan),
        bytes_processed=bytes_processed,
        schema=columns,
        schema_hash=hashed,
        spans_uri=storage.spans_uri(plan, hashed),
        spans=spans,
        golden=frozen,
        left_out=left_out,
        source_files=source_files,
        explain=tuple(_explain(plan, spans, frozen, left_out, source_files)),
    )


def changed_spans(fingerprint_rows: Iterable[Mapping[str, Any]], stored: Stored) -> list[str]:
    """Return the days (ISO) that the store has with other content only."""
    grouped = _by_day(fingerprint_rows)
    return [day for day in sorted(grouped) if stored.get(day) and span_fingerprint(grouped[day]) not in stored[day]]


def left_out_of(row: Mapping[str, Any]) -> LeftOut:
    """Return the row of `render_left_out_sql` as a value."""
    latest = row["latest"]
    return LeftOut(
        future=int(row["future"]),
        latest=None if latest is None else date.fromisoformat(_day(latest)),
        undated=int(row["undated"]),
    )


def _nothing_found(plan: Plan) -> tuple[str, str, str]:
    if plan.spec.data.split == "hash":
        return "no example", "rows of the query", "Look at the source tables, at as_of and at data.sample_percent"
    return (
        f"no example between {plan.window.start} and {plan.window.end} (exclusive)",
        f"rows with {plan.spec.data.event_time} in these days",
        "Look at the source tables, at as_of and at data.window_days",
    )


def _by_day(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[_Part]]:
    grouped: dict[str, list[_Part]] = defaultdict(list)
    for row in rows:
        sum_ = str(row["hash_sum"]).split(".")[0]  # some engines write the zeros of a NUMERIC's scale
        part = (str(row["part"]), int(row["row_count"]), str(row["bit_xor"]), sum_, max(1, int(row["shards"])))
        grouped[_day(row["span"])].append(part)
    return grouped


def _explain(
    plan: Plan,
    spans: Sequence[SpanWork],
    frozen: GoldenWork | None,
    left_out: LeftOut | None,
    source: SourceFilesRead | None,
) -> list[str]:
    lines = [f"source: {source.count} files, {source.bytes:,} bytes"] if source else []
    for span in spans:
        done = "reused" if span.action == "reuse" else "changed" if span.reason.startswith("changed") else "exported"
        reason = span.reason.removeprefix("changed: ")
        name = label_span(plan, span.span)
        lines.append(f"{name}: {done}, {sum(part.rows for part in span.parts)} rows, because {reason}")
    if frozen:
        done = "reused" if frozen.action == "reuse" else "exported"
        lines.append(f"golden: {done}, {frozen.rows} rows, because {frozen.reason}")
    if left_out and left_out.future:
        lines.append(f"left out: {left_out.future} events after today, the last one on {left_out.latest}")
    if left_out and left_out.undated:
        lines.append(f"left out: {left_out.undated} events without a time")
    return lines


def _span(day: str, parts: list[_Part], stored: Mapping[str, int | None]) -> SpanWork:
    fingerprint = span_fingerprint(parts)
    if fingerprint in stored:
        action, reason = "reuse", "same fingerprint as stored"
    elif stored:
        before = ", ".join(
            f"{name[:8]}" + ("" if rows is None else f" ({rows} rows)") for name, rows in sorted(stored.items())
        )
        action, reason = "export", f"changed: other content than stored: {before}"
    else:
        action, reason = "export", "new span"
    return SpanWork(
        span=date.fromisoformat(day),
        fingerprint=fingerprint,
        parts=tuple(PartWork(part=part, rows=rows, shards=shards) for part, rows, _, _, shards in sorted(parts)),  # type: ignore[arg-type]  # pydantic checks the literal
        action=action,  # type: ignore[arg-type]  # one of the two literals above
        reason=reason,
    )


def _require_columns(plan: Plan, columns: Sequence[Column]) -> None:
    for finding in missing_columns(plan.spec, columns):
        raise DataError(plan.query.path, finding.found, finding.expected, finding.message)


def _day(value: object) -> str:
    if isinstance(value, datetime):
        value = value.date()
    return value.isoformat() if isinstance(value, date) else str(value)[:10]


def require_same_data(recorded: Snapshot, again: Snapshot) -> None:
    """Refuse to go on with a run table that was made again and has other data.

    Args:
        recorded: By the run.
        again: The same query's, after the run table had expired.

    Raises:
        DataError: The data is not the same.
    """
    first, second = ({span.span: span.fingerprint for span in taken.spans} for taken in (recorded, again))
    if first != second:
        raise DataError(recorded.table, "other data than this run recorded", "the same", OTHER_DATA)
