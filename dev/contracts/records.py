"""The tables of documents in the docs: who writes and who reads each kind, and its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from retraining.core.documents import Document


def render_documents(kinds: Iterable[type[Document]]) -> str:
    """Return a row for each kind."""
    head = ["| document | written by | read by | what it says |", "|---|---|---|---|"]
    return "\n".join([*head, *map(_row, kinds)])


def _row(kind: type[Document]) -> str:
    what = " ".join(inspect.cleandoc(kind.__doc__ or "").split()).removesuffix(".")
    return f"| `{kind.kind_name()}.json` | {kind.written_by} | {kind.read_by} | {what} |"
