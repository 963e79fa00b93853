"""Patches INFORMATION_SCHEMA: it is looked for by its letters, and found in none but the plainest statements.

| asked for | without it |
|---|---|
| a view in backticks, or in a statement that another patch writes anew | a stray backtick, refused |
| a view that has no rows | all its columns are INT64 |
| `COLUMN_FIELD_PATHS`, `TABLE_STORAGE`, `dataset.__TABLES__` | no such table |

In: a statement, and the catalog. Out: the statement with a query of literals in the place of each view. Views that are
not offered are refused by name. Source: cloud.google.com/bigquery/docs/information-schema-intro.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.query_bytes import table_bytes
from localcloud.bigquery.types import jobs
from localcloud.bigquery.types.columns import quoted
from localcloud.bigquery.types.trees import only_tree
from localcloud.statements import statement as sql_statement
from localcloud.untyped import Untyped

_PREFIX = "INFORMATION_SCHEMA."
_TABLES = "__TABLES__"
_TABLE = {"table_catalog": "STRING", "table_schema": "STRING", "table_name": "STRING"}
_KINDS = {"TABLE": 1, "VIEW": 2, "MATERIALIZED_VIEW": 2, "EXTERNAL": 3}
_WHOLE = {
    "ordinal_position", "clustering_ordinal_position", "refresh_interval_minutes", "total_rows", "total_logical_bytes",
}  # fmt: skip
_TRUTHS = {"enable_refresh", "is_stale"}
_TIMES = {"created", "last_altered", "refresh_watermark"}
_EMULATED = (
    "COLUMNS", "MATERIALIZED_VIEWS", "PARTITIONS", "ROUTINES", "ROW_ACCESS_POLICIES", "SCHEMATA", "TABLES",
    "TABLE_OPTIONS", "VIEWS",
)  # fmt: skip
"""Views whose rows bqemulator has."""
_ROW = "localcloud_row"
_Rows = list[Sequence[Any]]


def apply(executor: Untyped) -> None:
    """Put the views' rows into statements before they are looked at, also those of scripts."""
    from bqemulator.scripting import interpreter
    from bqemulator.sql import inner_query

    inner_query.expand_information_schema = lambda statement, *_: statement  # it would change texts, too
    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_filled(bq_sql: str, **kwargs: Untyped) -> str:
        return str(await translate(filled(bq_sql, kwargs["project_id"], kwargs["ctx"]), **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_filled


def filled(statement: str, project: str, ctx: Untyped) -> str:
    """Return a statement with rows in the place of views.

    Raises:
        NotFoundError: There is no dataset of that name.
        UnsupportedFeatureError: A view is not offered.
    """
    from bqemulator.domain.errors import UnsupportedFeatureError

    if not any(word in statement.upper() for word in (_PREFIX.rstrip("."), _TABLES)):
        return statement
    tree = only_tree(statement)
    if tree is None:
        return statement
    views = [table for table in tree.find_all(exp.Table) if _view_of(table)]
    for table in views:
        if _view_of(table) in jobs.VIEWS and (refused := jobs.refused_part(tree, table)):
            raise UnsupportedFeatureError(f"The local cloud has no {refused}")
        columns, rows = _read(_view_of(table), table.catalog or project, table.db, ctx)
        query = exp.Subquery(
            this=_literals(columns, rows), alias=exp.TableAlias(this=exp.to_identifier(_name_of(table)))
        )
        for part in ("joins", "pivots", "sample"):
            query.set(part, table.args.get(part))
        table.replace(query)
    return str(tree.sql(dialect="bigquery")) if views else statement


def _view_of(table: exp.Table) -> str:
    """Return the name of the view that a table is, in capitals; "" for another table."""
    name = str(table.name).upper()
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else name if name == _TABLES and table.db else ""


def _name_of(table: exp.Table) -> str:
    alias = str(table.alias)
    return alias if alias and "." not in alias else _view_of(table)


def _read(view: str, project: str, dataset: str, ctx: Untyped) -> tuple[dict[str, str], _Rows]:
    """Return a view's columns, with their types, and its rows."""
    from bqemulator.domain.errors import NotFoundError, UnsupportedFeatureError

    # `project.INFORMATION_SCHEMA.TABLES` is that of a project, in every dataset.
    everywhere = not dataset or dataset == project or dataset.lower().startswith("region-")
    if not everywhere and ctx.catalog.get_dataset(project, dataset) is None:
        raise NotFoundError(f"Not found: Dataset {project}:{dataset} was not found")
    datasets = [each.dataset_id for each in ctx.catalog.list_datasets(project)] if everywhere else [dataset]
    if view in jobs.VIEWS:
        return jobs.COLUMNS, list(jobs.rows(project, dataset, ctx))
    if view == "SCHEMATA":
        return _emulated(view, project, "", ctx)
    if view in _EMULATED:
        read = [_emulated(view, project, each, ctx) for each in datasets] or [_emulated(view, project, "", ctx)]
        return read[0][0], [row for _, rows in read for row in rows]
    if view not in _OWN:
        raise UnsupportedFeatureError(f"INFORMATION_SCHEMA.{view} is not offered by the local cloud.")
    columns, rows_of = _OWN[view]
    return columns, [row for each in datasets for row in rows_of(project, each, ctx)]


def _emulated(view: str, project: str, dataset: str, ctx: Untyped) -> tuple[dict[str, str], _Rows]:
    from bqemulator.sql.rewriter.information_schema import expand_information_schema

    path = f"`{project}`.`{dataset}`.{_PREFIX}{view}" if dataset else f"{_PREFIX}{view}"
    made = expand_information_schema(f"SELECT * FROM {path}", project, ctx.catalog)  # noqa: S608 - of the catalog
    result = ctx.engine.execute(made)
    columns = {name: _kind_of(name) for name, *_ in result.description}
    return columns, result.fetchall()


def _kind_of(column: str) -> str:
    if column in _WHOLE:
        return "INT64"
    if column in _TRUTHS:
        return "BOOL"
    return "TIMESTAMP" if column in _TIMES or column.endswith("_time") else "STRING"


def _tables(project: str, dataset: str, ctx: Untyped) -> Iterator[Sequence[Any]]:
    for table in ctx.catalog.list_tables(project, dataset):
        made, changed = (int(each.timestamp() * 1000) for each in (table.creation_time, table.last_modified_time))
        rows, size = _size_of(table, ctx)
        yield project, dataset, table.table_id, made, changed, rows, size, _KINDS.get(table.table_type, 1)


def _storage(project: str, dataset: str, ctx: Untyped) -> Iterator[Sequence[Any]]:
    for table in ctx.catalog.list_tables(project, dataset):
        if table.table_type == "TABLE":
            rows, size = _size_of(table, ctx)
            yield project, dataset, table.table_id, table.creation_time, rows, 0, size, size, 0, False, "BASE TABLE"


def _size_of(table: Untyped, ctx: Untyped) -> tuple[int, int]:
    """Return the rows and bytes of a table; none of a view."""
    if table.table_type != "TABLE":
        return 0, 0
    where = table.project_id, table.dataset_id, table.table_id
    stored = f"{quoted(f'{where[0]}__{where[1]}')}.{quoted(where[2])}"
    counted = ctx.engine.execute(sql_statement("SELECT count(*) FROM {table}", table=stored)).fetchone()
    return int(counted[0]), table_bytes(ctx.engine, *where, None)


def _field_paths(project: str, dataset: str, ctx: Untyped) -> Iterator[Sequence[Any]]:
    from bqemulator.sql.rewriter.information_schema import _render_data_type

    def paths(field: Untyped, before: str = "") -> Iterator[Sequence[Any]]:
        path = f"{before}{field.name}"
        yield path, _render_data_type(field), field.description
        for inner in field.fields or ():
            yield from paths(inner, f"{path}.")

    for table in ctx.catalog.list_tables(project, dataset):
        for field in table.schema_.fields if table.schema_ else ():
            for path, kind, description in paths(field):
                yield project, dataset, table.table_id, field.name, path, kind, description, "NULL", None, None


_OWN: dict[str, tuple[dict[str, str], Callable[[str, str, Untyped], Iterator[Sequence[Any]]]]] = {
    _TABLES: (
        {
            "project_id": "STRING", "dataset_id": "STRING", "table_id": "STRING", "creation_time": "INT64",
            "last_modified_time": "INT64", "row_count": "INT64", "size_bytes": "INT64", "type": "INT64",
        },
        _tables,
    ),
    "TABLE_STORAGE": (
        {
            "project_id": "STRING", "table_schema": "STRING", "table_name": "STRING", "creation_time": "TIMESTAMP",
            "total_rows": "INT64", "total_partitions": "INT64", "total_logical_bytes": "INT64",
            "active_logical_bytes": "INT64", "long_term_logical_bytes": "INT64", "deleted": "BOOL",
            "table_type": "STRING",
        },
        _storage,
    ),
    "COLUMN_FIELD_PATHS": (
        {
            **_TABLE, "column_name": "STRING", "field_path": "STRING", "data_type": "STRING", "description": "STRING",
            "collation_name": "STRING", "rounding_mode": "STRING", "policy_tags": "ARRAY<STRING>",
        },
        _field_paths,
    ),
}  # fmt: skip
"""Views whose rows are made here: their columns, and what reads them."""


def _literals(columns: dict[str, str], rows: _Rows) -> exp.Query:
    """Return a query that has the rows.

    They are one JSON literal, a list of a list for each row: as expressions, hundreds of rows took minutes.
    """
    selected = [_column(number, name, kind) for number, (name, kind) in enumerate(columns.items())]
    query = exp.select(*selected, dialect="bigquery").from_(
        f"UNNEST(JSON_QUERY_ARRAY('[]')) AS {_ROW}", dialect="bigquery"
    )
    listed = json.dumps([[_plain(value) for value in row] for row in rows], separators=(",", ":"))
    query.find(exp.Unnest).find(exp.Literal).replace(exp.Literal.string(listed))
    return query


def _column(number: int, name: str, kind: str) -> str:
    path = f"$[{number}]"
    if kind.startswith("ARRAY<STRUCT<"):
        made = _struct("localcloud_element", "$", kind.removeprefix("ARRAY<").removesuffix(">"))
        elements = f"UNNEST(JSON_QUERY_ARRAY({_ROW}, '{path}')) AS localcloud_element"
        return sql_statement("ARRAY(SELECT {made} FROM {elements}) AS {name}", made=made, elements=elements, name=name)
    if kind.startswith("STRUCT<"):
        first = kind.removeprefix("STRUCT<").partition(" ")[0]  # has a value wherever the struct has one
        return f"IF(JSON_VALUE({_ROW}, '{path}.{first}') IS NULL, NULL, {_struct(_ROW, path, kind)}) AS `{name}`"
    value = "NULL" if kind.startswith("ARRAY") else f"JSON_VALUE({_ROW}, '{path}')"
    return f"CAST({value} AS {kind}) AS `{name}`"


def _struct(value: str, path: str, kind: str) -> str:
    """Return a struct of texts, from an object of JSON."""
    fields = (field.split() for field in kind.removeprefix("STRUCT<").removesuffix(">").split(", "))
    made = (f"CAST(JSON_VALUE({value}, '{path}.{field}') AS {of}) AS {field}" for field, of in fields)
    return f"STRUCT({', '.join(made)})"


def _plain(value: Untyped) -> Untyped:
    """Return a value that JSON has."""
    if not isinstance(value, dt.datetime):
        return value
    moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
