"""Globs of object names: https://cloud.google.com/storage/docs/json_api/v1/objects/list#list-objects-and-prefixes-using-glob.

In: a `matchGlob`. Out: a pattern that a whole name must match. `*` stops at a slash, `**` does not, and `**/`
is any number of folders, none too; `?`, `[a-z]`,
`[!a]` and `{a,b}` are as in a shell; a backslash takes the next character as it is.
"""

from __future__ import annotations

import re


def compile_glob(glob: str) -> re.Pattern[str] | None:
    """Return the pattern of a glob; None for one with a bracket or brace that is not closed."""
    pieces: list[str] = []
    depth, position = 0, 0
    while position < len(glob):
        letter = glob[position]
        if glob.startswith("**/", position) and glob[:position][-1:] in ("", "/"):
            pieces.append("(?:.*/)?")
            position += 3
            continue
        if glob.startswith("**", position):
            pieces.append(".*")
            position += 2
            continue
        if letter == "[":
            end = glob.find("]", position + 2)
            if end < 0:
                return None
            inner = glob[position + 1 : end].replace("\\", "\\\\")
            negated = inner.startswith(("!", "^"))
            pieces.append(f"[^/{inner[1:]}]" if negated else f"[{inner}]")
            position = end + 1
            continue
        if letter == "\\" and position + 1 < len(glob):
            pieces.append(re.escape(glob[position + 1]))
            position += 2
            continue
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            return None
        pieces.append(_piece(letter, inside=depth > 0))
        position += 1
    return re.compile("".join(pieces), re.DOTALL) if depth == 0 else None


def _piece(letter: str, *, inside: bool) -> str:
    known = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}
    if letter == "," and inside:
        return "|"
    return known.get(letter, re.escape(letter))
