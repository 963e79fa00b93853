"""The tokens of Google's filter languages: lists' (AIP-160) and Cloud Logging's.

Comes in: an expression. Goes out: its tokens. What they mean is the business of `vertex.wire.filters` and
`logs.filters`: the languages differ in their operators, in quotes, and in whether OR binds tighter than AND.
"""

from __future__ import annotations

import functools
import re
from typing import Literal, NamedTuple


class Token(NamedTuple):
    """A piece of an expression; a word may have quoted parts (`labels."a.b"`)."""

    kind: Literal["string", "operator", "mark", "word", "end"]
    text: str

    @property
    def value(self) -> str:
        """What it means: a string without its quotes."""
        return _unquote(self.text) if self.kind == "string" else self.text


END = Token("end", "")


class TokenError(ValueError):
    """No token begins at `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no token begins at position {position}")
        self.position = position


def tokenize(text: str, *, operators: tuple[str, ...], quotes: str = '"') -> list[Token]:
    """Return an expression's tokens.

    Args:
        operators: Of the language, those first that begin like others.
        quotes: Characters that strings may stand in.

    Raises:
        TokenError: A quote is not closed, or a character is none of the language.
    """
    pattern, tokens, position, text = _pattern(operators, quotes), [], 0, text.rstrip()
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise TokenError(position)
        kind: Literal["string", "operator", "mark", "word"] = match.lastgroup  # type: ignore[assignment]  # the groups' names
        tokens.append(Token(kind, match[kind]))
        position = match.end()
    return tokens


@functools.cache
def _pattern(operators: tuple[str, ...], quotes: str) -> re.Pattern[str]:
    string = _string(quotes)
    operator = "|".join(map(re.escape, operators))
    word = rf"(?:[^\s{quotes}()=<>:!]|{string})+"
    return re.compile(rf"\s*(?:(?P<string>{string})|(?P<operator>{operator})|(?P<mark>[()-])|(?P<word>{word}))")


def split_path(word: str, quotes: str = '"') -> list[str]:
    """Return the parts of a dotted word, without their quotes."""
    parts = re.findall(rf"{_string(quotes)}|[^.]+", word)
    return [_unquote(part) if part[0] in quotes else part for part in parts]


def _string(quotes: str) -> str:
    return "|".join(rf"{quote}(?:[^{quote}\\]|\\.)*{quote}" for quote in quotes)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
