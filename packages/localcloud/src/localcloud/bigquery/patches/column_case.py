"""Patches names of columns with capitals: a statement that the translator rewrites would make all of them small.

BigQuery keeps a name as it is written, and does not tell case apart where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from localcloud.untyped import Untyped


def apply() -> None:
    """Give each name its spelling back after the translator has found the types: the query's, else the table's."""
    from bqemulator.sql.translator import SQLTranslator
    from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

    annotate = SQLTranslator._annotate_tree

    def annotated(tree: Untyped, schema: dict[str, Untyped]) -> Untyped:
        spelled = {name.lower(): name for name in _names(schema)}
        spelled |= {found.name.lower(): found.name for found in tree.find_all(exp.Identifier)}
        found = annotate(tree, schema)
        for identifier in found.find_all(exp.Identifier):
            identifier.set("this", spelled.get(identifier.name.lower(), identifier.name))
        return found

    SQLTranslator._annotate_tree = staticmethod(annotated)


def _names(schema: dict[str, Untyped]) -> Iterator[str]:
    """Yield the columns of every table, however deep its name is."""
    for name, below in schema.items():
        if isinstance(below, dict):
            yield from _names(below)
        else:
            yield name
