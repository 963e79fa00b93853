"""What a file of SQL is, as far as that can be told without BigQuery: one SELECT, with the parameters it must have.

Only comments, quotes, parentheses and semicolons are looked at: the query is put in parentheses, so a second
statement, or a parenthesis too many, would change a statement of this project. BigQuery's dry run judges the rest.
https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from retraining.core.errors import SpecError, suggest

PARAMETERS = ("window_start", "window_end", "as_of")
"""What an examples query gets, and must use: it would read all of its tables, or what was not known then."""

AS_OF = ("as_of",)
"""What a query of examples without a time gets, and may use."""

MAX_CHARACTERS = 1_000_000  # BigQuery's limit for a query: https://cloud.google.com/bigquery/quotas#query_jobs
_BEGINNINGS = ("SELECT", "WITH", "FROM", "(")
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)
    |(?P<text>'''(?:\\.|(?!''').)*'''|\"\"\"(?:\\.|(?!\"\"\").)*\"\"\"
        |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\\n])*`)
    |(?P<parameter>@@?\w+)
    |(?P<word>\w+)
    |(?P<open>/\*|['"`])
    |(?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def require_select(sql: str, where: str, parameters: Collection[str], optional: Collection[str] = ()) -> None:
    """Refuse a text that is not one SELECT, with these parameters and no other.

    Args:
        sql: Text of the file.
        where: Names it in messages.
        parameters: What it must use, each of them.
        optional: What it may use beside them.

    Raises:
        SpecError: It is none; says why.
    """
    if len(sql) > MAX_CHARACTERS:
        raise SpecError(where, f"{len(sql):,} characters", f"at most {MAX_CHARACTERS:,}, BigQuery's limit")
    depth, first, ended = 0, "", False
    for kind, word, line in _tokens(sql):
        place = f"{where}, line {line}"
        if ended:
            raise SpecError(place, f"{word!r} after the first semicolon", "one statement", "Remove what follows it")
        if kind == "open":
            raise SpecError(place, f"{word} that is not closed", "its other end", "Close it")
        first = first or word.upper()
        depth += (word == "(") - (word == ")")
        if depth < 0:
            raise SpecError(place, "a parenthesis that closes nothing", "as many ( as )", "Remove it")
        ended = word == ";"
    if not first:
        raise SpecError(where, "no statement", "a SELECT that gives one row per example")
    if first not in _BEGINNINGS:
        raise SpecError(where, f"a statement that begins with {first}", "one SELECT, which may begin with WITH")
    if depth:
        raise SpecError(where, f"{depth} ( that are not closed", "as many ) as (", "Close them")
    _require_parameters(used_parameters(sql), parameters, optional, where)


def used_parameters(sql: str) -> set[str]:
    """Return the names of the query parameters in a text, in lower case; system variables (`@@`) are none."""
    found = (word for kind, word, _ in _tokens(sql) if kind == "parameter")
    return {word.lstrip("@").lower() for word in found if not word.startswith("@@")}


def without_semicolon(sql: str) -> str:
    """Return a query that can stand in parentheses: nothing from its semicolon on."""
    at = next((match.start() for match in _TOKEN.finditer(sql) if match.group() == ";"), len(sql))
    return sql[:at].strip()


def _tokens(sql: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, text and line of everything but blanks and comments."""
    line = 1
    for match in _TOKEN.finditer(sql):
        kind, token = str(match.lastgroup), match.group()
        if kind != "blank":
            yield kind, token, line
        line += token.count("\n")


def require_time_travel(sql: str, where: str, *, asked: bool) -> None:
    """Refuse a query that reads its tables as of another time than its spec says.

    BigQuery has the clause behind each table, so the query says it itself; `data.time_travel` has it checked.

    Raises:
        SpecError: The key is set and the clause is missing, the other way round, or its time is not `@as_of`.
    """
    times = _system_times(sql)
    if asked and not times:
        raise SpecError(
            where,
            "data.time_travel, and no FOR SYSTEM_TIME AS OF @as_of in the query",
            "the clause behind each source table: FROM dataset.table FOR SYSTEM_TIME AS OF @as_of",
            "Add it, or remove data.time_travel",
        )
    if others := [time for time in times if time.lower() != "@as_of"]:
        raise SpecError(
            where,
            f"FOR SYSTEM_TIME AS OF {others[0]}",
            "FOR SYSTEM_TIME AS OF @as_of, the run's own time",
            "Write @as_of",
        )
    if times and not asked:
        raise SpecError(
            where,
            "FOR SYSTEM_TIME AS OF in the query, and no data.time_travel",
            "data.time_travel: true, by which plan checks BigQuery's seven days",
            "Set it",
        )


def _system_times(sql: str) -> list[str]:
    """Return what follows each FOR SYSTEM_TIME AS OF: a parameter, or the first word of another expression."""
    message = [word for _, word, _ in _tokens(sql)]
    clause = ["FOR", "SYSTEM_TIME", "AS", "OF"]
    size = len(clause)
    return [
        message[at + size]
        for at in range(len(message) - size)
        if [word.upper() for word in message[at : at + size]] == clause
    ]


def hashes_rows(sql: str, key: str) -> bool:
    """Return whether a query makes its key of a whole row, `TO_JSON_STRING(source) … AS key`, and not of columns."""
    message = [word.strip("`") for _, word, _ in _tokens(sql)]
    end = next((at for at in range(1, len(message)) if (message[at - 1].upper(), message[at]) == ("AS", key)), 0)
    depth, start = 0, end
    while start and (depth or message[start - 1] != ",") and message[start - 1].upper() not in ("SELECT", "DISTINCT"):
        start -= 1
        depth += (message[start] == ")") - (message[start] == "(")
    made = message[start:end]
    return any(
        [made[at].upper(), made[at + 1], made[at + 3]] == ["TO_JSON_STRING", "(", ")"] for at in range(len(made) - 3)
    )


def _require_parameters(used: set[str], required: Collection[str], optional: Collection[str], where: str) -> None:
    known = (*required, *optional)
    listed = ", ".join(f"@{name}" for name in known)
    for name in sorted(used - set(known)):
        expected = f"one of: {listed}" if known else "none: this set is the same for every run"
        raise SpecError(where, f"unknown parameter @{name}", expected, suggest(name, list(known)))
    if missing := [name for name in required if name not in used]:
        raise SpecError(
            where,
            f"no @{missing[0]} in it",
            f"a query that uses each of {listed}",
            "Take rows of [@window_start, @window_end) by their event time, and only what was known @as_of",
        )
