"""Whether the arguments of a call have types that the function takes, and the sides of an operator.

In: a call in a typed query (`typed`). Out: what the service says of types that no signature takes, or nothing: where a
type is not known, nothing is said.

Sources: the table of signatures, `localcloud.bigquery.language.signatures`, and what a value may stand for without a
cast, cloud.google.com/bigquery/docs/reference/standard-sql/conversion_rules#coercion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.language.signatures import ANSWERED, OPERATORS, Signature
from localcloud.bigquery.types.parameters import is_parameter
from localcloud.bigquery.types.typed import TIMES, can_stand_for, kind_of

_STANDS_FOR = {
    "INT64": ("NUMERIC", "BIGNUMERIC", "FLOAT64"),
    "NUMERIC": ("BIGNUMERIC", "FLOAT64"),
    "BIGNUMERIC": ("FLOAT64",),
    "DATE": ("DATETIME",),
}
_SIGNS = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
    exp.BitwiseXor: "^", exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
}  # fmt: skip
_NAMES = {exp.GroupConcat: "STRING_AGG"}
"""Of functions whose name sqlglot does not keep."""
_FORMAT_FIRST = ("format", "this", "zone")
_ORDERS = {exp.TimeToStr: _FORMAT_FIRST, exp.Log: ("expression", "this")}
"""Of arguments, where the tree has another one than the call."""
_COLLAPSED = (exp.MD5,)
"""Of two calls: `TO_HEX(MD5(x))`."""
_AROUND = (exp.Order, exp.Limit, exp.IgnoreNulls, exp.RespectNulls, exp.HavingMax)
_CONVERTED = (exp.TsOrDsToDate, exp.TsOrDsToDatetime, exp.TsOrDsToTimestamp, exp.TsOrDsToTime)
"""What sqlglot writes around what FORMAT_DATE and its like are given."""
_NAMED = (exp.Kwarg, exp.PropertyEQ)
_JSON_PATHS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONExtractArray, exp.JSONValueArray)
_UNFIT: Mapping[str, tuple[str, ...]] = {
    "ORDERED": ("ARRAY", "STRUCT", "JSON", "GEOGRAPHY"),
    "GROUPED": ("ARRAY", "STRUCT", "JSON", "GEOGRAPHY"),
    "ELEMENT": ("ARRAY",),
}
_ANALYTIC = (exp.Ntile, exp.Lag, exp.Lead, exp.NthValue, exp.FirstValue, exp.LastValue)
_ANYTHING = ("ANY", "PART", "OPTION")
_FORMATS = {"d": ("INT64",), "i": ("INT64",), "s": ("STRING", "BYTES")}


def wrong_call(node: exp.Expression) -> str | None:
    """Return what is said of a function's arguments."""
    name = str(node.meta.get("name") or _NAMES.get(type(node), "")).upper()
    if not name and isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.Dot):
        name = node.name.upper()
    signatures = ANSWERED.get(name)
    if not signatures or isinstance(node, _COLLAPSED):
        return None
    arguments = [each for each in arguments_of(node) if not isinstance(each, _NAMED)]
    for unfit in (signature.kind_at(0) for signature in signatures if signature.arguments):
        if unfit in _UNFIT and (said := _undefined(name, unfit, arguments)):
            return said
    if _match(signatures, arguments):
        return _format(node, arguments) or _path(node)
    return _no_signature(f"{_kind_of_function(node)} {name}", name, arguments, signatures)


def wrong_operator(node: exp.Expression) -> str | None:
    """Return what is said of the sides of an operator."""
    sign = _SIGNS[type(node)]
    sides = [node.this, node.expression]
    if any(isinstance(side, exp.Interval | exp.Var) for side in sides) or _match(OPERATORS[sign], sides):
        return None
    return _no_signature(f"operator {sign}", "", sides, OPERATORS[sign])


def operators() -> tuple[type[exp.Expression], ...]:
    """Return the operators that are known."""
    return tuple(_SIGNS)


def arguments_of(node: exp.Expression) -> Iterator[exp.Expression]:
    """Give what a function is called with, in the order of its signature, without DISTINCT, ORDER BY and their like."""
    order = _ORDERS.get(type(node), tuple(node.args))
    for value in (node.args.get(key) for key in order):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expression):
                is_converted = isinstance(node, exp.TimeToStr) and isinstance(each, _CONVERTED)
                yield from _bare(each.this if is_converted else each)


def kind_or_struct(node: exp.Expression | None) -> str:
    """Return the type of an expression, as `kind_of`; STRUCT of a column that is one."""
    is_struct = isinstance(node, exp.Column) and node.table and node.type is not None and node.type.is_type("struct")
    return "STRUCT" if is_struct else kind_of(node)


def _bare(node: exp.Expression) -> Iterator[exp.Expression]:
    """Give an argument without what says how it is taken."""
    while isinstance(node, _AROUND):
        node = node.this
    if isinstance(node, exp.Distinct):
        yield from node.expressions
    else:
        yield node


def _match(signatures: Sequence[Signature], arguments: Sequence[exp.Expression]) -> bool:
    """Return whether one of the signatures takes the arguments, of those that take as many where there are such."""
    of_count = [each for each in signatures if each.takes(len(arguments))]
    return any(_fit(signature, arguments) for signature in of_count or signatures)


def _fit(signature: Signature, arguments: Sequence[exp.Expression]) -> bool:
    of = signature.arguments
    looked_at = arguments if of and of[-1].is_repeated else arguments[: len(of)]
    return all(fits(node, signature.kind_at(place)) for place, node in enumerate(looked_at))


def fits(node: exp.Expression, wanted: str) -> bool:
    """Return whether a value may stand where a type, or one of the words of signatures, is wanted."""
    kind = kind_or_struct(node)
    if not kind or wanted in _ANYTHING or kind == wanted or isinstance(node, exp.Var):
        return True
    if wanted in _UNFIT:
        return not kind.startswith(_UNFIT[wanted])
    if wanted in {"ARRAY", "RANGE"} or wanted.startswith("ARRAY<"):
        return kind.startswith(wanted)
    if kind == "FLOAT64" and wanted in {"NUMERIC", "BIGNUMERIC"}:
        return isinstance(node.unnest(), exp.Literal) or is_parameter(node.unnest())
    return wanted in _STANDS_FOR.get(kind, ()) or (wanted in TIMES and can_stand_for(node, wanted))


def _undefined(name: str, wanted: str, arguments: Sequence[exp.Expression]) -> str | None:
    unfit = [kind_or_struct(each) for each in arguments[:1] if not fits(each, wanted)]
    if not unfit:
        return None
    if wanted == "ELEMENT":
        return f"The argument to {name} must not be an array type but was {unfit[0]}"
    return f"{name} is not defined for arguments of type {unfit[0]}"


def _format(node: exp.Expression, arguments: Sequence[exp.Expression]) -> str | None:
    """Return what is said of values that FORMAT's `%d` and `%s` do not take."""
    if not isinstance(node, exp.Format) or not isinstance(arguments[0], exp.Literal):
        return None
    pieces = arguments[0].name.replace("%%", "").split("%")[1:]
    letters = [next((sign for sign in piece if sign.isalpha()), "") for piece in pieces]
    if any("*" in piece for piece in pieces):
        return None
    for place, (letter, value) in enumerate(zip(letters, arguments[1:], strict=False), 2):
        kind, wanted = kind_or_struct(value), _FORMATS.get(letter)
        if kind and wanted and kind not in wanted:
            return f"Invalid type for argument {place} to FORMAT; Expected {wanted[0]}; Got {kind}"
    return None


def _path(node: exp.Expression) -> str | None:
    is_column = isinstance(node, _JSON_PATHS) and isinstance(node.args.get("expression"), exp.Column)
    return "JSONPath must be a string literal or query parameter" if is_column else None


def _no_signature(what: str, name: str, arguments: Sequence[exp.Expression], signatures: Sequence[Signature]) -> str:
    kinds = ", ".join(_shown(each) for each in arguments)
    supported = "; ".join(f"{name}({', '.join(_written(signature))})" for signature in signatures)
    ending = f". Supported signatures: {supported}" if name else ""
    return f"No matching signature for {what} for argument types: {kinds}{ending}"


def _kind_of_function(node: exp.Expression) -> str:
    if isinstance(node, _ANALYTIC):
        return "analytic function"
    return "aggregate function" if isinstance(node, exp.AggFunc) else "function"


def _shown(node: exp.Expression) -> str:
    if isinstance(node, exp.JSONPath):
        return "STRING"
    return "DATE_TIME_PART" if isinstance(node, exp.Var) else kind_or_struct(node) or "?"


def _written(signature: Signature) -> Iterator[str]:
    for each in signature.arguments:
        kind = each.kind + ("..." if each.is_repeated else "")
        yield f"[{kind}]" if each.is_optional else kind
