"""Google's list filters (https://google.aip.dev/160): `labels.run="a" AND NOT state="JOB_STATE_FAILED"`.

Comes in: an expression and the fields it may name. Goes out: a predicate over messages. `OR` binds tighter than `AND`,
as in the standard.
"""

from __future__ import annotations

import datetime
import fnmatch
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from localcloud.filter_tokens import END, Token, TokenError, split_path, tokenize
from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.methods import Message, raw

Predicate = Callable[[Message], bool]
_OPERATORS = ("<=", ">=", "!=", "=", "<", ">", ":")
_QUOTES = "\"'"
_PLAIN = re.compile(r"[^.\"']+(?:\.[^.\"']+)*")  # a value without quotes
_NAME = re.compile(r"""[^."']+(?:\.(?:[^."']+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))?""")  # of a field, or labels.key
_LONGEST, _DEEPEST, _SHOWN = 16_384, 50, 500
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def everything(message: Message) -> bool:
    """Return the predicate of an empty filter."""
    del message
    return True


def compile_filter(expression: str, fields: Mapping[str, str]) -> Predicate:
    """Return a predicate for a filter expression; an empty one lets everything through.

    Args:
        expression: The `filter` of a list request.
        fields: Names that may be used (snake_case) and the message field each stands for; `labels` means the label map.
            The value `#id` stands for the last part of the resource's name; `[]` before one for a list, which has
            (`:`) a value or has it not.

    Raises:
        InvalidArgument: It cannot be parsed, or names another field.
    """
    if not expression.strip():
        return everything
    return _Parser(expression, fields).parse()


class _Parser:
    def __init__(self, expression: str, fields: Mapping[str, str]) -> None:
        self._expression = expression
        self._fields = fields
        if len(expression) > _LONGEST:
            raise self._wrong(f"it has {len(expression)} characters, at most {_LONGEST} are taken")
        try:
            self._tokens = tokenize(expression, operators=_OPERATORS, quotes=_QUOTES)
        except TokenError as error:
            character = expression[error.position :].lstrip()[:1]
            raise self._wrong(f"unexpected {character!r} at position {error.position}") from None
        self._at = 0
        self._depth = 0

    def _wrong(self, what: str) -> InvalidArgument:
        shown = self._expression if len(self._expression) <= _SHOWN else f"{self._expression[:_SHOWN]}…"
        example = 'labels.key="value" AND NOT display_name="x"'
        return InvalidArgument(f"Invalid filter {shown!r}: {what}. Expected such as {example}.", field="filter")

    def _peek(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def parse(self) -> Predicate:
        result = self._conjunction()
        if self._peek()[0] != "end":
            raise self._wrong(f"unexpected {self._peek()[1]!r}")
        return result

    def _conjunction(self) -> Predicate:
        terms = [self._disjunction()]
        while self._peek()[0] != "end" and self._peek() != ("mark", ")"):
            if self._peek() == ("word", "AND"):
                self._next()
            terms.append(self._disjunction())
        return lambda message: all(term(message) for term in terms)

    def _disjunction(self) -> Predicate:
        terms = [self._negation()]
        while self._peek() == ("word", "OR"):
            self._next()
            terms.append(self._negation())
        return lambda message: any(term(message) for term in terms)

    def _negation(self) -> Predicate:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong(f"it is more than {_DEEPEST} levels deep")
        predicate = self._negated()
        self._depth -= 1
        return predicate

    def _negated(self) -> Predicate:
        token = self._peek()
        if token in (("word", "NOT"), ("mark", "-")):
            self._next()
            inner = self._negation()
            return lambda message: not inner(message)
        if token == ("mark", "("):
            self._next()
            inner = self._conjunction()
            if self._next() != ("mark", ")"):
                raise self._wrong("a ')' is missing")
            return inner
        return self._restriction()

    def _restriction(self) -> Predicate:
        kind, word = self._next()
        if kind != "word":
            raise self._wrong(f"expected a field name, found {word or 'the end'!r}")
        name, *parts = split_path(word, _QUOTES) or [word]
        name = re.sub(r"(?<=[a-z])([A-Z])", lambda m: "_" + m[1].lower(), name)
        field = self._fields.get(name)
        if field is None:
            raise self._wrong(f"unknown field {name!r}; it may name: {', '.join(sorted(self._fields))}")
        if len(parts) > (field == "labels") or not _NAME.fullmatch(word):
            raise self._wrong(f"{word!r} has parts; expected {name} alone, or labels.key")
        kind, op = self._next()
        if kind != "operator":
            raise self._wrong(f"expected an operator behind {name!r}, found {op or 'the end'!r}")
        value = self._value()
        if field == "labels":
            return self._label_predicate(parts[0] if parts else None, op, value)
        return self._field_predicate(field, op, value)

    def _value(self) -> str:
        sign = self._next().text if self._peek() == ("mark", "-") else ""
        token = self._next()
        if not (token.kind == "string" and not sign) and not (token.kind == "word" and _PLAIN.fullmatch(token.text)):
            raise self._wrong(f"expected a value, found {sign + token.text or 'the end'!r}")
        return sign + token.value

    def _label_predicate(self, key: str | None, op: str, value: str) -> Predicate:
        if key is None:
            if op != ":":
                raise self._wrong("labels are compared one by one: labels.key=value")
            return lambda message: value in raw(message).labels
        if op == ":":
            return lambda message: key in raw(message).labels and fnmatch.fnmatchcase(raw(message).labels[key], value)
        if op == "=":
            return lambda message: key in raw(message).labels and raw(message).labels[key] == value
        if op == "!=":
            return lambda message: raw(message).labels.get(key) != value
        raise self._wrong(f"labels do not support {op!r}")

    def _field_predicate(self, field: str, op: str, value: str) -> Predicate:
        if field.startswith("[]"):
            if op != ":":
                raise self._wrong(f"{field[2:]} does not support {op!r}")
            return lambda message: value in getattr(raw(message), field[2:])
        if field.endswith("_time"):
            moment = self._moment(value)
            compare = {**_COMPARISONS, "=": operator.eq, "!=": operator.ne}.get(op)
            if compare is None:
                raise self._wrong(f"{field} does not support {op!r}")
            return lambda message: compare(getattr(raw(message), field).ToDatetime(datetime.UTC), moment)
        if op in _COMPARISONS:
            raise self._wrong(f"{field} does not support {op!r}")
        if op == ":":
            pattern = value if "*" in value else f"*{value}*"
            return lambda message: fnmatch.fnmatchcase(_text(message, field), pattern)
        return lambda message: (_text(message, field) == value) == (op == "=")

    def _moment(self, value: str) -> datetime.datetime:
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise self._wrong(f"{value!r} is not a time in RFC 3339 form") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _text(message: Message, field: str) -> str:
    inner = raw(message)
    if field == "#id":
        return str(inner.name).rsplit("/", 1)[-1]
    descriptor = inner.DESCRIPTOR.fields_by_name[field]
    value = getattr(inner, field)
    if descriptor.enum_type is not None:
        return str(descriptor.enum_type.values_by_number[value].name)
    return str(value).lower() if isinstance(value, bool) else str(value)
