"""What BigQuery refuses of a window, `OVER (…)`, where DuckDB would find some answer.

In: a window in a typed query (`typed`). Out: what the service says of it, or nothing.

Sources: cloud.google.com/bigquery/docs/reference/standard-sql/window-function-calls and the pages of its functions;
github.com/google/zetasql: zetasql/common/builtin_function_internal_1.cc for which function must have an order.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.calls import kind_or_struct
from localcloud.bigquery.types.typed import NUMBERS

_NUMBERED = {
    exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank", exp.CumeDist: "cume_dist",
    exp.Ntile: "ntile", exp.Lag: "lag", exp.Lead: "lead",
}  # fmt: skip
_ORDERED = {**_NUMBERED, exp.FirstValue: "first_value", exp.LastValue: "last_value", exp.NthValue: "nth_value"}
_WITHOUT_FRAME = {**_NUMBERED, exp.RowNumber: "row_number"}
_OFFSETS = "RANGE-based window with OFFSET PRECEDING or OFFSET FOLLOWING boundaries"
_NOT_PARTITIONED = ("FLOAT64", "ARRAY", "JSON", "GEOGRAPHY")


def wrong_window(node: exp.Window) -> str | None:
    """Return what is said of a window; of one that has a name, and is written elsewhere, of its function alone."""
    function = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.RespectNulls) else node.this
    return _order(node, function) or _arguments(node, function) or _partition(node) or _frame(node, function)


def wrong_offset(node: exp.Expression) -> str | None:
    """Return what is said of how far LAG and LEAD look."""
    if isinstance(node.args.get("offset"), exp.Neg):
        return f"The second argument to {_NUMBERED[type(node)].upper()} must not be negative"
    return None


def _order(node: exp.Window, function: exp.Expression) -> str | None:
    name = _ORDERED.get(type(function))
    if name and not node.args.get("order") and not node.args.get("alias"):
        return f"Window ORDER BY is required for analytic function {name}"
    return None


def _arguments(node: exp.Window, function: exp.Expression) -> str | None:
    name = str(function.meta.get("name") or function.sql_name()).lower() if isinstance(function, exp.Func) else ""
    if isinstance(function.this, exp.Distinct) and node.args.get("order"):
        return f"Window ORDER BY is not allowed if DISTINCT is specified, in analytic function {name}"
    if isinstance(function.this, exp.Order | exp.Limit):
        return f"ORDER BY and LIMIT in arguments are not allowed in analytic function {name}"
    return None


def _partition(node: exp.Window) -> str | None:
    for each in node.args.get("partition_by") or []:
        kind = kind_or_struct(each)
        if kind.startswith(_NOT_PARTITIONED):
            return f"Partitioning by expressions of type {kind.partition('<')[0]} is not allowed"
    return None


def _frame(node: exp.Window, function: exp.Expression) -> str | None:
    frame = node.args.get("spec")
    if frame is None:
        return None
    if name := _WITHOUT_FRAME.get(type(function)):
        return f"Window framing clause is not allowed for analytic function {name}"
    bounds = (frame.args.get("start"), frame.args.get("end"))
    if frame.args.get("kind") != "RANGE" or not any(isinstance(bound, exp.Expression) for bound in bounds):
        return None
    order = node.args.get("order")
    if order is None or len(order.expressions) != 1:
        return f"A {_OFFSETS} must have exactly one ORDER BY key"
    kind = kind_or_struct(order.expressions[0].this)
    if kind and kind not in NUMBERS:
        return f"ORDER BY key must be numeric in a {_OFFSETS}, but has type {kind}"
    return None
