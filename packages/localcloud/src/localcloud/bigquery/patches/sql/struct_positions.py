"""Patches structs whose fields have other names: position counts, and the first one's names.

| GoogleSQL | without it |
|---|---|
| `STRUCT(1 AS a) = STRUCT(1 AS b)` | false |
| `(1, NULL) = (1, 2)`: NULL | false |
| `struct IN (SELECT STRUCT(1, 2))`, `IN (SELECT AS STRUCT 1, 2)` | false, or refused |
| UNION of structs, arrays of them, branches of IF, CASE, COALESCE, IFNULL | the fields of all of them, mostly NULL |

What is written as a struct is concerned; of two columns of structs DuckDB goes by the names, as before. Source: the
reference of operators and data types, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.expressions import is_assignment

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_WRITTEN = (exp.Struct, exp.Tuple)


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for node in list(tree.find_all(*_COMPARISONS, exp.In)):
        found = (not is_assignment(node) and _by_fields(node)) or found
    for node in reversed(list(tree.find_all(exp.Array, exp.If, exp.Case, exp.Coalesce, exp.SetOperation))):
        for first, *others in _groups(node):
            for other in others:
                found = _take_names(first, other) or found
    return found


def _by_fields(node: exp.Expression) -> bool:
    """Compare structs that are written out field by field; others by position, when one of them is written out."""
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return _among_rows(node)
    if isinstance(node, exp.In):
        pairs = [_equal(node.this, member) for member in node.expressions]
        if not pairs or not all(pairs):
            return _without_names([node.this, *node.expressions])
        node.replace(exp.Paren(this=exp.or_(*(pair for pair in pairs if pair is not None))))
        return True
    equal = _equal(node.this, node.expression) if isinstance(node, exp.EQ | exp.NEQ) else None
    if equal is None:
        return _without_names([node.this, node.expression])
    node.replace(exp.Not(this=exp.Paren(this=equal)) if isinstance(node, exp.NEQ) else exp.Paren(this=equal))
    return True


def _among_rows(node: exp.In) -> bool:
    """Look for a struct among those that a query gives: as columns where both are written out, else without names."""
    query = node.args["query"].unnest()
    if not isinstance(query, exp.Select):
        return False
    is_row = query.args.get("kind") == "STRUCT"
    written = query.selects[0].unalias() if len(query.selects) == 1 else None
    if not is_row and not isinstance(written, _WRITTEN):
        return _without_names([node.this])
    values = [_value(each) for each in (query.selects if is_row or written is None else written.expressions)]
    if any(value.is_star for value in values):
        return False
    wanted = node.this.unnest()
    query.set("kind", None)
    if isinstance(wanted, _WRITTEN):
        if len(wanted.expressions) != len(values):
            return False
        node.set("this", exp.Tuple(expressions=[_value(each) for each in wanted.expressions]))
        query.set("expressions", values)
    else:
        query.set("expressions", [exp.Struct(expressions=values)])
    return True


def _equal(one: exp.Expression, other: exp.Expression) -> exp.Expression | None:
    """Return the comparison of two structs' fields; None when they are not written out, or not of as many fields."""
    one, other = one.unnest(), other.unnest()
    if not isinstance(one, _WRITTEN) or not isinstance(other, _WRITTEN):
        return None
    if len(one.expressions) != len(other.expressions) or not one.expressions:
        return None
    fields = []
    for left, right in zip(map(_value, one.expressions), map(_value, other.expressions), strict=True):
        fields.append(_equal(left, right) or exp.EQ(this=left.copy(), expression=right.copy()))
    return exp.and_(*fields)


def _without_names(sides: list[exp.Expression]) -> bool:
    """Make the structs among these that are written out nameless."""
    structs = [side.unnest() for side in sides if isinstance(side.unnest(), exp.Struct)]
    named = [inner for side in structs for inner in side.find_all(exp.Struct) if _names(inner)]
    for struct in named:
        struct.set("expressions", [_value(each) for each in struct.expressions])
    return bool(named)


def _groups(node: exp.Expression) -> list[list[exp.Expression]]:
    """Return the expressions that have one type together, group by group."""
    match node:
        case exp.Array():
            return [node.expressions] if node.expressions else []
        case exp.If() if not isinstance(node.parent, exp.Case):
            return [[each for each in (node.args.get("true"), node.args.get("false")) if each is not None]]
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            return [[*branches, *([node.args["default"]] if node.args.get("default") is not None else [])]]
        case exp.Coalesce():
            return [[node.this, *node.expressions]]
        case exp.SetOperation():
            columns = [query.selects for query in _queries(node)]
            return [list(group) for group in zip(*columns, strict=False)]
    return []


def _queries(node: exp.Expression) -> list[exp.Query]:
    if isinstance(node, exp.SetOperation):
        return [*_queries(node.left), *_queries(node.right)]
    return [node.unnest()]


def _take_names(first: exp.Expression, other: exp.Expression) -> bool:
    """Give the fields of a struct the names of the first one's, where both are written out."""
    first, other = first.unalias().unnest(), other.unalias().unnest()
    if not isinstance(first, exp.Struct) or not isinstance(other, exp.Struct):
        return False
    pairs = list(zip(first.expressions, other.expressions, strict=False))
    inner = [_take_names(_value(one), _value(two)) for one, two in pairs]
    if len(first.expressions) != len(other.expressions) or not _names(first) or _names(first) == _names(other):
        return any(inner)
    fields = []
    for one, two in pairs:
        value = _value(two).copy()
        is_named = isinstance(one, exp.PropertyEQ)
        fields.append(exp.PropertyEQ(this=one.this.copy(), expression=value) if is_named else value)
    other.set("expressions", fields)
    return True


def _value(field: exp.Expression) -> exp.Expression:
    return field.expression if isinstance(field, exp.PropertyEQ) else field


def _names(struct: exp.Struct) -> list[str]:
    """Return the names of a struct's fields; none when no field has one."""
    names = [each.this.name if isinstance(each, exp.PropertyEQ) else "" for each in struct.expressions]
    return names if any(names) else []
