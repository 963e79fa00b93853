"""What is scored: its columns against the version's inputs, and the table of instances that is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from retraining.core.data.column_roles import role_of, types_of
from retraining.core.data.columns import top_columns
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.document import format_time
from retraining.core.documents.scoring import ScoringInput, ScoringPlan
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, suggest
from retraining.core.spec.features import Feature
from retraining.core.spec.sql_file import without_semicolon

KEEP_DAYS = 7
"""Until the table of instances expires by itself; a scoring that failed is cleared within them."""

KEY_TYPES = ("INTEGER", "STRING")
"""Of a key that comes back from the job as it went in."""


def where_of(plan: ScoringPlan) -> str:
    """Return what names the source in messages."""
    return plan.source.query.path if plan.source.query else str(plan.source.table)


def render_source_sql(plan: ScoringPlan) -> Query:
    """Return the source alone, for a dry run."""
    query = plan.source.query
    sql = without_semicolon(query.sql) if query else None
    as_of = Parameter(name="as_of", type="TIMESTAMP", value=format_time(plan.as_of))
    return Query(
        sql=render("scoring_source.sql.j2", query=sql, table=plan.source.table), parameters=(as_of,) if query else ()
    )


def require_columns(plan: ScoringPlan, schema: Iterable[Mapping[str, Any]]) -> dict[str, Column]:
    """Return the source's columns by name; those that the version reads, and the key, are there and of a fitting type.

    Raises:
        DataError: One is not; names all of them.
    """
    where = where_of(plan)
    columns = top_columns(schema)
    problems = [text for text in (_key_problem(plan, columns), *_feature_problems(plan.features, columns)) if text]
    if problems:
        raise DataError(
            where,
            "; ".join(problems),
            f"the columns that version {plan.version.version_id} was trained on, and its key",
            "Correct the query or name another table, then clear plan and what follows it",
        )
    return columns


def render_input_sql(plan: ScoringPlan, columns: Mapping[str, Column]) -> Query:
    """Return the statement that makes the table of instances; running it again makes it again."""
    source = render_source_sql(plan)
    sql = render(
        "scoring_input.sql.j2",
        target=plan.input_table,
        keep_days=KEEP_DAYS,
        source=source.sql,
        key=plan.key,
        key_field=key_field(plan),
        features=plan.features,
        truths=[name for name, column in columns.items() if column.type == "BOOLEAN"],
    )
    return Query(sql=sql, parameters=source.parameters)


def render_count_sql(plan: ScoringPlan) -> Query:
    """Return the query of one row about the instances."""
    return Query(sql=render("scoring_count.sql.j2", table=plan.input_table, key=plan.key))


def build_input(
    plan: ScoringPlan, columns: Mapping[str, Column], row: Mapping[str, Any], bytes_processed: int
) -> ScoringInput:
    """Return the document of the instances.

    Args:
        plan: The scoring.
        columns: Of the source.
        row: Result of `render_count_sql`.
        bytes_processed: By the statement that made them.

    Raises:
        DataError: There are none, or a key is missing or stands twice: its answer could not be told from another's.
    """
    rows, keys, without = int(row["row_count"]), int(row["keys"]), int(row["without_key"])
    where, way_out = where_of(plan), "Correct the query, then clear plan and what follows it; or trigger with Force"
    if not rows:
        raise DataError(where, "no row to score", "one at least", f"Look at the source and at as_of. {way_out}")
    if without:
        raise DataError(where, f"{without} of {rows} rows have no {plan.key}", "a key in each", way_out)
    if keys != rows:
        raise DataError(where, f"{rows} rows have {keys} different {plan.key}", "each key once", way_out)
    return ScoringInput(
        model=plan.model,
        run_key=plan.run_key,
        table=plan.input_table,
        key_type=columns[plan.key].type,  # type: ignore[arg-type]  # one of KEY_TYPES
        rows=rows,
        fingerprint=str(row["fingerprint"]),
        bytes_processed=bytes_processed,
    )


def require_same_rows(recorded: ScoringInput, again: ScoringInput) -> None:
    """Refuse to go on with instances that were made again and are others.

    Raises:
        DataError: They are.
    """
    if (recorded.rows, recorded.fingerprint) != (again.rows, again.fingerprint):
        way_out = "Trigger the DAG again with this as_of and the Param force"
        raise DataError(recorded.table, "other rows than this scoring recorded", "the same", way_out)


def key_field(plan: ScoringPlan) -> str:
    """Return the column of the instances that stands for a row in the answers, and that the model is not sent.

    The key itself; where the model takes that, a second column with the same.
    """
    if plan.key_input is None:
        return plan.key
    taken, name = {plan.key.lower(), *(feature.name.lower() for feature in plan.features)}, "row_key"
    while name in taken:
        name += "_"
    return name


def _key_problem(plan: ScoringPlan, columns: Mapping[str, Column]) -> str:
    key, types = plan.key, (plan.key_input,) if plan.key_input else KEY_TYPES
    if key not in columns:
        return _without(f"{key!r}, the key", key, columns)
    column = columns[key]
    if column.type not in types or column.mode == "REPEATED":
        return f"the key {key} is {column.type}, not {' or '.join(types)}: cast it"
    return ""


def _without(what: str, name: str, columns: Mapping[str, Column]) -> str:
    near = suggest(name, list(columns))
    return f"no column {what} ({near.rstrip('.')})" if near else f"no column {what}"


def _feature_problems(features: Iterable[Feature], columns: Mapping[str, Column]) -> Iterable[str]:
    for feature in features:
        if feature.name not in columns:
            yield _without(repr(feature.name), feature.name, columns)
            continue
        column = columns[feature.name]
        types = types_of(feature.of if feature.kind == "sequence" else feature.kind)
        if role_of(feature) == "image_address" and column.type == "STRING":
            yield (
                f"{feature.name} has addresses, and a scoring sends the images themselves: select their bytes, or name "
                "files of JSON lines that have them"
            )
        elif column.type not in types:
            yield f"{feature.name} is {column.type}, not {' or '.join(types)}"
        elif (column.mode == "REPEATED") != (feature.kind == "sequence"):
            yield f"{feature.name} is {'no array' if feature.kind == 'sequence' else 'an array'}"
