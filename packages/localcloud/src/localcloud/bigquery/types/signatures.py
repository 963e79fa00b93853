"""What BigQuery refuses for the types of its values, where DuckDB would find some answer.

In: a query in which expressions have their types (`typed`). Out: what the service says of the first expression that has
no meaning, in its words, or nothing: where a type is not known, nothing is said.

Sources: conversion rules, operators, and functions of dates, datetimes and timestamps in the reference,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.calls import arguments_of, kind_or_struct, operators, wrong_call, wrong_operator
from localcloud.bigquery.types.parameters import is_parameter
from localcloud.bigquery.types.typed import NUMBERS, TIMES, can_stand_for, is_place, is_text, kind_of
from localcloud.bigquery.types.windows import wrong_offset, wrong_window

_EQUALITIES = {exp.EQ: "=", exp.NEQ: "!="}
_ORDERS = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_ORDER_NAMES = {"<": "Less than", "<=": "Less than", ">": "Greater than", ">=": "Greater than"}
_LESS_THAN_DAY = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_OF_DATES = {
    exp.DateDiff: "DATE_DIFF", exp.DateAdd: "DATE_ADD", exp.DateSub: "DATE_SUB", exp.DateTrunc: "DATE_TRUNC",
}  # fmt: skip
_NUMBERS_AND_TEXT = {*NUMBERS, "STRING"}
_CASTS = {
    "INT64": {*_NUMBERS_AND_TEXT, "BOOL"},
    **dict.fromkeys(("FLOAT64", "NUMERIC", "BIGNUMERIC"), _NUMBERS_AND_TEXT),
    "BOOL": {"INT64", "STRING"},
    "STRING": {*_NUMBERS_AND_TEXT, *TIMES, "BOOL", "BYTES", "INTERVAL", "RANGE"},
    "BYTES": {"STRING"},
    "DATE": {"STRING", "DATETIME", "TIMESTAMP"},
    "DATETIME": {"STRING", *TIMES},
    "TIMESTAMP": {"STRING", *TIMES},
    "TIME": {"STRING"},
    "INTERVAL": {"STRING"},
    "RANGE": {"STRING"},
    "STRUCT": set[str](),
    "JSON": set[str](),
    "GEOGRAPHY": set[str](),
}
"""What a value may be cast to, beside its own type: conversion_rules#casting."""
_NOT_GROUPED = ("JSON", "GEOGRAPHY")


def refusal(query: exp.Expression) -> str | None:
    """Return what the service says of a query that it does not take; None: nothing is known against it."""
    for node in query.walk():
        look = _LOOKS.get(type(node))
        if look is not None and (said := look(node)):
            return said
        if isinstance(node, exp.Func) and (said := wrong_call(node)):
            return said
    return None


def not_offered(query: exp.Expression) -> str | None:
    """Return the name of what the service takes and DuckDB answers by another type; None: there is nothing of that."""
    for node in query.find_all(exp.Sub, exp.DateAdd, exp.DateSub):
        kinds = kind_of(node.this), kind_of(node.expression)
        if isinstance(node, exp.Sub) and kinds == ("DATE", "DATE"):
            return "DATE - DATE, which is an INTERVAL: write DATE_DIFF"
        if not isinstance(node, exp.Sub) and kinds[0] in {"TIMESTAMP", "DATETIME"}:
            return f"{_OF_DATES[type(node)]} of a {kinds[0]}: write {kinds[0]}_{_OF_DATES[type(node)][5:]}"
    for node in query.find_all(exp.GroupConcat):
        if "BYTES" in map(kind_of, arguments_of(node)):
            return "STRING_AGG of BYTES"
    return None


def comparable(left: exp.Expression | None, right: exp.Expression | None) -> bool:
    """Return whether two expressions can be compared, or stand in one column; what is not known can be."""
    one, other = kind_of(left), kind_of(right)
    if not one or not other or one == other or {one, other} <= NUMBERS or {one, other} == {"DATE", "DATETIME"}:
        return True
    for kind, text in ((one, right), (other, left)):
        if kind in {*TIMES, "BYTES", "INTERVAL"} and can_stand_for(text, kind):
            return True
    # Arrays and structs have a common type where their parts have one.
    return one.startswith(("ARRAY", "STRUCT", "RANGE")) and one.partition("<")[0] == other.partition("<")[0]


def _no_signature(what: str, nodes: Iterable[exp.Expression | None]) -> str:
    kinds = ", ".join(kind_of(node) or "?" for node in nodes)
    return f"No matching signature for {what} for argument types: {kinds}"


def _compared(sign: str, left: exp.Expression, right: exp.Expression) -> str | None:
    kinds = [kind_or_struct(left), kind_or_struct(right)]
    is_order = sign in _ORDER_NAMES
    name = _ORDER_NAMES.get(sign, "Equality")
    without = ("ARRAY<", "JSON", "GEOGRAPHY", "STRUCT") if is_order else ("ARRAY<", "JSON", "GEOGRAPHY")
    for kind in kinds:
        if kind.startswith(without):
            return f"{name} is not defined for arguments of type {kind}"
    return None if comparable(left, right) else _no_signature(f"operator {sign}", (left, right))


def _comparison(node: exp.Expression) -> str | None:
    if isinstance(node.parent, exp.Update | exp.Set | exp.SetItem):  # gives a value to a column or a variable
        return None
    sign = {**_EQUALITIES, **_ORDERS}[type(node)]
    return _compared(sign, node.this, node.expression)


def _between(node: exp.Between) -> str | None:
    for end in (node.args["low"], node.args["high"]):
        if not comparable(node.this, end):
            return _no_signature("operator BETWEEN", (node.this, node.args["low"], node.args["high"]))
    return None


def _in(node: exp.In) -> str | None:
    for value in node.expressions:
        if said := _compared("=", node.this, value):
            if said.startswith("Equality"):
                return said
            return _no_signature("operator IN", (node.this, value))
    if said := _in_array(node):
        return said
    query = node.args.get("query")
    select = query.unnest() if query is not None else None
    if isinstance(select, exp.Select) and select.selects and not comparable(node.this, select.selects[0].unalias()):
        return _no_signature("operator IN", (node.this, select.selects[0].unalias()))
    return None


def _in_array(node: exp.In) -> str | None:
    unnest = node.args.get("unnest")
    values = unnest.expressions[0] if isinstance(unnest, exp.Unnest) and unnest.expressions else None
    kinds = kind_of(node.this), kind_of(values).removeprefix("ARRAY<").removesuffix(">")
    if "" in kinds or "<" in kinds[1] or kinds[0] == kinds[1] or set(kinds) <= NUMBERS or kinds[0] in TIMES:
        return None
    return _no_signature("operator IN UNNEST", (node.this, values))


def _case(node: exp.Case) -> str | None:
    branches = node.args["ifs"]
    if node.this is not None:
        for branch in branches:
            if not comparable(node.this, branch.this):
                return _no_signature("operator CASE", (node.this, branch.this))
    values = [*(branch.args["true"] for branch in branches), node.args.get("default")]
    return _one_type("operator CASE", values)


def _if(node: exp.If) -> str | None:
    if isinstance(node.parent, exp.Case):
        return None if node.parent.this is not None else _condition(node.this, "CASE")
    values = [node.args["true"], node.args.get("false")]
    return _condition(node.this, "IF") or _one_type("function IF", values)


def _coalesce(node: exp.Coalesce) -> str | None:
    return _one_type("function COALESCE", [node.this, *node.expressions])


def _greatest(node: exp.Expression) -> str | None:
    name = "GREATEST" if isinstance(node, exp.Greatest) else "LEAST"
    return _one_type(f"function {name}", [node.this, *node.expressions])


def _nullif(node: exp.Nullif) -> str | None:
    pair = (node.this, node.expression)
    return None if comparable(*pair) else _no_signature("function NULLIF", pair)


def _array(node: exp.Array) -> str | None:
    inner = next((kind for kind in map(kind_of, node.expressions) if kind.startswith("ARRAY<")), "")
    if inner:
        return f"Cannot construct array with element type {inner} because nested arrays are not supported"
    if clash := _clash(node.expressions):
        return f"Array elements of types {{{', '.join(map(kind_of, clash))}}} do not have a common supertype"
    return None


def _one_type(what: str, nodes: Iterable[exp.Expression | None]) -> str | None:
    clash = _clash(nodes)
    return _no_signature(what, clash) if clash else None


def _clash(nodes: Iterable[exp.Expression | None]) -> tuple[exp.Expression, exp.Expression] | None:
    """Return two expressions that cannot stand in one column; None: there are none."""
    each = {
        (kind_of(node), is_text(node), can_stand_for(node, "DATE")): node for node in nodes if node is not None
    }  # one of a kind is enough
    return next((pair for pair in combinations(each.values(), 2) if not comparable(*pair)), None)


def _condition(node: exp.Expression | None, of: str) -> str | None:
    kind = kind_of(node)
    if kind in {"", "BOOL"}:
        return None
    return f"{of} should return type BOOL, but returns {kind}"


def _where(node: exp.Where) -> str | None:
    return _condition(node.this, "WHERE clause")


def _having(node: exp.Having) -> str | None:
    return _condition(node.this, "HAVING clause")


def _qualify(node: exp.Qualify) -> str | None:
    return _condition(node.this, "QUALIFY clause")


def _join(node: exp.Join) -> str | None:
    return _condition(node.args.get("on"), "JOIN ON clause")


def _logic(node: exp.Expression) -> str | None:
    name = {exp.And: "AND", exp.Or: "OR", exp.Not: "NOT"}[type(node)]
    sides = [node.this] if isinstance(node, exp.Not) else [node.this, node.expression]
    if all(kind_of(side) in {"", "BOOL"} for side in sides):
        return None
    return _no_signature(f"operator {name}", sides)


def _union(node: exp.SetOperation) -> str | None:
    name = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
    name += " DISTINCT" if node.args.get("distinct") else " ALL"
    left, right = node.left.unnest(), node.right.unnest()
    if not isinstance(left, exp.Select) or not isinstance(right, exp.Select) or _stars(left) or _stars(right):
        return None
    for number, pair in enumerate(zip(left.selects, right.selects, strict=False), 1):
        if not comparable(*(value.unalias() for value in pair)):
            kinds = ", ".join(kind_of(value.unalias()) for value in pair)
            return f"Column {number} in {name} has incompatible types: {kinds}"
    return None


def _stars(select: exp.Select) -> bool:
    return any(value.is_star for value in select.selects)


def _of_dates(node: exp.Expression) -> str | None:
    """Parts of a day, of a DATE: it has none."""
    unit = node.args.get("unit")
    part = unit.name.upper() if isinstance(unit, exp.Var | exp.Literal) else ""
    dates = [node.this, node.expression] if isinstance(node, exp.DateDiff) else [node.this]
    if part in _LESS_THAN_DAY and all(kind_of(each) == "DATE" for each in dates):
        return f"{_OF_DATES[type(node)]} does not support the {part} date part"
    return None


def _extract(node: exp.Extract) -> str | None:
    part = node.this.name.upper()
    if part in _LESS_THAN_DAY and kind_of(node.expression) == "DATE":
        return f"EXTRACT from DATE does not support the {part} date part"
    return None


def _timestamp_diff(node: exp.TimestampDiff) -> str | None:
    unit = node.args.get("unit")
    part = unit.name.upper() if isinstance(unit, exp.Var | exp.Literal) else ""
    if part in {"WEEK", "ISOWEEK", "MONTH", "QUARTER", "YEAR", "ISOYEAR"} and kind_of(node.this) == "TIMESTAMP":
        return f"TIMESTAMP_DIFF does not support the {part} date part"
    return None


def _long_parts(node: exp.Expression) -> str | None:
    """Return what is said of months that are added to a TIMESTAMP; a DATETIME has them."""
    unit = node.args.get("unit")
    part = unit.name.upper() if isinstance(unit, exp.Var | exp.Literal) else ""
    if part not in {"WEEK", "MONTH", "QUARTER", "YEAR"} or kind_of(node.this) != "TIMESTAMP":
        return None
    name = "TIMESTAMP_ADD" if isinstance(node, exp.TimestampAdd) else "TIMESTAMP_SUB"
    return f"{name} does not support the {part} date part when the argument is TIMESTAMP type"


def _whole_numbers(node: exp.Expression) -> str | None:
    sides = (node.this, node.expression)
    name = "MOD" if isinstance(node, exp.Mod) else "DIV"
    return _no_signature(f"function {name}", sides) if "FLOAT64" in map(kind_of, sides) else None


def _ordered(node: exp.Ordered) -> str | None:
    kind = kind_or_struct(node.this)
    if kind.startswith(("ARRAY<", "STRUCT", "JSON", "GEOGRAPHY")):
        return f"ORDER BY does not support expressions of type {kind.partition('<')[0]}"
    return None


def _cast(node: exp.Cast) -> str | None:
    kind, to = kind_or_struct(node.this), str(node.to.sql("bigquery"))
    if not kind or is_parameter(node.this.unnest()) or is_place(node):
        return None
    if kind.startswith("ARRAY<"):
        # `ARRAY<FLOAT64>[1]` and `DECLARE x ARRAY<FLOAT64> DEFAULT [1]` have the trees of casts.
        is_cast = not to.startswith("ARRAY<") or (to != kind and isinstance(node.this, exp.Column))
        return f"Invalid cast from {kind} to {to}" if is_cast and "(" not in to else None
    to = to.partition("(")[0]
    into = _CASTS.get(kind.partition("<")[0])
    if into is None or to.partition("<")[0] in {*into, kind.partition("<")[0]}:
        return None
    return f"Invalid cast from {kind} to {to}"


def _rows(node: exp.Column) -> str | None:
    """Return what is said of DuckDB's number of a row: a column that no table has."""
    return f"Unrecognized name: {node.name}" if node.name.lower() == "rowid" and not node.table else None


def _is(node: exp.Is) -> str | None:
    if isinstance(node.expression, exp.Boolean) and kind_of(node.this) not in {"", "BOOL"}:
        return _no_signature(f"operator IS {node.expression.sql('bigquery')}", [node.this])
    return None


def _element(node: exp.Bracket) -> str | None:
    kind = kind_of(node.this)
    index = kind_of(node.expressions[0]) if len(node.expressions) == 1 else ""
    if kind.startswith("ARRAY<") and index not in {"", "INT64"}:
        return f"Array position in [] must be coercible to INT64 type, but has type {index}"
    if kind in {*NUMBERS, *TIMES, "STRING", "BYTES", "BOOL"}:
        return f"Subscript access using [INT64] is not supported on values of type {kind}"
    return None


def _select(node: exp.Select) -> str | None:
    return _aliases(node) or _distinct(node)


def _distinct(node: exp.Select) -> str | None:
    """Columns by which rows are sorted that are not there any more when they have become distinct."""
    if node.args.get("distinct") is None:
        return None
    for value in node.selects:
        if kind_of(value.unalias()).startswith(_NOT_GROUPED):
            return f"Column {value.alias_or_name} of type {kind_of(value.unalias())} cannot be used in SELECT DISTINCT"
    order = node.args.get("order")
    shown = {value.alias for value in node.selects} | {value.unalias().sql() for value in node.selects}
    for each in order.expressions if order is not None else ():
        if isinstance(each.this, exp.Column) and not {each.this.sql(), each.this.name} & shown:
            name = each.this.name
            return f"ORDER BY clause expression references column {name} which is not visible after SELECT DISTINCT"
    return None


def _group(node: exp.Group) -> str | None:
    kinds = (kind_of(each) for each in node.expressions)
    kind = next((kind for kind in kinds if kind.startswith(_NOT_GROUPED)), None)
    return f"Grouping by expressions of type {kind} is not allowed" if kind else None


def _count(node: exp.Count) -> str | None:
    values = node.this.expressions if isinstance(node.this, exp.Distinct) else ()
    kind = next((kind for kind in map(kind_of, values) if kind.startswith(_NOT_GROUPED)), None)
    return f"Aggregate functions with DISTINCT cannot be used with arguments of type {kind}" if kind else None


def _aliases(node: exp.Select) -> str | None:
    """Names that a query gives to its own columns, in its WHERE or beside them: there they are not known yet."""
    given = {value.alias for value in node.selects if _names_anew(value)} - _known_names(node)
    places: Iterator[exp.Expression | None] = iter([*node.selects, node.args.get("where")])
    for place in filter(None, places):
        for column in place.find_all(exp.Column):
            if not column.table and column.name in given and column.parent_select is node and column.name:
                return f"Unrecognized name: {column.name}"
    return None


def _names_anew(value: exp.Expression) -> bool:
    """Return whether a column of a result has a name that the expression itself does not have."""
    return isinstance(value, exp.Alias) and not (isinstance(value.this, exp.Column) and value.this.name == value.alias)


def _known_names(node: exp.Select) -> set[str]:
    """Return names that are no column of a table, and known all the same: elements and places of arrays, windows."""
    found: set[str] = set()
    for unnest in node.find_all(exp.Unnest):
        alias = unnest.args.get("alias")
        found |= {each.name for each in ([alias.this, *alias.args.get("columns", [])] if alias else []) if each}
        if isinstance(offset := unnest.args.get("offset"), exp.Expression):
            found.add(offset.name)
    found |= {source.alias_or_name for source in node.find_all(exp.Table, exp.Subquery)}
    if any(join.args.get("using") for join in node.args.get("joins") or []) or node.find(exp.Pivot):
        found |= {value.alias for value in node.selects}  # whose column it is, is not told
    return found


_Look = Callable[[exp.Expression], str | None]
_LOOKS: Mapping[type[exp.Expression], _Look] = {
    **dict.fromkeys((*_EQUALITIES, *_ORDERS), _comparison),
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    **dict.fromkeys((exp.Greatest, exp.Least), _greatest),
    exp.Nullif: _nullif,
    exp.Array: _array,
    exp.Where: _where,
    exp.Having: _having,
    exp.Qualify: _qualify,
    exp.Join: _join,
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _logic),
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), _union),
    **dict.fromkeys(_OF_DATES, _of_dates),
    exp.Extract: _extract,
    exp.TimestampDiff: _timestamp_diff,
    **dict.fromkeys((exp.TimestampAdd, exp.TimestampSub), _long_parts),
    **dict.fromkeys((exp.Mod, exp.IntDiv), _whole_numbers),
    exp.Ordered: _ordered,
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    exp.Column: _rows,
    exp.Window: wrong_window,
    exp.Select: _select,
    exp.Group: _group,
    exp.Is: _is,
    exp.Bracket: _element,
    **dict.fromkeys((exp.Lag, exp.Lead), wrong_offset),
    exp.Count: _count,
    **dict.fromkeys(operators(), wrong_operator),
}
