"""A parser of GoogleSQL alone: sqlglot's for BigQuery without the operators, joins and statements of other databases.

In: a statement. Out: its trees, with the functions and types that it names, as they are written; both are lost in the
trees, where `LISTAGG` is STRING_AGG and VARCHAR is STRING.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot.dialects.bigquery import BigQuery  # type: ignore[import-not-found]
from sqlglot.parsers.bigquery import BigQueryParser  # type: ignore[import-not-found]
from sqlglot.tokens import Token, TokenType  # type: ignore[import-not-found]

from localcloud.untyped import Untyped

_COMPARED = (TokenType.BETWEEN, TokenType.IN, TokenType.IS, TokenType.LIKE)
_EQUAL = (TokenType.EQ, TokenType.NEQ)
_FACTORS = (TokenType.SLASH, TokenType.STAR)
_TERMS = (TokenType.DASH, TokenType.PLUS)
_OF_LIKE = ("ANY", "ALL", "SOME")
_NULLNESS = (TokenType.ISNULL, TokenType.NOTNULL)
_SUBSTRINGS = ("SUBSTRING", "SUBSTR")
_QUERIES = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)
_OPENED = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSED = (TokenType.R_PAREN, TokenType.R_BRACKET)
_WITH_PARTS = ("ARRAY", "STRUCT", "RANGE")
_AFTER_ARGUMENTS = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.HAVING)


class Written(NamedTuple):
    """A name as a statement has it.

    Attributes:
        name: With what stands before it, as in `NET.HOST`; of a function of a dataset with the dataset.
        line: Where it begins, from 1.
        column: The same.
        arguments: How many a function is called with; None: it is called with a query, or it is a type.
    """

    name: str
    line: int
    column: int
    arguments: int | None = None


class Reading(NamedTuple):
    """What was read.

    Attributes:
        trees: Of the statements.
        functions: Those that are called.
        types: Those that values are given.
    """

    trees: list[exp.Expression]
    functions: list[Written]
    types: list[Written]


def read(statements: str) -> Reading:
    """Read statements.

    Raises:
        sqlglot.errors.SqlglotError: They are not GoogleSQL.
        RecursionError: They are nested too deep.
    """
    dialect = _GoogleSQL()
    parser = dialect.parser()
    trees = parser.parse(dialect.tokenize(statements), statements)
    return Reading([tree for tree in trees if tree is not None], parser.functions, parser.types)


def _arguments(tokens: Sequence[Token]) -> int | None:
    """Count the arguments of a call, from its parenthesis on; what follows them, as ORDER BY, is none."""
    inside = tokens[1] if len(tokens) > 1 else None
    if inside is None or inside.token_type in _QUERIES:
        return None
    depth, of_type, commas = 0, 0, 0
    for before, token in pairwise([tokens[0], *tokens]):
        depth += (token.token_type in _OPENED) - (token.token_type in _CLOSED)
        if depth == 0:
            break
        if token.token_type == TokenType.LT and (of_type or before.text.upper() in _WITH_PARTS):
            of_type += 1
        elif token.token_type == TokenType.GT and of_type:
            of_type -= 1
        elif depth == 1 and token.token_type in _AFTER_ARGUMENTS:
            break
        commas += depth == 1 and not of_type and token.token_type == TokenType.COMMA
    return 0 if inside.token_type == TokenType.R_PAREN else commas + 1


def _only(table: Untyped, kept: tuple[TokenType, ...]) -> Untyped:
    return {kind: value for kind, value in table.items() if kind in kept}


class _Parser(BigQueryParser):  # type: ignore[misc]  # sqlglot has no types
    EQUALITY = _only(BigQueryParser.EQUALITY, _EQUAL)
    TERM = _only(BigQueryParser.TERM, _TERMS)
    FACTOR = _only(BigQueryParser.FACTOR, _FACTORS)
    RANGE_PARSERS = _only(BigQueryParser.RANGE_PARSERS, _COMPARED)
    COLUMN_OPERATORS = _only(BigQueryParser.COLUMN_OPERATORS, (TokenType.DOT,))
    CAST_COLUMN_OPERATORS: Untyped = set()
    LAMBDAS = _only(BigQueryParser.LAMBDAS, (TokenType.FARROW,))
    JOIN_METHODS: Untyped = set()
    JOIN_KINDS: Untyped = {TokenType.CROSS, TokenType.INNER, TokenType.OUTER}

    def reset(self) -> None:
        super().reset()
        self.functions: list[Written] = []
        self.types: list[Written] = []
        self._depth = 0
        self._called: dict[int, Written] = {}
        self._typed: dict[int, Written] = {}

    def _advance(self, times: int = 1) -> None:
        super()._advance(times)
        if times < 0:  # what was read behind this place is read again, as something else
            for found in (self._called, self._typed):
                for place in [place for place in found if place >= self._index]:
                    del found[place]

    def _parse_statement(self) -> Untyped:
        self._depth += 1
        statement = super()._parse_statement()
        self._depth -= 1
        if not self._depth:
            self.functions += self._called.values()
            self.types += self._typed.values()
            self._called, self._typed = {}, {}
        return statement

    def _parse_function_call(self, *args: Untyped, **kwargs: Untyped) -> Untyped:
        place, token, following = self._index, self._curr, self._next
        call = super()._parse_function_call(*args, **kwargs)
        if call is not None and following is not None and following.token_type == TokenType.L_PAREN:
            if token.text.upper() in _SUBSTRINGS:
                self._require_commas(place)
            if token.text.upper() == "TRIM" and self._tokens[place + 2].text.upper() in self.TRIM_TYPES:
                self._require_commas(place)
            path = [*self._path_before(place), token.text]
            if not (token.text.upper() in _OF_LIKE and self._is_after(place, TokenType.LIKE)):
                count = _arguments(self._tokens[place + 1 : self._index])
                self._called[place] = Written(".".join(path), token.line, token.col - len(token.text) + 1, count)
        return call

    def _parse_types(self, *args: Untyped, **kwargs: Untyped) -> Untyped:
        place, token = self._index, self._curr
        found = super()._parse_types(*args, **kwargs)
        if isinstance(found, exp.DataType) and token is not None and self._index > place:
            name = token.text
            if any(each.token_type == TokenType.L_BRACKET for each in self._tokens[place : self._index]):
                name = self._find_sql(token, self._tokens[self._index - 1])
            self._typed[place] = Written(name, token.line, token.col - len(token.text) + 1)
        return found

    def _parse_range(self, *args: Untyped, **kwargs: Untyped) -> Untyped:
        found = super()._parse_range(*args, **kwargs)
        if self._prev is not None and self._prev.token_type in _NULLNESS and isinstance(found, exp.Is | exp.Not):
            self.raise_error("Unexpected keyword", self._prev)
        return found

    def _is_after(self, place: int, kind: TokenType) -> bool:
        return place > 0 and self._tokens[place - 1].token_type == kind

    def _require_commas(self, place: int) -> None:
        """Refuse `SUBSTRING(text FROM 1 FOR 2)` and `TRIM(BOTH 'x' FROM text)`."""
        depth = 0
        for token in self._tokens[place : self._index]:
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth == 1 and token.token_type in (TokenType.FROM, TokenType.FOR):
                self.raise_error("Unexpected keyword", token)

    def _path_before(self, place: int) -> list[str]:
        """Return the names that a name belongs to, outermost first."""
        names: list[str] = []
        while place > 1 and self._is_after(place, TokenType.DOT):
            place -= 2
            names.insert(0, self._tokens[place].text)
        return names


class _GoogleSQL(BigQuery):  # type: ignore[misc]  # sqlglot has no types
    Parser = _Parser


def tokens_of(statements: str) -> list[Token]:
    """Return the words and signs of statements.

    Raises:
        sqlglot.errors.SqlglotError: A text or comment has no end.
    """
    return list(_GoogleSQL().tokenize(statements))


def first_words(tokens: list[Token]) -> Iterator[list[Token]]:
    """Give the tokens of each statement."""
    found: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            yield found
            found = []
        else:
            found.append(token)
    yield found
