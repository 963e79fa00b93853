"""Text of documents, services and files as a terminal may have it: it shows it, and obeys nothing in it.

An escape sequence moves the cursor, sets a window's title or hides what stands above; a mark of writing direction turns
what follows around; half a character ends the program that prints it.
"""

from __future__ import annotations

import unicodedata

REPLACED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that are no sign: controls, format marks, halves, separators of lines."""
SHOWN_AS = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return a text in which every character is a sign or a space.

    Args:
        text: Of anybody.
        keep_lines: Whether a line break stays one; else it is a space, for a line of ours is one line.
    """
    if text.isprintable():
        return text
    return "".join(_shown(letter, keep_lines) for letter in text)


def _shown(letter: str, keep_lines: bool) -> str:
    if letter == "\n":
        return letter if keep_lines else " "
    if letter == "\t":
        return " "
    return SHOWN_AS if unicodedata.category(letter) in REPLACED else letter
