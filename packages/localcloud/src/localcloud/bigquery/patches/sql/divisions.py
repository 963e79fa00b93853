"""Patches `DIV(a + b, c * d)` and `10 * MOD(a, b)`: in DuckDB they would be `a + b // c * d` and `10 * a % b`."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.IntDiv, exp.Mod))
    for node in nodes:
        for name, term in (("this", node.this), ("expression", node.expression)):
            if isinstance(term, exp.Binary):
                node.set(name, exp.Paren(this=term.copy()))
        if isinstance(node.parent, exp.Binary | exp.Unary) and not isinstance(node.parent, exp.Paren):
            node.replace(exp.Paren(this=node.copy()))
    return bool(nodes)
