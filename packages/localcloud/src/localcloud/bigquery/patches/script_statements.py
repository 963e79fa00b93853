"""Patches scripts: REPEAT, CASE and ASSERT would be syntax errors, and a RAISE that nothing catches is not offered.

The three are read as what they stand for: LOOP that is left when UNTIL holds, IF, and RAISE where IF does not. Source:
cloud.google.com/bigquery/docs/reference/standard-sql/procedural-language, and `debugging-statements` beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from localcloud.untyped import Untyped


def apply() -> None:
    """Read them, and end a script with the error that it raises."""
    from bqemulator.scripting.exceptions import ScriptRaise
    from bqemulator.scripting.interpreter import ScriptInterpreter
    from bqemulator.scripting.parser import Parser

    parse, run = Parser._parse_statement, ScriptInterpreter.run

    def parse_statement(self: Untyped) -> Untyped:
        reader = _READERS.get(_word(self))
        return parse(self) if reader is None else reader(self)

    @functools.wraps(run)
    async def run_to_error(self: Untyped, source: str) -> Untyped:
        try:
            return await run(self, source)
        except ScriptRaise as raised:
            raise raised.error from raised

    Parser._parse_statement, ScriptInterpreter.run = parse_statement, run_to_error


def _word(parser: Untyped) -> str:
    """Return the word that comes next, in capitals; "" for a quoted name, and what is no word."""
    token = parser._cursor.current
    is_word = token.kind in ("IDENT", "KEYWORD") and not token.raw_value.startswith("`")
    return str(token.value).upper() if is_word else ""


def _take(parser: Untyped, word: str) -> None:
    from bqemulator.domain.errors import InvalidQueryError

    if _word(parser) != word:
        found = parser._cursor.current.value or "end of script"
        raise InvalidQueryError(f"Syntax error: Expected keyword {word} but got {found}")
    parser._cursor.advance()


def _read_repeat(parser: Untyped) -> Untyped:
    """Read REPEAT … UNTIL condition END REPEAT."""
    from bqemulator.scripting import ast

    _take(parser, "REPEAT")
    body = []
    while not parser._cursor.at_eof() and _word(parser) != "UNTIL":
        statement = parser._parse_statement()
        body += [] if statement is None else [statement]
    _take(parser, "UNTIL")
    condition = parser._capture_expr_until((), stop_keywords=("END",))
    _take(parser, "END")
    _take(parser, "REPEAT")
    parser._consume_optional_semicolon()
    leave = ast.IfStmt(branches=((condition, (ast.BreakStmt(),)),), else_body=None)
    return ast.LoopStmt(body=(*body, leave))


def _read_case(parser: Untyped) -> Untyped:
    """Read CASE [value] WHEN … THEN statements … [ELSE statements] END CASE."""
    from bqemulator.scripting import ast

    _take(parser, "CASE")
    value = parser._capture_expr_until((), stop_keywords=("WHEN",))
    branches = []
    while _word(parser) == "WHEN":
        _take(parser, "WHEN")
        condition = parser._capture_expr_until((), stop_keywords=("THEN",))
        _take(parser, "THEN")
        body = tuple(parser._parse_statements(("WHEN", "ELSE", "END")))
        branches.append((f"({value}) = ({condition})" if value else condition, body))
    otherwise = None
    if _word(parser) == "ELSE":
        _take(parser, "ELSE")
        otherwise = tuple(parser._parse_statements(("END",)))
    _take(parser, "END")
    _take(parser, "CASE")
    parser._consume_optional_semicolon()
    return ast.IfStmt(branches=tuple(branches), else_body=otherwise)


def _read_assert(parser: Untyped) -> Untyped:
    """Read ASSERT condition [AS 'description']."""
    from bqemulator.scripting import ast

    _take(parser, "ASSERT")
    condition = parser._capture_expr_until((";",), stop_keywords=("AS",))
    described = ""
    if _word(parser) == "AS":
        _take(parser, "AS")
        described = parser._capture_expr_until((";",), stop_keywords=())
    parser._consume_optional_semicolon()
    message = f"CONCAT('Assertion failed: ', {described})" if described else "'Assertion failed'"
    return ast.IfStmt(branches=((condition, ()),), else_body=(ast.RaiseStmt(message_expr=message),))


_READERS: dict[str, Callable[[Untyped], Untyped]] = {
    "REPEAT": _read_repeat,
    "CASE": _read_case,
    "ASSERT": _read_assert,
}
