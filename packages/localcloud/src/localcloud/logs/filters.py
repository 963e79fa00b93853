"""The Logging query language, as far as clients of this project use it, compiled to a condition in SQL.

In: a filter such as `resource.type="ml_job" AND resource.labels.job_id="7" AND timestamp>="2026-01-01T00:00:00Z"`.
Out: a condition over the columns of `store` with question marks, and their values. Supported: AND (also by a new
line or a space), OR, NOT and `-`, parentheses, `= != > >= < <= : =~ !~` on logName, log_id(), severity, timestamp,
receiveTimestamp, insertId, textPayload, jsonPayload.*, labels.*, resource.type, resource.labels.*, and bare text.
https://cloud.google.com/logging/docs/view/logging-query-language
"""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass, field

import pyarrow as pa

from localcloud.filter_tokens import END, Token, TokenError, split_path, tokenize
from localcloud.logs.store import SEVERITIES, is_found

# The service's own limit: https://cloud.google.com/logging/quotas#log-queries; the others keep SQLite's parser whole.
LONGEST = 20_000
_MOST_TERMS, _DEEPEST = 300, 50
_OPERATORS = ("<=", ">=", "!=", "=~", "!~", "=", "<", ">", ":")
_COLUMNS = {
    "logName": "log_name",
    "insertId": "insert_id",
    "textPayload": "text_payload",
    "resource.type": "resource_type",
    "severity": "severity",
    "timestamp": "timestamp_ns",
    "receiveTimestamp": "receive_timestamp_ns",
}
_DOCUMENTS = {"resource.labels.": "resource_labels", "labels.": "labels", "jsonPayload.": "json_payload"}


class FilterError(ValueError):
    """The filter cannot be read, or uses what is not offered here (answered as INVALID_ARGUMENT)."""


@dataclass
class _Parser:
    text: str
    tokens: list[Token] = field(default_factory=list)
    parameters: list[object] = field(default_factory=list)
    terms: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST:
            raise FilterError(f"The filter has {len(self.text)} characters. Expected at most {LONGEST}")
        try:
            self.tokens = tokenize(self.text, operators=_OPERATORS)
        except TokenError as error:
            rest = self.text[error.position : error.position + 20]
            raise FilterError(f"Unparseable filter at character {error.position}: {rest!r}") from None

    def peek(self) -> Token:
        return self.tokens[0] if self.tokens else END

    def take(self) -> Token:
        if not self.tokens:
            raise FilterError("Unparseable filter: it ends too early")
        return self.tokens.pop(0)

    def disjunction(self) -> str:
        terms = [self.conjunction()]
        while self.peek() == ("word", "OR"):
            self.take()
            terms.append(self.conjunction())
        return f"({' OR '.join(terms)})" if len(terms) > 1 else terms[0]

    def conjunction(self) -> str:
        terms = [self.term()]
        while self.peek()[0] != "end" and self.peek() not in (("word", "OR"), ("mark", ")")):
            if self.peek() == ("word", "AND"):
                self.take()
            terms.append(self.term())
        return f"({' AND '.join(terms)})" if len(terms) > 1 else terms[0]

    def term(self) -> str:
        self.terms, self.depth = self.terms + 1, self.depth + 1
        if self.terms > _MOST_TERMS or self.depth > _DEEPEST:
            raise FilterError(
                f"The filter is too long or too deep. Expected at most {_MOST_TERMS} comparisons, {_DEEPEST} deep"
            )
        compiled = self._term()
        self.depth -= 1
        return compiled

    def _term(self) -> str:
        token = kind, value = self.take()
        if (kind, value) in (("word", "NOT"), ("mark", "-")):
            return f"NOT {self.term()}"
        if (kind, value) == ("mark", "("):
            inside = self.disjunction()
            if self.take() != ("mark", ")"):
                raise FilterError("Unparseable filter: a parenthesis is not closed")
            return inside
        if kind == "word" and value == "log_id" and self.peek() == ("mark", "("):
            return self.log_id()
        if kind not in ("word", "string") or (kind, value) in (("word", "AND"), ("word", "OR")):
            raise FilterError(f"Unparseable filter at {value!r}")
        if self.peek()[0] == "operator" and kind == "word":
            return self.comparison(value, self.take()[1], self.value())
        return self.bare_text(token.value)

    def value(self) -> str:
        sign = ""
        if self.peek() == ("mark", "-"):
            sign = self.take()[1]
        token = self.take()
        if token.kind not in ("word", "string"):
            raise FilterError(f"Unparseable filter: {token.text!r} is not a value")
        return sign + token.value

    def log_id(self) -> str:
        self.take()
        name = self.value()
        if self.take() != ("mark", ")"):
            raise FilterError("Unparseable filter: log_id( is not closed")
        self.parameters.append(f"projects/%/logs/{name.replace('/', '%2F')}")
        return "log_name LIKE ?"

    def bare_text(self, text: str) -> str:
        self.parameters += [text, text]
        return (
            "(instr(lower(coalesce(text_payload, '')), lower(?)) OR instr(lower(coalesce(json_payload, '')), lower(?)))"
        )

    def comparison(self, name: str, operator: str, value: str) -> str:
        expression = self.expression(name)
        if operator in ("=~", "!~"):
            check_pattern(value)
            self.parameters.append(value)
            return f"{'NOT ' if operator == '!~' else ''}coalesce({expression}, '') REGEXP ?"
        if operator == ":":
            if value == "*":
                return f"{expression} IS NOT NULL"
            self.parameters.append(value)
            return f"instr(lower(coalesce({expression}, '')), lower(?)) > 0"
        self.parameters.append(_literal(name, value))
        return f"{expression} IS NOT ?" if operator == "!=" else f"{expression} {operator} ?"

    def expression(self, name: str) -> str:
        if name in _COLUMNS:
            return _COLUMNS[name]
        if name == "resource.labels.job_id":
            return "job_id"  # the indexed column
        for prefix, column in _DOCUMENTS.items():
            if name.startswith(prefix):
                self.parameters.append("$." + ".".join(json.dumps(part) for part in split_path(name[len(prefix) :])))
                return f"CAST(json_extract({column}, ?) AS TEXT)"
        raise FilterError(f"Field not found: '{name}'.")


def compile_filter(text: str) -> tuple[str, list[object]]:
    """Return a SQL condition and its parameters; an empty filter matches everything.

    Raises:
        FilterError: the filter is malformed or names an unknown field.
    """
    if not text.strip():
        return "1", []
    parser = _Parser(text)
    condition = parser.disjunction()
    if parser.tokens:
        raise FilterError(f"Unparseable filter at {parser.tokens[0][1]!r}")
    return condition, parser.parameters


def check_pattern(pattern: str) -> None:
    """Refuse what is no regular expression.

    Raises:
        FilterError: it is none (https://github.com/google/re2/wiki/Syntax).
    """
    try:
        is_found(pattern, "")
    except pa.ArrowInvalid as error:
        raise FilterError(f"Invalid regular expression: {error}") from None


def _literal(name: str, value: str) -> object:
    if name == "severity":
        if value.upper() in SEVERITIES:
            return SEVERITIES[value.upper()]
        if value.isdigit():
            return int(value)
        raise FilterError(f"Unknown severity {value!r}. Expected one of: {', '.join(SEVERITIES)}")
    if name in ("timestamp", "receiveTimestamp"):
        return parse_timestamp_ns(value)
    return value


def parse_timestamp_ns(text: str) -> int:
    """Return nanoseconds since 1970 UTC of an RFC 3339 time (up to nine decimals, `+0000` is taken too) or a date.

    Raises:
        FilterError: it is neither.
    """
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d)?)(?:\.(\d{1,9}))?(Z|z|[+-]\d\d:?\d\d)?", text)
    if match is None:
        raise FilterError(f"Unparseable time {text!r}. Expected for example 2026-01-31T12:00:00.5Z")
    try:
        moment = dt.datetime.fromisoformat(match.group(1) + (match.group(3) or "").upper() * (len(match.group(1)) > 10))
    except ValueError as error:
        raise FilterError(f"Unparseable time {text!r}: {error}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    seconds = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)
    return seconds * 1_000_000_000 + int((match.group(2) or "0").ljust(9, "0"))
