"""What a person may have meant: the nearest of the words that exist."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def suggest(word: str, known: Sequence[str]) -> str:
    """Return `Did you mean 'x'?` when one of the known words is near, else nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else ""
