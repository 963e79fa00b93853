"""Patches names that a script's variable and a column have both: the variable's value stands in the column's place.

| in a script with `DECLARE n INT64 DEFAULT 100` | without it |
|---|---|
| `SELECT n FROM t`, of a table with a column `n` | 100 in each row |
| `UPDATE t SET n = 7 WHERE n = 5` | refused: a number is assigned to |
| `SELECT x AS n … GROUP BY n ORDER BY n` | refused |
| `SELECT n.a FROM t AS n` | a field of the variable, where it is a struct |

A column goes before a variable of its name: cloud.google.com/bigquery/docs/reference/standard-sql/procedural-language.
Of what has columns that are not known, elements of some arrays and INFORMATION_SCHEMA, the variable is meant.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from sqlglot import errors, exp, parse_one  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches import temporary_tables
from localcloud.bigquery.types.columns import quoted
from localcloud.bigquery.types.trees import only_tree
from localcloud.untyped import Untyped

Columns = Mapping[str, str]
"""DuckDB's types of columns by their names in small letters; "": not known."""
_CHANGES = (exp.Update, exp.Delete, exp.Merge)
_BEHIND = frozenset({"order", "group", "having", "qualify"})
"""Clauses that see the names of a query's result."""


def apply() -> None:
    """Leave columns in statements before variables are looked for in them."""
    from bqemulator.scripting import interpreter

    initialize = interpreter.ScriptInterpreter.__init__

    @functools.wraps(initialize)
    def initialize_known(self: Untyped, *args: Untyped, **kwargs: Untyped) -> None:
        initialize(self, *args, **kwargs)
        self._frames.tables = Tables(self._ctx.engine, self._project_id)

    def rewrite(statement: str, frames: Untyped) -> tuple[str, list[Untyped]]:
        visible, tree = frames.all_visible(), only_tree(statement)
        if not visible or tree is None:
            return statement, []
        values: list[Untyped] = []
        # bqemulator takes the last but one of three names for a variable's: none of `a.b.c` is.
        columns = [each for each in tree.find_all(exp.Column) if len(each.parts) <= len(("variable", "field"))]
        named = [each for each in columns if each.parts[0].name in visible]
        meant = [each for each in named if not is_column(each, frames.tables)]
        changed = [interpreter._rewrite_one_column(each, visible, values) for each in meant]
        return (str(tree.sql(dialect="bigquery")), values) if any(changed) else (statement, [])

    interpreter.ScriptInterpreter.__init__ = initialize_known
    interpreter._rewrite_vars_to_params = rewrite


class Tables:
    """Columns of stored tables.

    Args:
        engine: bqemulator's.
        project: Whose tables are meant where no project is named.
    """

    def __init__(self, engine: Untyped, project: str) -> None:
        self._engine, self._project = engine, project

    def read(self, table: exp.Table) -> Columns:
        """Return a table's columns; none where it is not known."""
        temporary = None if table.db else temporary_tables.stored_name(table.name)
        schema = "" if temporary else f"{table.catalog or self._project}__{table.db}"
        found = self._engine.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? AND ? IN ('', schema_name)",
            [temporary or table.name, schema],
        ).fetchall()
        return {str(column).lower(): str(kind) for column, kind in found}


def is_column(column: exp.Column, tables: Tables) -> bool:
    """Return whether a name is that of a column, or of a source whose column follows it, where it stands."""
    below, is_apart = column, False
    for above in _ancestors(column):
        if isinstance(above, exp.CTE):
            return False
        if isinstance(above, exp.Select) and not is_apart and _is_seen(column, above, below, tables):
            return True
        if isinstance(above, _CHANGES) and _is_changed(column, above, tables):
            return True
        if isinstance(above, exp.Select):
            is_apart = False
        if isinstance(above, exp.Subquery) and isinstance(above.parent, exp.From | exp.Join):
            is_apart = True  # a query in FROM sees nothing of the query around it
        below = above
    return False


def _ancestors(node: exp.Expression) -> Iterator[exp.Expression]:
    while node.parent is not None:
        node = node.parent
        yield node


def _is_seen(column: exp.Column, select: exp.Select, below: exp.Expression, tables: Tables) -> bool:
    sources, name = list(_sources_before(column, select, below)), column.parts[0].name.lower()
    if below.arg_key in _BEHIND and any(each.alias_or_name.lower() == name for each in select.expressions):
        return True
    return _is_of(column, sources, tables)


def _is_of(column: exp.Column, sources: list[exp.Expression], tables: Tables) -> bool:
    """Return whether a name is that of a source before its column, or of a column, which may be a struct."""
    name = column.parts[0].name.lower()
    is_source = bool(column.table) and any(_name_of(source) == name for source in sources)
    return is_source or any(name in _columns_of(source, tables, sources) for source in sources)


def _sources_before(column: exp.Column, select: exp.Select, below: exp.Expression) -> Iterator[exp.Expression]:
    """Yield what a query reads, as far as a name in it sees that: in FROM what stands before it."""
    first = select.args.get("from_")
    if first is None or below is first:
        return
    yield first.this
    for join in select.args.get("joins") or []:
        if join is below and any(each is join.this for each in (column, *_ancestors(column))):
            return
        yield join.this
        if join is below:
            return


def _is_changed(column: exp.Column, change: exp.Expression, tables: Tables) -> bool:
    around = column.parent
    is_target = isinstance(around, exp.EQ) and around.this is column and around.arg_key == "expressions"
    sources = [change.this, change.args.get("using")]
    if isinstance(change, exp.Update) and (read := change.args.get("from_")) is not None:
        sources += [read.this, *(join.this for join in read.this.args.get("joins") or [])]
    known = [source for source in sources if isinstance(source, exp.Expression)]
    return is_target or _is_of(column, known, tables)


def _name_of(source: exp.Expression) -> str:
    if isinstance(source, exp.Unnest):
        return next(iter(_of_unnest(source)), "")
    return str(source.alias_or_name).lower()


def _columns_of(source: exp.Expression, tables: Tables, beside: list[exp.Expression]) -> Columns:
    alias = source.args.get("alias")
    if isinstance(source, exp.Unnest):
        return {**_of_unnest(source), **_fields(source, tables, beside)}
    if alias is not None and alias.columns:
        return dict.fromkeys((each.name.lower() for each in alias.columns), "")
    if isinstance(source, exp.Subquery):
        return _result(source.this, tables)
    if not isinstance(source, exp.Table):
        return {}
    made = _cte_of(source)
    return tables.read(source) if made is None else _result(made.this, tables)


def _of_unnest(source: exp.Unnest) -> Columns:
    alias, offset = source.args.get("alias"), source.args.get("offset")
    names = [] if alias is None else [each.name for each in (*alias.columns, alias) if each.name]
    names += [offset.name] if isinstance(offset, exp.Identifier) else ["offset"] if offset else []
    return dict.fromkeys(map(str.lower, names), "")


def _fields(source: exp.Unnest, tables: Tables, beside: list[exp.Expression]) -> Columns:
    """Return the fields of an array's elements, as far as they are known."""
    array = source.expressions[0] if source.expressions else None
    return _fields_of_type(_kind_of(array, tables, [other for other in beside if other is not source]))


def _kind_of(value: exp.Expression | None, tables: Tables, sources: list[exp.Expression]) -> str:
    """Return the type of an array of structs, of which the names of the fields are right; "": it is not known."""
    value = value.this if isinstance(value, exp.Alias) else value
    if isinstance(value, exp.Column):
        named = (source for source in sources if value.table.lower() in ("", _name_of(source)))
        return next(filter(None, (_columns_of(each, tables, []).get(value.name.lower()) for each in named)), "")
    first = value.this if isinstance(value, exp.ArrayAgg) else None
    if isinstance(value, exp.Array) and value.expressions:
        first = value.expressions[0]
    if not isinstance(first, exp.Struct):
        return ""
    fields = ", ".join(f"{quoted(_field_name(each))} BIGINT" for each in first.expressions)
    return f"STRUCT({fields})[]"


def _field_name(field: exp.Expression) -> str:
    return str((field.this if isinstance(field, exp.PropertyEQ) else field).alias_or_name).lower() or "_"


def _fields_of_type(kind: str) -> Columns:
    try:
        element = parse_one(kind, read="duckdb", into=exp.DataType)
    except errors.SqlglotError:
        return {}
    struct = next(iter(element.expressions), None) if element.is_type(exp.DataType.Type.ARRAY) else None
    if not isinstance(struct, exp.DataType) or not struct.is_type(exp.DataType.Type.STRUCT):
        return {}
    return {str(each.name).lower(): each.args["kind"].sql(dialect="duckdb") for each in struct.expressions}


def _cte_of(table: exp.Table) -> exp.CTE | None:
    """Return the query of WITH that a table's name means; None: it means a stored table."""
    if table.db:
        return None
    for above in _ancestors(table):
        for cte in above.args["with_"].expressions if above.args.get("with_") else []:
            is_itself = any(each is cte for each in _ancestors(table))
            if str(cte.alias).lower() == table.name.lower() and not is_itself:
                return cte
    return None


def _result(query: exp.Expression, tables: Tables) -> Columns:
    """Return the columns of a query's result."""
    if isinstance(query, exp.SetOperation | exp.Subquery):
        return _result(query.this, tables)
    if not isinstance(query, exp.Select):
        return {}
    joins = query.args.get("joins") or []
    sources = [query.args["from_"].this, *(join.this for join in joins)] if query.args.get("from_") else []
    found: dict[str, str] = {}
    for each in query.expressions:
        star = each if isinstance(each, exp.Star) else each.this if isinstance(each, exp.Column) else None
        if isinstance(star, exp.Star):
            of = each.table.lower() if isinstance(each, exp.Column) else ""
            left_out = {str(name.name).lower() for name in star.args.get("except_") or []}
            read = [_columns_of(source, tables, sources) for source in sources if of in ("", _name_of(source))]
            found |= {name: kind for columns in read for name, kind in columns.items() if name not in left_out}
        else:
            found[str(each.alias_or_name).lower()] = _kind_of(each, tables, sources)
    return found
