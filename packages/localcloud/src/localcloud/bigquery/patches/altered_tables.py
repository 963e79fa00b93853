"""Patches ALTER TABLE: the columns that it adds, drops and renames are in the table, and not in tables.get.

A column keeps its description, also under a new name, and has the one that it is added with. A table with row access
policies could not be altered at all: its name was replaced by a query.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.untyped import Untyped


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What a statement says of a table's columns.

    Attributes:
        where: Project, dataset and name of the table.
        columns: Those that it adds.
        old_names: By the new name of a column in small letters.
    """

    where: tuple[str, str, str]
    columns: list[exp.ColumnDef]
    old_names: Mapping[str, str]


def apply(routes: Untyped) -> None:
    """Tell a table's columns anew once a statement has altered them."""
    from bqemulator.catalog import ddl_sync
    from bqemulator.sql.rewriter import row_access_filter

    original, collect = routes.execute_query_job, row_access_filter._collect_ddl_targets

    def targets(tree: exp.Expression) -> set[int]:
        altered = {id(node.this) for node in tree.find_all(exp.Alter) if isinstance(node.this, exp.Table)}
        return altered | set(collect(tree))

    row_access_filter._collect_ddl_targets = targets

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        for change in _changes(bq_sql, project_id):
            table = ctx.catalog.get_table(*change.where)
            if table is not None and table.table_type == "TABLE":
                now = ddl_sync._introspect_schema(*change.where, ctx)
                before = {field.name.lower(): field for field in table.schema_.fields}
                fields = [_told(field, before.get(_old_name(field, change))) for field in now.fields]
                added = [column for column in change.columns if column.name.lower() not in before]
                schema = now.model_copy(update={"fields": described(fields, added)})
                ctx.catalog.update_table(table.model_copy(update={"schema_": schema}))
        return job

    routes.execute_query_job = execute


def _old_name(field: Untyped, change: _Change) -> str:
    return change.old_names.get(field.name.lower(), field.name.lower())


def _told(field: Untyped, before: Untyped) -> Untyped:
    """Return a column as it is now, with the descriptions that it and its fields had."""
    if before is None:
        return field
    below = {each.name.lower(): each for each in before.fields or ()}
    new = {"fields": tuple(_told(each, below.get(each.name.lower())) for each in field.fields)} if field.fields else {}
    return field.model_copy(update={"description": before.description, **new})


def described(fields: Iterable[Untyped], columns: Iterable[exp.Expression]) -> tuple[Untyped, ...]:
    """Return a schema's fields with the descriptions that a statement gives, those of structs too."""
    written = {column.name.lower(): column for column in columns if isinstance(column, exp.ColumnDef)}
    found = []
    for field in fields:
        column = written.get(field.name.lower())
        if column is not None:
            options = (each for constraint in column.args.get("constraints") or [] for each in _options_of(constraint))
            given = {option.name.lower(): option.args["value"] for option in options}
            kind = column.args.get("kind")
            below = kind.expressions if kind is not None else []
            below = below[0].expressions if below and isinstance(below[0], exp.DataType) else below  # of an array
            new = {"fields": described(field.fields, below)} if field.fields else {}
            if isinstance(given.get("description"), exp.Literal):
                new["description"] = given["description"].this
            field = field.model_copy(update=new)
        found.append(field)
    return tuple(found)


def _options_of(constraint: exp.ColumnConstraint) -> list[exp.Property]:
    kind = constraint.args.get("kind")
    return list(kind.expressions) if isinstance(kind, exp.Properties) else []


def _changes(sql: str, project: str) -> Iterator[_Change]:
    """Yield what a statement, or each of a script, alters; a table without a dataset is a temporary one."""
    if "alter" not in sql.lower():
        return
    try:
        trees = sqlglot.parse(sql, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return
    for tree in trees:
        if isinstance(tree, exp.Alter) and tree.args.get("kind") == "TABLE" and tree.this.db:
            actions = tree.args["actions"]
            if any(isinstance(action, exp.AlterRename) for action in actions):  # it has another name now
                continue
            renames = [action for action in actions if isinstance(action, exp.RenameColumn)]
            yield _Change(
                where=(tree.this.catalog or project, tree.this.db, tree.this.name),
                columns=[action for action in actions if isinstance(action, exp.ColumnDef)],
                old_names={action.args["to"].name.lower(): action.this.name.lower() for action in renames},
            )
