"""Patches NaN: to DuckDB it equals itself and is greater than every other number.

| GoogleSQL | without it |
|---|---|
| comparisons with NaN are false, but for `!=` | NaN = NaN, NaN > 1 |
| NaN IN (…), CASE NaN WHEN NaN, NULLIF(NaN, NaN) | they are met |
| MIN, LEAST of numbers and NaN are NaN | the least number |

Where a comparison decides alone whether a row is there, NULL stands for NaN, so that a join by equality stays one.
What cannot be NaN (`types.expressions`) is left as it is written. Source: the reference of operators and of data types,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.bigquery.types.expressions import Expressions, is_assignment

_IS_NAN = "typeof({0}) IN ('DOUBLE', 'FLOAT') AND isnan(TRY_CAST({0} AS DOUBLE))"
MACROS: Mapping[str, str] = {
    "localcloud_number(x)": f"CASE WHEN {_IS_NAN.format('x')} THEN NULL ELSE x END",
    "localcloud_compared(x, met, of_nan)": (
        f"CASE WHEN {_IS_NAN.format('x')} THEN CASE WHEN met IS NULL THEN NULL ELSE of_nan END ELSE met END"
    ),
    # NaN is the greatest: it is there when the greatest is it.
    "localcloud_least(least, greatest)": f"CASE WHEN {_IS_NAN.format('greatest')} THEN greatest ELSE least END",
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CONDITIONS = (exp.Where, exp.Having, exp.Qualify, exp.CountIf)
_PSEUDO_COLUMNS = ("_table_suffix", "_partitiontime", "_partitiondate")


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    known, found = Expressions(tree), False
    kinds = (*_COMPARISONS, exp.Between, exp.In, exp.Case, exp.Nullif, exp.Min, exp.Least)
    for node in reversed(list(tree.find_all(*kinds))):
        found = _patch(node, known) or found
    return found


def _patch(node: exp.Expression, known: Expressions) -> bool:
    match node:
        case exp.Case() if node.this is not None and known.can_be_nan(node.this):
            node.set("this", _number(node.this))
        case exp.Nullif() if known.can_be_nan(node.this) and known.can_be_nan(node.expression):
            node.set("expression", _number(node.expression))
        case exp.Min() if known.can_be_nan(node.this) and not node.expressions and not node.find_ancestor(exp.Pivot):
            _take_greatest(node, exp.Max(this=node.this.copy()))
        case exp.Least() if any(map(known.can_be_nan, node.iter_expressions())):
            greatest = exp.Greatest(**{name: _copied(value) for name, value in node.args.items()})
            _take_greatest(node, greatest)
        case exp.In():
            return _patch_in(node, known)
        case exp.Between():
            return _patch_between(node, known)
        case exp.Binary():
            return _patch_comparison(node, known)
        case _:
            return False
    return True


def _copied(value: object) -> object:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value.copy() if isinstance(value, exp.Expression) else value


def _take_greatest(node: exp.Expression, greatest: exp.Expression) -> None:
    """Replace a MIN or LEAST, with the window around it."""
    least, window = node.copy(), node.parent
    if isinstance(window, exp.Window) and window.this is node:
        over = window.copy()
        over.set("this", greatest)
        window.replace(call("localcloud_least", window.copy(), over, type_=None))
    else:
        node.replace(call("localcloud_least", least, greatest, type_=None))


def _patch_comparison(node: exp.Binary, known: Expressions) -> bool:
    left, right = node.this, node.expression
    if is_assignment(node):
        return False
    if known.is_no_number(left) or known.is_no_number(right) or _is_pseudo(left) or _is_pseudo(right):
        return False
    of_left, of_right = known.can_be_nan(left), known.can_be_nan(right)
    if isinstance(node, exp.LT | exp.LTE):
        name, concerned = "expression", of_right
    elif isinstance(node, exp.GT | exp.GTE):
        name, concerned = "this", of_left
    else:
        name, concerned = "this", of_left and of_right
    if not concerned:
        return False
    if _decides_alone(node) and not isinstance(node, exp.NEQ):
        node.set(name, _number(node.args[name]))
    else:
        _replace(node, node.args[name])
    return True


def _patch_between(node: exp.Between, known: Expressions) -> bool:
    if known.is_no_number(node.args["low"]) or known.is_no_number(node.args["high"]) or _is_pseudo(node.this):
        return False
    of_value, of_end = known.can_be_nan(node.this), known.can_be_nan(node.args["high"])
    if not of_value and not of_end:
        return False
    if _decides_alone(node):
        for name, concerned in (("this", of_value), ("high", of_end)):
            if concerned:
                node.set(name, _number(node.args[name]))
        return True
    end, value = node.args["high"].copy(), node.this.copy()
    compared = exp.and_(
        exp.GTE(this=value, expression=node.args["low"].copy()), exp.LTE(this=value.copy(), expression=end)
    )
    pair = compared.unnest()
    node.replace(exp.Paren(this=compared))
    for each in (pair.this.unnest(), pair.expression.unnest()):
        _patch_comparison(each, known)
    return True


def _patch_in(node: exp.In, known: Expressions) -> bool:
    if not known.can_be_nan(node.this) or known.is_no_number(node.this) or _is_pseudo(node.this):
        return False
    members = node.expressions
    if members and not any(map(known.can_be_nan, members)):
        return False
    if any(map(known.is_no_number, members)):
        return False
    _replace(node, node.this)
    return True


def _number(node: exp.Expression) -> exp.Expression:
    return call("localcloud_number", node, type_=None)


def _replace(node: exp.Expression, concerned: exp.Expression) -> None:
    of_nan = exp.Boolean(this=isinstance(node, exp.NEQ))
    node.replace(call("localcloud_compared", concerned, exp.Paren(this=node.copy()), of_nan, type_="BOOL"))


def _decides_alone(node: exp.Expression) -> bool:
    """Return whether NULL does what FALSE does: in a condition, beneath nothing but AND and OR."""
    inner, outer = node, node.parent
    while isinstance(outer, exp.And | exp.Or | exp.Paren):
        inner, outer = outer, outer.parent
    if isinstance(outer, exp.Join | exp.Merge):
        return outer.args.get("on") is inner
    return isinstance(outer, _CONDITIONS) or (isinstance(outer, exp.If) and outer.this is inner)


def _is_pseudo(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in _PSEUDO_COLUMNS
