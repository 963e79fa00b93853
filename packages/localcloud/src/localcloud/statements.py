"""Statements of SQL with names and expressions in them. Values of callers are bound as parameters, never written in."""

from __future__ import annotations

import re

# Quoted parts are whole, and nothing outside them ends a statement or begins a comment.
_WHOLE = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|(?!--|/\*)[^'";])*""")


def statement(template: str, **parts: str) -> str:
    """Return a statement with its parts filled in.

    Args:
        template: SQL with `{name}` where a part goes.
        parts: Quoted names, and expressions made of them.

    Raises:
        ValueError: A part could change the statement around it.
    """
    for name, part in parts.items():
        if not _WHOLE.fullmatch(part):
            raise ValueError(
                f"statement {template!r}: its part {name} is {part!r}. Expected SQL whose quotes are closed, without"
                " ';' and comments outside of them. Quote names, and bind values as parameters."
            )
    return template.format(**parts)
