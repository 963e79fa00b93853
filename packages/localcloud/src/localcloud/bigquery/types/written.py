"""The query that a statement is about, and what it writes into which column.

In: a statement's tree, and the columns of the tables that it names. Out: queries whose expressions can be given types:
the statement's own, or, of a change, one that selects the values that it writes and the conditions that it asks.
`written_by(query)` says which of a query's columns goes where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

Columns = Mapping[str, str]
"""Types as GoogleSQL writes them, by the columns' names."""
ColumnsOf = Callable[[exp.Table], Columns | None]
"""Gives the columns of a table; None: they are not known."""

_WRITTEN = "localcloud_written"
_Value = tuple["Written", exp.Expression]


@dataclass(frozen=True, kw_only=True)
class Written:
    """Where a value goes.

    Attributes:
        column: The column, or the field of one, as the statement names it.
        kind: Its type, as GoogleSQL writes it.
        refusal: What the service says where a value does not fit: of `{kind}`, the value's type.
    """

    column: str
    kind: str
    refusal: str


def queries_of(tree: exp.Expression, columns_of: ColumnsOf) -> list[exp.Expression]:
    """Return copies of the queries of a statement; none where it has none, or its columns are not known."""
    match tree:
        case exp.Query():
            return [tree.copy()]
        case exp.Create() if isinstance(tree.expression, exp.Query):
            return [tree.expression.copy()]
        case exp.Insert():
            return _of_insert(tree, columns_of)
        case exp.Update() if isinstance(tree.this, exp.Table):
            return _of_update(tree, columns_of)
        case exp.Merge() if isinstance(tree.this, exp.Table):
            return _of_merge(tree, columns_of)
        case exp.Delete() if tree.args.get("where"):
            table = tree.this or next(iter(tree.args.get("tables") or []), None)
            if isinstance(table, exp.Table):
                return [exp.select("1").from_(table.copy()).where(tree.args["where"].this.copy())]
    return []


def assignments_of(tree: exp.Expression, columns_of: ColumnsOf) -> list[tuple[exp.DataType, exp.Expression]]:
    """Return the values that a statement writes, the nodes themselves, and the types of what they are written to."""
    table = tree.this.this if isinstance(tree, exp.Insert) and isinstance(tree.this, exp.Schema) else tree.this
    columns = columns_of(table) if isinstance(table, exp.Table) else None
    changes = [each.args["then"] for each in tree.args["whens"].expressions] if isinstance(tree, exp.Merge) else [tree]
    found: list[tuple[list[str], exp.Expression]] = []
    for change in changes if columns else ():
        if isinstance(change, exp.Insert):
            names = _names(change.this, columns or {})
            found += [
                ([name], value) for row in _rows_of(change.expression) for name, value in zip(names, row, strict=False)
            ]
        elif isinstance(change, exp.Update):
            items = [each for each in change.expressions if isinstance(each, exp.EQ)]
            found += [(without_table(path_of(each.this), table, columns or {}), each.expression) for each in items]
    kinds = ((field_of(columns or {}, path), value) for path, value in found)
    return [(kind, value) for kind, value in kinds if kind is not None]


def _rows_of(source: exp.Expression | None) -> Iterator[Sequence[exp.Expression]]:
    """Yield the values of each row that is written out: VALUES, of a MERGE one row, and the columns of queries."""
    match source:
        case exp.Values():
            for row in source.expressions:
                yield row.expressions if isinstance(row, exp.Tuple) else [row]
        case exp.Tuple():
            yield source.expressions
        case exp.Subquery():
            yield from _rows_of(source.this)
        case exp.SetOperation():
            for side in (source.this, source.expression):
                yield from _rows_of(side)
        case exp.Select() if not source.is_star:
            yield [each.unalias() for each in source.selects]


def written_by(query: exp.Expression) -> Sequence[Written | None]:
    """Return where each column of a query goes; None for one that goes nowhere."""
    found: Sequence[Written | None] = query.meta.get(_WRITTEN, ())
    return found


def is_default(value: exp.Expression, columns: Columns) -> bool:
    """Return whether a value is the word DEFAULT, which bqemulator writes in backticks where a script has variables."""
    if isinstance(value, exp.Column):
        is_column = bool(value.this.args.get("quoted")) and "default" in {name.lower() for name in columns}
        return not value.table and value.name.upper() == "DEFAULT" and not is_column
    return isinstance(value, exp.Var) and value.name.upper() == "DEFAULT"


def path_of(column: exp.Expression) -> list[str]:
    """Return the names of `a.b.c`, in their order."""
    if isinstance(column, exp.Dot):
        return [*path_of(column.this), column.expression.name]
    return [part.name for part in column.parts] if isinstance(column, exp.Column) else [column.name]


def field_of(columns: Columns, path: Sequence[str]) -> exp.DataType | None:
    """Return the type of a column or of a field in one; None where there is none of that name."""
    known = {name.lower(): kind for name, kind in columns.items()}
    if not path or path[0].lower() not in known:
        return None
    kind = exp.DataType.build(known[path[0].lower()], dialect="bigquery")
    for name in path[1:]:
        kind = dict(fields_of(kind)).get(name.lower())
        if kind is None:
            return None
    return kind


def fields_of(kind: exp.DataType) -> Iterator[tuple[str, exp.DataType]]:
    """Yield the fields of a struct's type, by their names in small letters."""
    if kind.is_type("struct"):
        for field in kind.expressions:
            if isinstance(field, exp.ColumnDef):
                yield field.name.lower(), field.args["kind"]


def without_table(path: list[str], table: exp.Table, columns: Columns) -> list[str]:
    """Return a column's path without the name of its table before it."""
    is_column = path[0].lower() in {name.lower() for name in columns}
    return path[1:] if len(path) > 1 and path[0].lower() == table.alias_or_name.lower() and not is_column else path


def _query(
    values: Sequence[_Value], conditions: Sequence[exp.Expression], sources: Sequence[exp.Expression]
) -> exp.Select:
    """Return what selects values and conditions from all sources."""
    query = exp.select(*[value.copy() for _, value in values], *[each.copy() for each in conditions] or ["1"])
    for number, source in enumerate(sources):
        joins = source.args.get("joins") or []
        plain = source.copy()
        plain.set("joins", None)
        if number == 0:
            query = query.from_(plain)
        else:
            query.append("joins", exp.Join(this=plain, kind="CROSS"))
        for join in joins:
            query.append("joins", join.copy())
    query.meta[_WRITTEN] = tuple(written for written, _ in values)
    return query


def _of_update(tree: exp.Update, columns_of: ColumnsOf) -> list[exp.Expression]:
    columns = columns_of(tree.this)
    if not columns:
        return []
    values = list(_assigned(tree.expressions, tree.this, columns))
    from_ = tree.args.get("from_")
    query = _query(values, [], [tree.this, *([from_.this] if from_ else [])])
    where = tree.args.get("where")
    return [query.where(where.this.copy(), copy=False) if where else query]


def _of_merge(tree: exp.Merge, columns_of: ColumnsOf) -> list[exp.Expression]:
    target, source = tree.this, tree.args["using"]
    columns = columns_of(target)
    if not columns:
        return []
    both: list[_Value] = []
    alone: list[_Value] = []
    conditions = [tree.args["on"]] if tree.args.get("on") else []
    new_conditions: list[exp.Expression] = []
    for when in tree.args["whens"].expressions:
        then, condition = when.args["then"], when.args.get("condition")
        if isinstance(then, exp.Insert):
            alone += _inserted(then.this, [then.expression], columns)
            new_conditions += [condition] if condition else []
        else:
            conditions += [condition] if condition else []
            both += _assigned(then.expressions, target, columns) if isinstance(then, exp.Update) else []
    return [_query(both, conditions, [target, source]), _query(alone, new_conditions, [source])]


def _of_insert(tree: exp.Insert, columns_of: ColumnsOf) -> list[exp.Expression]:
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    columns = columns_of(table) if isinstance(table, exp.Table) else None
    source = tree.expression
    if isinstance(source, exp.Query):
        source = source.copy()
        if columns and isinstance(source, exp.Select) and not any(value.is_star for value in source.selects):
            refusal = "Query column {number} has type {{kind}} which cannot be inserted into column {column}"
            source.meta[_WRITTEN] = tuple(
                _into(name, columns, refusal.format(number=number, column=name))
                for number, name in enumerate(_names(tree.this, columns), 1)
            )
        return [source]
    if not columns or not isinstance(source, exp.Values):
        return []
    return [_query(list(_inserted(tree.this, source.expressions, columns)), [], [])]


def _inserted(place: exp.Expression, rows: Sequence[exp.Expression], columns: Columns) -> Iterator[_Value]:
    """Yield the values of rows; of those that are written there, one of each kind is enough."""
    seen: set[tuple[str, str]] = set()
    places = [
        _into(name, columns, f"Value has type {{kind}} which cannot be inserted into column {name}")
        for name in _names(place, columns)
    ]
    for row in rows:
        values = row.expressions if isinstance(row, exp.Tuple) else [row.unnest()] if row else []
        for written, value in zip(places, values, strict=False):
            if written is None or is_default(value, columns):
                continue
            kind = _kind_of_literal(value)
            if kind and (written.column, kind) in seen:
                continue
            seen.add((written.column, kind))
            yield written, value


def _kind_of_literal(value: exp.Expression) -> str:
    """Return what decides the type of a value that is written there, as `1.5` or `DATE '2020-01-01'`; "" of others."""
    if isinstance(value, exp.Cast) and isinstance(value.this, exp.Literal):
        return str(value.to.sql("bigquery"))
    if not isinstance(value, exp.Literal):
        return ""
    return "text" if value.is_string else ("whole" if value.name.isdigit() else "number")


def _names(place: exp.Expression, columns: Columns) -> list[str]:
    """Return the columns that an INSERT names, or all."""
    if isinstance(place, exp.Schema | exp.Tuple):
        return [each.name for each in place.expressions]
    return [] if isinstance(place, exp.Var) else list(columns)  # INSERT ROW of a MERGE names none


def _assigned(items: Sequence[exp.Expression], table: exp.Table, columns: Columns) -> Iterator[_Value]:
    for item in items:
        if not isinstance(item, exp.EQ) or is_default(item.expression, columns):
            continue
        path = without_table(path_of(item.this), table, columns)
        name = ".".join(path)
        kind = field_of(columns, path)
        if kind is not None:
            refusal = f"Value of type {{kind}} cannot be assigned to {name}"
            yield _written(name, kind, refusal), item.expression


def _into(name: str, columns: Columns, refusal: str) -> Written | None:
    kind = field_of(columns, [name])
    return None if kind is None else _written(name, kind, refusal)


def _written(name: str, kind: exp.DataType, refusal: str) -> Written:
    text = str(kind.sql("bigquery"))
    text = text if "<" in text else text.partition("(")[0]
    return Written(column=name, kind=text, refusal=f"{refusal}, which has type {text.replace('`', '')}")
