r"""Patches functions of texts, of which sqlglot and bqemulator make others.

| GoogleSQL | without it |
|---|---|
| FORMAT('%s', x) | `{}` |
| REGEXP_EXTRACT that finds an empty text: it | NULL |
| CONTAINS_SUBSTR: by NFKC, without case | by the letters, in lower case |
| CODE_POINTS_TO_STRING with NULL: NULL | without it |
| ST_ASTEXT: `POINT(1 2)` | `POINT (1 2)` |

A pattern whose group may take no part in what it finds is left alone: DuckDB does not tell that from an empty text.
Source: the reference of string functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

MACROS: Mapping[str, str] = {
    "localcloud_code_points(a)": "CASE WHEN len(list_filter(a, lambda each: each IS NULL)) > 0 THEN NULL ELSE a END",
    "localcloud_text_only(s)": "'' || s",
    "localcloud_known_text(s)": r"regexp_replace(s, '([A-Z]) \(', '\1(', 'g')",
}
_OPTIONAL = re.compile(r"\||\)[?*{]")


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    kinds = (exp.Format, exp.RegexpExtract, exp.Contains, exp.CodePointsToString, exp.Anonymous)
    for node in reversed(list(tree.find_all(*kinds))):
        new = _right(node)
        if new is not None:
            node.replace(new)
            found = True
    return found


def _right(node: exp.Expression) -> exp.Expression | None:
    match node:
        case exp.Format() if node.this.name == "%s" and len(node.expressions) == 1:
            return call("localcloud_text_only", node.expressions[0], type_="STRING")
        case exp.RegexpExtract() if _finds_empty(node):
            is_there = exp.RegexpLike(this=node.this.copy(), expression=node.expression.copy())
            part = exp.Coalesce(this=node.copy(), expressions=[exp.Literal.string("")])
            return exp.If(this=is_there, true=part, false=exp.Null())
        case exp.Contains():
            return exp.Contains(this=_folded(node.this), expression=_folded(node.expression))
        case exp.CodePointsToString():
            array = call("localcloud_code_points", node.this, type_=None)
            return exp.CodePointsToString(this=array)
        case exp.Anonymous() if node.name.upper() == "ST_ASTEXT":
            return call("localcloud_known_text", node, type_="STRING")
    return None


def _finds_empty(node: exp.RegexpExtract) -> bool:
    """Return whether a pattern may find an empty text, and what it finds is surely of its group."""
    if node.args.get("position") is not None or not isinstance(node.expression, exp.Literal | exp.RawString):
        return False
    pattern = node.expression.name
    if "(" in pattern:
        return not _OPTIONAL.search(pattern)
    try:
        return re.search(pattern, "") is not None
    except re.error:
        return False


def _folded(value: exp.Expression) -> exp.Expression:
    value = value.this if isinstance(value, exp.Lower) else value
    return exp.Normalize(this=value.copy(), form=exp.var("NFKC"), is_casefold=True)
