"""Patches `a[OFFSET(i)]`: DuckDB counts from one, and only a literal index is shifted (some of them twice)."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = [node for node in tree.find_all(exp.Bracket) if node.args.get("offset") is not None]
    for node in reversed(nodes):  # inner ones first
        index = node.expressions[0].copy()
        if node.args["offset"] == 0:
            index = exp.Add(this=exp.Paren(this=index), expression=exp.Literal.number(1))
        if not node.args.get("safe") and node.this.find(exp.Query) is None:  # what is asked once is not asked twice
            index = exp.Anonymous(this="localcloud_element", expressions=[node.this.copy(), index])
        node.replace(exp.Anonymous(this="list_extract", expressions=[node.this.copy(), index]))
    return bool(nodes)
