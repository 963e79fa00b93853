"""Patches tables by wildcards (`events_*`): they are looked for by their letters, in texts too, and read by position.

| read | without it |
|---|---|
| shards whose columns are in another order, or of which one has more | values of other columns, or an error |
| `WHERE _TABLE_SUFFIX = 'a' OR n = 2` | rows of the table `a` alone |
| `SELECT *` beside `_TABLE_SUFFIX` | a column more |
| `` `d.events_*` t ``, a comma between two of them | refused |
| shards with row access policies | all rows |
| shards of which one is a view | its rows |

A wildcard stands for one character or more. A query over tables by it has the columns of the newest of them; what
another one has not is NULL there.
Source: cloud.google.com/bigquery/docs/querying-wildcard-tables. Columns of the same name and other types, and views and
functions over wildcards, are refused by name.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.trees import only_tree
from localcloud.bigquery.types.typed import type_of_field
from localcloud.refusals import NotOfferedError
from localcloud.untyped import Untyped

SUFFIX = "_TABLE_SUFFIX"
_SIGN = "*"
_VIEWS = ("VIEW", "MATERIALIZED_VIEW")


def apply(executor: Untyped) -> None:
    """Put the tables into statements before they are looked at, also those of scripts."""
    from bqemulator.domain.errors import UnsupportedFeatureError
    from bqemulator.scripting import interpreter
    from bqemulator.sql import inner_query

    inner_query.expand_wildcard_tables = lambda statement, *_: statement
    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_expanded(bq_sql: str, **kwargs: Untyped) -> str:
        try:
            filled = expanded(bq_sql, kwargs["project_id"], kwargs["ctx"].catalog)
        except NotOfferedError as error:
            raise UnsupportedFeatureError(str(error)) from error
        return str(await translate(filled, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_expanded


def expanded(statement: str, project: str, catalog: Untyped) -> str:
    """Return a statement with a query of all its tables in the place of each wildcard.

    Raises:
        InvalidQueryError: There is no such table, a view is among them, or the wildcard stands where none may.
        NotOfferedError: What is asked is not offered of them.
    """
    if _SIGN not in statement:
        return statement
    tree = only_tree(statement)
    wildcards = [] if tree is None else [table for table in tree.find_all(exp.Table) if _SIGN in table.name]
    if tree is None or not wildcards:
        return statement
    _require_offered(tree, wildcards)
    names_suffix = any(column.name.upper() == SUFFIX for column in tree.find_all(exp.Column))
    for number, table in enumerate(wildcards):
        query = _query_of(table, project, catalog, names_suffix=names_suffix)
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(f"localcloud_wildcard_{number}"))
        subquery = exp.Subquery(this=query, alias=alias.copy())
        for part in ("joins", "pivots", "sample", "laterals"):
            subquery.set(part, table.args.get(part))
        select = table.find_ancestor(exp.Select)
        table.replace(subquery)
        if names_suffix and isinstance(select, exp.Select):
            _leave_suffix_out(select, str(subquery.alias))
    return str(tree.sql(dialect="bigquery"))


def _require_offered(tree: exp.Expression, wildcards: Sequence[exp.Table]) -> None:
    from bqemulator.domain.errors import InvalidQueryError

    if isinstance(tree, exp.Create) and tree.kind != "TABLE":
        raise NotOfferedError(f"The local cloud has no {str(tree.kind).lower()} over tables by a wildcard")
    for table in wildcards:
        identifier = table.this
        if not isinstance(identifier, exp.Identifier) or not identifier.quoted:
            raise InvalidQueryError('Syntax error: Unexpected "*": a table by a wildcard is written in backticks')
        if not isinstance(table.parent, exp.From | exp.Join):
            raise InvalidQueryError(f"Invalid table name {table.name}: a table by a wildcard can only be read")
        if table.name.index(_SIGN) != len(table.name) - 1:
            raise InvalidQueryError(f"Invalid table name {table.name}: a wildcard stands at its end alone")
        if not table.db:
            raise NotOfferedError("The local cloud has no tables by a wildcard without their dataset's name")
        if table.args.get("version") is not None:
            raise NotOfferedError("The local cloud has no FOR SYSTEM_TIME AS OF of tables by a wildcard")


def _query_of(table: exp.Table, project: str, catalog: Untyped, *, names_suffix: bool) -> exp.Expression:
    """Return the rows of all tables that a wildcard finds, with the newest one's columns."""
    prefix, owner = table.name.removesuffix(_SIGN), table.catalog or project
    found = _tables_of(owner, table.db, prefix, catalog)
    newest = max(found, key=lambda each: (each.creation_time, each.table_id))
    parts = []
    for each in found:
        columns = [_column(field, each, newest) for field in newest.schema_.fields]
        if names_suffix:
            suffix = exp.Literal.string(each.table_id.removeprefix(prefix))
            columns.append(exp.alias_(suffix, SUFFIX))
        path = exp.table_(each.table_id, db=table.db, catalog=table.catalog or None, quoted=True)
        parts.append(exp.select(*columns).from_(path))
    query: exp.Expression = parts[0]
    for part in parts[1:]:
        query = exp.Union(this=query, expression=part, distinct=False)
    return query


def _tables_of(project: str, dataset: str, prefix: str, catalog: Untyped) -> list[Untyped]:
    from bqemulator.domain.errors import InvalidQueryError, NotFoundError

    if catalog.get_dataset(project, dataset) is None:
        raise NotFoundError(f"Not found: Dataset {project}:{dataset} was not found")
    tables = sorted(catalog.list_tables(project, dataset), key=lambda each: str(each.table_id))
    found = [each for each in tables if each.table_id.startswith(prefix) and each.table_id != prefix]
    if views := [each.table_id for each in found if each.table_type in _VIEWS]:
        names = ", ".join(f"{project}:{dataset}.{name}" for name in views)
        raise InvalidQueryError(f"Views cannot be queried through prefix. Matched views are: {names}")
    if not found:
        raise InvalidQueryError(f"{project}:{dataset}.{prefix}* does not match any table.")
    return found


def _column(field: Untyped, table: Untyped, newest: Untyped) -> exp.Expression:
    """Return a table's column as the newest one has it; NULL where it has none."""
    own = next((each for each in table.schema_.fields if each.name.lower() == field.name.lower()), None)
    wanted = type_of_field(field)
    if own is None:
        return exp.alias_(exp.cast(exp.Null(), wanted, dialect="bigquery"), field.name, quoted=True)
    if type_of_field(own) != wanted:
        raise NotOfferedError(
            f"The local cloud has no tables by a wildcard whose columns have other types: {field.name} is"
            f" {type_of_field(own)} in {table.table_id} and {wanted} in {newest.table_id}, which is the newest"
        )
    return exp.alias_(exp.column(own.name, quoted=True), field.name, quoted=True)


def _leave_suffix_out(select: exp.Select, source: str) -> None:
    """Have `*` and `source.*` of a query not mean the suffix, which is named or not there.

    Raises:
        NotOfferedError: The row as a whole is named, of which it would be a field.
    """
    for star in select.find_all(exp.Star):
        column = star.parent if isinstance(star.parent, exp.Column) else None
        if (column or star).parent is not select or (column is not None and column.table.lower() != source.lower()):
            continue
        left_out = list(star.args.get("except_") or [])
        if not any(each.name.upper() == SUFFIX for each in left_out):
            star.set("except_", [*left_out, exp.column(SUFFIX)])
    if any(not each.table and each.name.lower() == source.lower() for each in select.find_all(exp.Column)):
        raise NotOfferedError(f"The local cloud has no row of {source} as a whole beside {SUFFIX}: name its columns")
