r"""Patches characters by number in texts, `'\u00e9'`, `'\x41'`, `'\101'`, and those behind a backslash, `'\"'`, `'\?'`.

They would be what they are written with.

The reference's lexical structure: three octal digits, two hexadecimal ones behind `\x` or `\X`, four behind `\u`, eight
behind `\U`, in texts that are neither raw nor bytes; surrogates and numbers beyond 10FFFF are none. A number of no
character stays, and is refused where the statement is read.
"""

from __future__ import annotations

import re

_LITERAL = re.compile(
    r"""
    (?P<comment>\#[^\n]*|--[^\n]*|/\*.*?\*/)
    |(?P<identifier>`(?:[^`\\]|\\.)*`)
    |(?P<prefix>\b(?:[rR][bB]|[bB][rR]|[rR]|[bB]))?
     (?P<quote>\"{3}|'{3}|\"|')
     (?P<text>(?:\\.|(?!(?P=quote)).)*)
     (?P=quote)
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-3][0-7]{2})|[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<other>.))",
    re.DOTALL,
)
_KEPT = {"\\": r"\\", "\n": r"\n", "\r": r"\r"}
_PLAIN = "\"'`?"
"""Characters that a backslash before them does not change."""
_LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def with_characters(statement: str) -> str:
    """Return a statement with the characters in the place of their numbers; comments and names stay."""
    return _LITERAL.sub(_literal, statement) if "\\" in statement else statement


def _literal(found: re.Match[str]) -> str:
    if found["quote"] is None or found["prefix"] or "\\" not in found["text"]:
        return found.group()
    quote = found["quote"]
    return f"{quote}{_ESCAPE.sub(lambda each: _character(each, quote[0]), found['text'])}{quote}"


def _character(found: re.Match[str], quote: str) -> str:
    if found["other"] and found["other"] in _PLAIN and found["other"] != quote:
        return found["other"]
    number = int(found["octal"], 8) if found["octal"] else int(found["x"] or found["u"] or found["U"] or "0", 16)
    if found["other"] or number == 0 or number in _SURROGATES or number > _LAST:
        return found.group()
    character = chr(number)
    return f"\\{quote}" if character == quote else _KEPT.get(character, character)
