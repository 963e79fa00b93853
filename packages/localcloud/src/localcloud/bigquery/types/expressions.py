"""What is known of expressions of GoogleSQL before they run: whether one can be NaN or a NUMERIC, or is no number.

In: a statement's tree, and the columns of the tables it reads. Out: answers that may say "it can" too often, for what a
macro then asks of DuckDB when the statement is bound, and never too seldom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.untyped import Untyped

_COLUMNS, _TABLES = "localcloud_columns", "localcloud_tables"
_FLOATS = ("double", "float")
_NUMBERS = (*_FLOATS, "bigint", "int", "decimal", "bigdecimal", "int128", "smallint", "tinyint")
_DUCKDB_FLOATS = ("DOUBLE", "FLOAT", "REAL")
_DUCKDB_NUMBERS = (*_DUCKDB_FLOATS, "BIGINT", "INTEGER", "HUGEINT", "DECIMAL", "NUMERIC")
_COUNTS = (exp.Count, exp.CountIf, exp.ApproxDistinct, exp.Length, exp.Boolean, exp.Null, exp.Interval, exp.Predicate)
_TEXTS = (exp.Concat, exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.GroupConcat, exp.JSONFormat, exp.TimeToStr)
_TIMES = (
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.Date, exp.Timestamp, exp.Datetime, exp.DateAdd,
    exp.DateSub, exp.TimestampAdd, exp.TimestampSub, exp.DatetimeAdd, exp.DatetimeSub, exp.DateTrunc,
    exp.TimestampTrunc, exp.StrToDate, exp.StrToTime,
)  # fmt: skip


def remember_columns(tree: exp.Expression, tables: Mapping[str, Mapping[str, str]]) -> None:
    """Tell a statement's tree the columns of the tables that it reads.

    Args:
        tree: of one statement.
        tables: by a table's last name its columns' DuckDB types; those that are not known are left out.
    """
    made = {cte.alias for cte in tree.find_all(exp.CTE)}
    read = {table.name for table in tree.find_all(exp.Table) if table.db or table.name not in made}
    columns: dict[str, set[str]] = {}
    for table in tables.values():
        for name, kind in table.items():
            columns.setdefault(name.lower(), set()).add(kind.upper())
    tree.meta[_COLUMNS] = columns if read <= set(tables) and not _renames(tree) else None
    tree.meta[_TABLES] = {name: columns for name, columns in tables.items() if name not in made}


def _renames(tree: exp.Expression) -> bool:
    """Return whether a statement has columns whose names come from elsewhere than tables and aliases."""
    return tree.find(exp.Pivot) is not None or any(
        cte.args["alias"].args.get("columns") for cte in tree.find_all(exp.CTE)
    )


class Expressions:
    """The expressions of one statement."""

    def __init__(self, tree: exp.Expression) -> None:
        """Read which names the statement gives."""
        self._columns: dict[str, set[str]] | None = tree.meta.get(_COLUMNS)
        self._tables: Mapping[str, Mapping[str, str]] = tree.meta.get(_TABLES) or {}
        self._named: dict[str, list[exp.Expression]] = {}
        for alias in tree.find_all(exp.Alias):
            self._named.setdefault(alias.alias.lower(), []).append(alias.this)
        for field in tree.find_all(exp.PropertyEQ):
            self._named.setdefault(field.this.name.lower(), []).append(field.expression)
        self._sources = {
            source.alias_or_name.lower() for source in tree.find_all(exp.Table, exp.Subquery, exp.CTE) if source
        }
        elements = {
            column.name.lower()
            for unnest in tree.find_all(exp.Unnest)
            if unnest.args.get("alias") is not None
            for column in unnest.args["alias"].args.get("columns") or []
        }
        self._elements = elements
        self._asked: set[str] = set()

    def columns_of(self, query: exp.Query) -> list[exp.Expression]:
        """Return the columns that a query gives, with those of tables in the place of `*`; up to one not known."""
        found: list[exp.Expression] = []
        for column in query.selects:
            if not column.is_star:
                found.append(column)
            elif (starred := self._starred(column, query)) is not None:
                found += starred
            else:
                break
        return found

    def _starred(self, star: exp.Expression, query: exp.Query) -> list[exp.Expression] | None:
        """Return the columns of a `*` over tables that are known; None of another."""
        inner = query.unnest()
        joins = inner.args.get("joins") or []
        plain = star.this if isinstance(star, exp.Column) else star
        if inner.args.get("from_") is None or any(plain.args.values()) or any(join.args.get("using") for join in joins):
            return None
        sources = [inner.args["from_"].this, *(join.this for join in joins)]
        if isinstance(star, exp.Column):
            sources = [each for each in sources if each.alias_or_name == star.table]
        if not all(isinstance(each, exp.Table) and each.name in self._tables for each in sources):
            return None
        return [
            exp.column(name, table=source.alias_or_name, quoted=True)
            for source in sources
            for name in self._tables[source.name]
        ]

    def can_be_nan(self, node: exp.Expression | None) -> bool:
        """Return whether an expression can be NaN, as far as is known."""
        match node:
            case None | exp.Literal() | exp.DataType() | exp.Identifier() | exp.Var():
                return False
            case exp.Column():
                return self._column_is(node, _DUCKDB_FLOATS, self.can_be_nan)
            case exp.Cast():
                return node.to.is_type(*_FLOATS) and not _is_finite(node.this) and not self._is_whole(node.this)
            case exp.Window():
                return self.can_be_nan(node.this)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return any(self.can_be_nan(each) for each in _values_of(node))
            case exp.Star() | exp.Dot() | exp.Parameter() | exp.Placeholder():
                return True
            case exp.Anonymous() if node.name.upper() == "IEEE_DIVIDE":
                return True
        if isinstance(node, (*_COUNTS, *_TEXTS, *_TIMES)):
            return False
        return any(map(self.can_be_nan, _children(node)))

    def can_be_decimal(self, node: exp.Expression | None) -> bool:
        """Return whether an expression can be a NUMERIC or BIGNUMERIC, as far as is known."""
        match node:
            case None | exp.Literal() | exp.DataType() | exp.Identifier() | exp.Var() | exp.Null() | exp.Boolean():
                return False
            case exp.Column():
                return self._column_is(node, ("DECIMAL", "NUMERIC"), self.can_be_decimal)
            case exp.Cast():
                return bool(node.to.is_type("decimal", "bigdecimal"))
            case exp.Window():
                return self.can_be_decimal(node.this)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return any(self.can_be_decimal(each) for each in _values_of(node))
            case exp.Star() | exp.Dot() | exp.Parameter() | exp.Placeholder():
                return True
        if isinstance(node, (*_COUNTS, *_TEXTS, *_TIMES)):
            return False
        return any(map(self.can_be_decimal, _children(node)))

    def is_no_number(self, node: exp.Expression) -> bool:
        """Return whether an expression is surely no number, but a text, a time, a truth."""
        node = node.unnest()
        if isinstance(node, exp.Literal):
            return bool(node.is_string)
        if isinstance(node, exp.Cast):
            return not node.to.is_type(*_NUMBERS)
        if isinstance(node, exp.Column):
            kinds = self._kinds_of(node)
            return bool(kinds) and not any(kind.startswith(_DUCKDB_NUMBERS) for kind in kinds or ())
        return isinstance(node, (exp.Boolean, exp.Predicate, *_TEXTS, *_TIMES))

    def _is_whole(self, node: exp.Expression) -> bool:
        """Return whether an expression is surely a number that is no float."""
        if isinstance(node, exp.Column):
            kinds = self._kinds_of(node)
            return bool(kinds) and all(kind.startswith(_DUCKDB_NUMBERS[3:]) for kind in kinds or ())
        return isinstance(node, exp.Count | exp.CountIf | exp.Length)

    def _kinds_of(self, column: exp.Column) -> set[str] | None:
        """Return the DuckDB types of the tables' columns of a name; None when it may be something else."""
        name = column.name.lower()
        is_field = bool(column.table) and column.table.lower() not in self._sources
        if self._columns is None or is_field or name in self._named or name in self._elements:
            return None
        return self._columns.get(name)

    def _column_is(
        self, column: exp.Column, kinds: tuple[str, ...], can_be: Callable[[exp.Expression | None], bool]
    ) -> bool:
        """Return whether a column can be of some of DuckDB's types; `can_be` asks it of an expression."""
        name = column.name.lower()
        if self._columns is None or name in self._elements:
            return True
        if column.table and column.table.lower() not in self._sources:  # the field of a struct
            return True
        stored, named = self._columns.get(name, set()), self._named.get(name, [])
        if not stored and not named:
            return True
        if any(kind.startswith(kinds) for kind in stored):
            return True
        if name in self._asked:
            return False
        self._asked.add(name)
        try:
            return any(map(can_be, named))
        finally:
            self._asked.discard(name)


def is_assignment(node: exp.Expression) -> bool:
    """Return whether what looks like a comparison gives a column or a variable its value: `UPDATE t SET x = y`."""
    return isinstance(node.parent, exp.Update | exp.Set | exp.SetItem)


def _children(node: exp.Expression) -> Iterable[exp.Expression]:
    return (each for each in node.iter_expressions() if isinstance(each, exp.Expression))


def _values_of(query: exp.Expression) -> list[Untyped]:
    """Return the expressions that a query gives."""
    if isinstance(query, exp.SetOperation):
        return [*_values_of(query.left), *_values_of(query.right)]
    return list(query.unnest().selects) if isinstance(query.unnest(), exp.Query) else [query]


def _is_finite(node: exp.Expression) -> bool:
    """Return whether an expression is written as a finite number, or is NULL."""
    if isinstance(node, exp.Null):
        return True
    try:
        return isinstance(node, exp.Literal | exp.Neg) and math.isfinite(float(node.name or node.this.name))
    except ValueError:
        return False
