"""Patches what UPDATE and MERGE assign to: `SET t.x = …`, `SET struct.field = …` and `SET x = DEFAULT` are errors.

In: a statement in GoogleSQL, the columns of its table. Out: the statement with plain columns before each `=`: a field's
column gets a struct of the new value and of its other fields. DEFAULT is a call until nothing reads the statement any
more but DuckDB. Parameters get names, for their order may change.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.signatures import columns_of_table
from localcloud.bigquery.patches.sql.text_escapes import with_characters
from localcloud.bigquery.types.parameters import number_positions, position_name
from localcloud.bigquery.types.trees import only_tree
from localcloud.bigquery.types.written import (
    Columns,
    ColumnsOf,
    field_of,
    fields_of,
    is_default,
    path_of,
    without_table,
)
from localcloud.refusals import NotOfferedError
from localcloud.untyped import Untyped

_CHANGES = re.compile(r"\b(?:UPDATE|MERGE)\b", re.IGNORECASE)
_DEFAULT = "LOCALCLOUD_DEFAULT"
_DEFAULT_CALL = re.compile(rf"\b{_DEFAULT}\(\)", re.IGNORECASE)
_Fields = dict[str, "exp.Expression | _Fields"]
"""New values by the fields' names in small letters; of a field that is a struct those of its own."""


class FieldError(ValueError):
    """The table has no such field to assign to; the text is the service's."""


def apply(executor: Untyped) -> None:
    """Rewrite each statement before it is translated, also those of scripts."""
    from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError
    from bqemulator.scripting import interpreter

    translate, run = executor.rewrite_and_translate_statement, executor._run_single_sql

    @functools.wraps(translate)
    async def translate_assigned(bq_sql: str, **kwargs: Untyped) -> str:
        try:
            statement = rewrite(bq_sql, lambda table: columns_of_table(table, kwargs["project_id"], kwargs["ctx"]))
        except FieldError as error:
            raise InvalidQueryError(str(error)) from error
        except NotOfferedError as error:
            raise UnsupportedFeatureError(str(error)) from error
        return str(await translate(statement, **kwargs))

    @functools.wraps(run)
    async def run_named(
        project_id: str, bq_sql: str, query_params: Untyped, *args: Untyped, **kwargs: Untyped
    ) -> Untyped:
        if query_params and not query_params[0].get("name") and _CHANGES.search(bq_sql):
            bq_sql = number_positions(bq_sql)
            query_params = [{**each, "name": position_name(number)} for number, each in enumerate(query_params)]
        return await run(project_id, bq_sql, query_params, *args, **kwargs)

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_assigned
        module.rewrite_table_refs = _with_default(module.rewrite_table_refs)
    executor._run_single_sql = run_named


def _with_default(write: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(write)
    def written(*args: Untyped, **kwargs: Untyped) -> str:
        return _DEFAULT_CALL.sub("DEFAULT", write(*args, **kwargs))

    return written


def rewrite(statement: str, columns_of: ColumnsOf) -> str:
    """Return a statement that assigns to plain columns; the same where it did, or its table is not known.

    Raises:
        FieldError: It assigns to a field that its table does not have.
        NotOfferedError: Values without names would change their places.
    """
    if not _CHANGES.search(statement):
        return statement
    tree = only_tree(with_characters(statement))
    if not isinstance(tree, exp.Update | exp.Merge) or not isinstance(tree.this, exp.Table):
        return statement
    columns = columns_of(tree.this)
    updates = [tree] if isinstance(tree, exp.Update) else [each.args["then"] for each in tree.args["whens"].expressions]
    updates = [each for each in updates if isinstance(each, exp.Update)]
    if not columns or all(_is_plain(each, columns) for each in updates):
        return statement
    for update in updates:
        before = _placeholders(update.expressions)
        update.set("expressions", _plain_items(update.expressions, tree.this, columns))
        if before != _placeholders(update.expressions):
            raise NotOfferedError("The local cloud has no SET of a struct's fields around other columns with `?`")
    return str(tree.sql(dialect="bigquery"))


def _placeholders(items: Sequence[exp.Expression]) -> list[int]:
    return [id(node) for item in items for node in item.dfs() if isinstance(node, exp.Placeholder)]


def _is_plain(update: exp.Update, columns: Columns) -> bool:
    return all(
        isinstance(item, exp.EQ) and len(path_of(item.this)) == 1 and not is_default(item.expression, columns)
        for item in update.expressions
    )


def _plain_items(items: list[exp.Expression], table: exp.Table, columns: Columns) -> list[exp.Expression]:
    new: dict[str, exp.Expression | _Fields] = {}
    repeated: list[exp.Expression] = []  # DuckDB says that they are
    for item in items:
        path = without_table(path_of(item.this), table, columns)
        value = exp.Anonymous(this=_DEFAULT) if is_default(item.expression, columns) else item.expression
        name = path[0]
        known = next((each for each in new if each.lower() == name.lower()), name)
        if len(path) > 1:
            _check_path(path, columns)
            fields = new.setdefault(known, {})
            _add_field(fields, path, value)
        elif known in new:
            repeated.append(exp.EQ(this=_column(name), expression=value))
        else:
            new[name] = value
    return [*(_item(name, value, table, columns) for name, value in new.items()), *repeated]


def _add_field(fields: exp.Expression | _Fields, path: list[str], value: exp.Expression) -> None:
    for name in path[1:-1]:
        fields = fields.setdefault(name.lower(), {}) if isinstance(fields, dict) else fields
    if not isinstance(fields, dict):
        raise FieldError(f"Update item {'.'.join(path)} overlaps with another one")
    if path[-1].lower() in fields:
        raise FieldError(f"Update item {'.'.join(path)} assigned more than once")
    fields[path[-1].lower()] = value


def _item(name: str, value: exp.Expression | _Fields, table: exp.Table, columns: Columns) -> exp.EQ:
    if isinstance(value, dict):
        of = exp.to_identifier(table.alias_or_name, quoted=True)
        stored = exp.column(exp.to_identifier(name, quoted=True), table=of)
        value = _changed(stored, field_of(columns, [name]), value)
    return exp.EQ(this=_column(name), expression=value)


def _check_path(path: list[str], columns: Columns) -> None:
    for end in range(1, len(path)):
        kind = field_of(columns, path[:end])
        if kind is None:
            raise FieldError(f"Unrecognized name: {path[0]}")
        text = str(kind.sql("bigquery")).replace("`", "")
        if not kind.is_type("struct"):
            raise FieldError(f"Cannot access field {path[end]} on a value with type {text}")
        if field_of(columns, path[: end + 1]) is None:
            raise FieldError(f"Field name {path[end]} does not exist in {text}")


def _changed(stored: exp.Expression, kind: exp.DataType, new: Mapping[str, exp.Expression | _Fields]) -> exp.Struct:
    """Return a struct with some fields' new values; the others are those that are stored."""
    fields = []
    for field in kind.expressions:
        own = exp.Dot(this=stored.copy(), expression=exp.to_identifier(field.name, quoted=True))
        value = new.get(field.name.lower(), own)
        if isinstance(value, dict):
            value = _changed(own, dict(fields_of(kind))[field.name.lower()], value)
        fields.append(exp.PropertyEQ(this=exp.to_identifier(field.name, quoted=True), expression=value))
    return exp.Struct(expressions=fields)


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
