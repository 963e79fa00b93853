"""Parses a statement once: bqemulator and its patches ask for the tree of the same text about forty times a query."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from localcloud.untyped import Untyped

KEPT_CHARACTERS: Final = 256_000
"""Of statements whose trees are kept; a tree takes about 120 bytes a character."""


class Trees:
    """The trees of the statements parsed last.

    Args:
        most: How many characters of statements to keep at most. Longer statements are not kept.
    """

    def __init__(self, most: int = KEPT_CHARACTERS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[type, str], list[Untyped]] = OrderedDict()
        self._characters = 0

    def get(self, dialect: type, sql: str) -> list[Untyped] | None:
        """Return copies of a statement's trees, the caller's to change; None where they are not kept."""
        with self._lock:
            trees = self._kept.get((dialect, sql))
            if trees is None:
                return None
            self._kept.move_to_end((dialect, sql))
        return _copied(trees)

    def keep(self, dialect: type, sql: str, trees: list[Untyped]) -> None:
        """Keep copies of a statement's trees, and forget those asked for longest ago."""
        if len(sql) > self._most:
            return
        copies = _copied(trees)
        with self._lock:
            if (dialect, sql) in self._kept:
                return
            self._kept[dialect, sql] = copies
            self._characters += len(sql)
            while self._characters > self._most:
                (_, forgotten), _ = self._kept.popitem(last=False)
                self._characters -= len(forgotten)


def apply() -> None:
    """Let sqlglot's dialects answer from the trees that they made before; where one errs, say that it does."""
    from bqemulator.domain.errors import UnsupportedFeatureError
    from sqlglot import Dialect  # type: ignore[import-not-found]  # only in the local cloud environment
    from sqlglot.errors import SqlglotError  # type: ignore[import-not-found]

    class UnreadError(UnsupportedFeatureError, SqlglotError):  # type: ignore[misc]  # either has no types
        """No parser for a statement; to whom looks into its tree, a statement without one."""

    parse = Dialect.parse
    kept = Trees()

    def parse_once(self: Untyped, sql: str, **opts: Untyped) -> list[Untyped]:
        if opts or self.settings:
            return parse(self, sql, **opts)  # type: ignore[no-any-return]
        trees: list[Untyped] | None = kept.get(type(self), sql)
        if trees is None:
            try:
                trees = parse(self, sql)
            except (AttributeError, IndexError, KeyError, TypeError) as error:  # its faults, not the statement's
                said = f"The local cloud has no parser for this statement: sqlglot ends with {error!r}"
                raise UnreadError(said) from error
            kept.keep(type(self), sql, trees)
        return trees

    Dialect.parse = parse_once


def _copied(trees: list[Untyped]) -> list[Untyped]:
    return [None if tree is None else tree.copy() for tree in trees]
