"""Patches ALTER TABLE … SET OPTIONS, of a table and of a column: it is answered, and nothing is other than before.

In: a statement, or a script. Out: the table's description, friendly name, labels, time of expiration and what holds of
its partitions, and a column's description, as it says; 501 with the name of an option that is not offered, and nothing
is changed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.expirations import Expirations, evaluate_time
from localcloud.bigquery.types.trees import trees_of
from localcloud.untyped import Untyped

_COLUMN = re.compile(
    r"(?P<table>TABLE\s.+?)\sALTER\s+COLUMN\s+(IF\s+EXISTS\s+)?(?P<column>`[^`]+`|\w+)\s+(?P<set>SET\s+OPTIONS\b.*)",
    re.IGNORECASE | re.DOTALL,
)
"""Of a statement that sqlglot does not read, without its first word."""
_EXPIRES = "expiration_timestamp"
_PARTITIONS_EXPIRE = "partition_expiration_days"
_OF_TABLES = {"description", "friendly_name", "labels", _EXPIRES, _PARTITIONS_EXPIRE}
_DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What a statement sets: of a table, or of its column where there is one."""

    where: tuple[str, str, str]
    options: Mapping[str, Untyped]
    column: str
    if_exists: bool


def apply(routes: Untyped, expirations: Expirations) -> None:
    """Set options once a statement has run that says them."""
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        statements = _parsed(bq_sql)
        changes = [change for tree in statements if (change := _change_of(tree, project_id))]
        is_alone = len(statements) == 1 and bool(changes)
        for change in changes:
            _require_offered(change)
        if is_alone:
            _require_there(changes[0], ctx)

        def run(id_: str, sql: str) -> Untyped:
            return original(project_id, id_, sql, params, ctx, **kwargs)

        # bqemulator takes one statement without brackets inside for nothing to do, and cannot read others.
        nothing = f"ALTER TABLE `{'.'.join(changes[0].where)}` SET OPTIONS ()" if is_alone else bq_sql
        job = await run(job_id, nothing)
        for change in changes:
            table = ctx.catalog.get_table(*change.where)
            if table is None:
                continue
            ctx.catalog.update_table(_described_column(table, change) if change.column else _described(table, change))
            if _EXPIRES in change.options:
                value = change.options[_EXPIRES]
                never = isinstance(value, exp.Null)
                time = None if never else await evaluate_time(routes, run, job_id, value.sql(dialect="bigquery"))
                expirations.set(".".join(change.where), time)
        return job

    routes.execute_query_job = execute


def _parsed(sql: str) -> list[exp.Expression]:
    """Return the statements of a script where one of them may set options; else none."""
    if not re.search(r"\bSET\s+OPTIONS\b", sql, re.IGNORECASE):
        return []
    return trees_of(sql)


def _change_of(tree: exp.Expression, project: str) -> _Change | None:
    """Return what a statement sets; None for another one."""
    column = ""
    if isinstance(tree, exp.Command) and (found := _COLUMN.fullmatch(str(tree.expression).strip())):
        column = found["column"].strip("`")
        (tree,) = _parsed(f"{tree.name} {found['table']} {found['set']}") or [tree]
    if not isinstance(tree, exp.Alter) or tree.args.get("kind") != "TABLE" or not tree.this.db:
        return None
    if not any(isinstance(action, exp.AlterSet) for action in tree.args["actions"]):
        return None
    return _Change(
        where=(tree.this.catalog or project, tree.this.db, tree.this.name),
        options={each.name.lower(): each.args["value"] for each in tree.find_all(exp.Property)},
        column=column,
        if_exists=bool(tree.args.get("exists")),
    )


def _require_offered(change: _Change) -> None:
    """Refuse an option, or a value of one, that is not offered.

    Raises:
        UnsupportedFeatureError: Its name.
    """
    from bqemulator.domain.errors import UnsupportedFeatureError

    offered = {"description"} if change.column else _OF_TABLES
    for option, value in change.options.items():
        if option not in offered or not (option == _EXPIRES or _is_plain(value)):
            what = "ALTER COLUMN" if change.column else "ALTER TABLE"
            raise UnsupportedFeatureError(f"OPTIONS({option}) of {what} is not offered by the local cloud.")


def _require_there(change: _Change, context: Untyped) -> None:
    """Refuse a change of what is not there; of a script's statements it is not known before.

    Raises:
        NotFoundError: There is no such table.
        InvalidQueryError: No such column, or no partitions.
    """
    from bqemulator.domain.errors import InvalidQueryError, NotFoundError

    table = context.catalog.get_table(*change.where)
    project, dataset, name = change.where
    if table is None:
        if change.if_exists:
            return
        raise NotFoundError(f"Not found: Table {project}:{dataset}.{name}")
    if change.column and change.column.lower() not in {field.name.lower() for field in table.schema_.fields}:
        raise InvalidQueryError(f"Column not found: {change.column}")
    if not table.time_partitioning and _PARTITIONS_EXPIRE in change.options:
        raise InvalidQueryError("Cannot set options of partitions for a table that is not partitioned by time")


def _is_plain(value: Untyped) -> bool:
    """Whether a value is written out: a text, number, truth or NULL, or an array of pairs of texts."""
    if isinstance(value, exp.Array):
        pairs = [pair.expressions for pair in value.expressions]
        return all(len(pair) == 2 and all(isinstance(each, exp.Literal) for each in pair) for pair in pairs)
    return isinstance(value, exp.Literal | exp.Null | exp.Boolean)


def _described(table: Untyped, change: _Change) -> Untyped:
    """Return a table as the options say."""
    new: dict[str, Any] = {}
    for option, value in change.options.items():
        plain = None if isinstance(value, exp.Null) else value
        if option == "labels":
            pairs = [pair.expressions for pair in plain.expressions] if plain else []
            new["labels"] = {name.this: text.this for name, text in pairs}
        elif option == _PARTITIONS_EXPIRE:
            expires = {"expiration_ms": plain and int(float(plain.this) * _DAY_MS)}
            new["time_partitioning"] = table.time_partitioning.model_copy(update=expires)
        elif option != _EXPIRES:
            new[option] = plain and plain.this
    return table.model_copy(update=new)


def _described_column(table: Untyped, change: _Change) -> Untyped:
    value = change.options.get("description")
    text = None if value is None or isinstance(value, exp.Null) else value.this
    fields = tuple(
        field.model_copy(update={"description": text}) if field.name.lower() == change.column.lower() else field
        for field in table.schema_.fields
    )
    return table.model_copy(update={"schema_": table.schema_.model_copy(update={"fields": fields})})
