"""Whether statements are GoogleSQL.

In: statements as they were sent. Out: what BigQuery says of them, what of them is not offered here, or nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import NamedTuple

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp
from sqlglot.errors import SqlglotError  # type: ignore[import-not-found]

from localcloud.bigquery.language import grammar
from localcloud.bigquery.language.names import NAMESPACES, NOT_ANSWERED, TYPES
from localcloud.bigquery.language.reading import Reading, Written, first_words, read, tokens_of
from localcloud.bigquery.language.signatures import ANSWERED, take

_ASSERT = "ASSERT"
"""A statement of scripts: with its condition in parentheses the parser takes it for a function."""

_FUNCTION = re.compile(r"\s*(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+FUNCTION\s+`?(\w+)`?\s*\(", re.IGNORECASE)


class Refusal(NamedTuple):
    """Why a statement does not run.

    Attributes:
        wrong: What BigQuery says of it; "" where it takes it.
        missing: What of it is not offered here; "" where it is all offered.
    """

    wrong: str = ""
    missing: str = ""


@functools.lru_cache(maxsize=32)  # it is asked of a job's text, and of its statement again
def refusal_of(statements: str, known: frozenset[str] = frozenset()) -> Refusal | None:
    """Return why statements do not run; None: nothing is known against them, or the parser has no tree of them.

    Args:
        statements: One, or those of a script.
        known: Names of functions that were made before, and belong to no dataset.
    """
    try:
        tokens = tokens_of(statements)
    except SqlglotError:
        return None  # bqemulator says what is wrong with it
    for words in first_words(tokens):
        if said := grammar.of_words(words):
            return Refusal(wrong=said)
    try:
        reading = read(statements)
    except RecursionError:
        return None
    except SqlglotError as error:
        return _not_read(statements, error)
    if said := next(filter(None, map(grammar.of_tree, reading.trees)), None):
        return Refusal(wrong=said)
    return _types(reading) or _functions(reading, {*map(str.upper, known), *_made(reading)})


def _not_read(statements: str, error: SqlglotError) -> Refusal | None:
    """Return what is said of what is no GoogleSQL, and some other database's; None of what nobody understands."""
    try:
        sqlglot.parse(statements, read="bigquery")
    except (SqlglotError, RecursionError):
        return None  # bqemulator says what is wrong with it, or it is a script
    found = (getattr(error, "errors", None) or [{}])[0]
    at = f" at [{found['line']}:{found['col']}]" if found.get("line") else ""
    highlighted = str(found.get("highlight") or "").strip()
    what = f'Unexpected "{highlighted}"' if highlighted else str(found.get("description") or error)
    return Refusal(wrong=f"Syntax error: {what}{at}")


def _types(reading: Reading) -> Refusal | None:
    for written in reading.types:
        if written.name.upper() not in TYPES:
            return Refusal(wrong=f"Type not found: {written.name}{_at(written)}")
    return None


def _functions(reading: Reading, known: Collection[str]) -> Refusal | None:
    for written in reading.functions:
        name = written.name.upper().removeprefix("SAFE.")
        of_dataset = "." in name and name.rpartition(".")[0] not in NAMESPACES
        if of_dataset or name in known or name == _ASSERT:
            continue
        if name in ANSWERED:
            if written.arguments is None or take(ANSWERED[name], written.arguments):
                continue
            return Refusal(wrong=f"Number of arguments does not match for function {name}{_at(written)}")
        if name in NOT_ANSWERED or name.partition(".")[0] in NAMESPACES:
            return Refusal(missing=name)
        return Refusal(wrong=f"Function not found: {written.name}{_at(written)}")
    return None


def _made(reading: Reading) -> set[str]:
    """Return the names of the functions that the statements make for themselves."""
    names = {
        tree.this.this.name.upper()
        for tree in reading.trees
        if isinstance(tree, exp.Create) and isinstance(tree.this, exp.UserDefinedFunction)
    }
    # The parser has no tree of a function whose OPTIONS stand behind its text.
    texts = (str(tree.expression) for tree in reading.trees if isinstance(tree, exp.Command) and tree.name == "CREATE")
    return names | {found[1].upper() for text in texts if (found := _FUNCTION.match(text))}


def _at(written: Written) -> str:
    return f" at [{written.line}:{written.column}]"
