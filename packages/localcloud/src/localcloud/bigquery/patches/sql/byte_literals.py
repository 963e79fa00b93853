r"""Patches `b'\x00\xff'`: DuckDB knows no such escapes."""

from __future__ import annotations

import codecs

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.ByteString))
    for node in nodes:
        value, _ = codecs.escape_decode(node.name.encode())
        node.replace(exp.Anonymous(this="FROM_HEX", expressions=[exp.Literal.string(value.hex())]))
    return bool(nodes)
