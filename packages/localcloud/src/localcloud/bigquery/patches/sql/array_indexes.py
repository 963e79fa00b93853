"""Patches subscripts: DuckDB counts elements of arrays from one, and only a literal index is shifted (some twice).

| GoogleSQL | without it |
|---|---|
| `a[OFFSET(i)]`, `a[i]` of a column | the element before |
| `json[1]` | the element behind it |
| `JSON '[1]'[0]` | refused |

What a value is, DuckDB's `typeof` says when a statement is bound. Source: subscript operators in the reference of
operators, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

MACROS: Mapping[str, str] = {
    "localcloud_subscript(v, i)": (
        # The index of JSON may be a key, in a column of texts.
        "v[CASE WHEN typeof(v) <> 'JSON' THEN"
        " cast_to_type(localcloud_element(v, TRY_CAST(i AS BIGINT) + 1), i)"
        " WHEN TRY_CAST(i AS BIGINT) < 0 THEN NULL ELSE i END]"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.Bracket))
    for node in reversed(nodes):  # inner ones first
        if node.args.get("offset") is not None:
            _by_offset(node)
        elif len(node.expressions) == 1 and not node.expressions[0].is_string:
            _by_number(node)
    return bool(nodes)


def _by_offset(node: exp.Bracket) -> None:
    index = node.expressions[0].copy()
    if node.args["offset"] == 0:
        index = exp.Add(this=exp.Paren(this=index), expression=exp.Literal.number(1))
    if not node.args.get("safe") and node.this.find(exp.Query) is None:  # what is asked once is not asked twice
        index = exp.Anonymous(this="localcloud_element", expressions=[node.this.copy(), index])
    node.replace(exp.Anonymous(this="list_extract", expressions=[node.this.copy(), index]))


def _by_number(node: exp.Bracket) -> None:
    value, place = node.this, node
    if isinstance(node.parent, exp.ParseJSON) and isinstance(value, exp.Literal):  # sqlglot reads JSON ('[1]'[0])
        value, place = exp.ParseJSON(this=value.copy()), node.parent
    place.replace(call("localcloud_subscript", value, node.expressions[0], type_=None))
