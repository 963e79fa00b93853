"""Patches EXECUTE IMMEDIATE: what its statement sees, and what is left in the variables behind INTO.

| statement | without it |
|---|---|
| `EXECUTE IMMEDIATE 'SELECT @a' USING 1 AS a` | refused: nobody gives `@a` |
| `EXECUTE IMMEDIATE "SELECT '?', ?" USING 1` | refused: two are asked for |
| `… USING [1, 2]` | refused: an array ends at its comma |
| `EXECUTE IMMEDIATE 'SELECT v'`, of a variable of the script | its value; variables are not seen |
| `… INTO v` of no row | refused; the variable is NULL |

Source: cloud.google.com/bigquery/docs/reference/standard-sql/procedural-language#execute_immediate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[import-not-found]

from localcloud.bigquery.types.trees import only_tree
from localcloud.untyped import Untyped

_VARIABLE = "localcloud_given_"


def apply() -> None:
    """Run the statement in a frame of its own, which has what USING gives."""
    from bqemulator.domain.errors import InvalidQueryError
    from bqemulator.scripting.frames import FrameStack
    from bqemulator.scripting.interpreter import ScriptInterpreter

    async def execute(self: Untyped, statement: Untyped) -> None:
        text = await self._eval_expr_scalar(statement.sql_expr)
        if not isinstance(text, str):
            raise InvalidQueryError("EXECUTE IMMEDIATE requires a STRING expression")
        given = _read(statement.using_exprs)
        outer, inner = self._frames, FrameStack()
        inner.tables = outer.tables
        inner.push("root")
        for number, (_, expression) in enumerate(given):
            inner.declare(f"{_VARIABLE}{number}", "ANY", await self._eval_expr_scalar(expression))
        text = with_variables(text, [name for name, _ in given])
        self._frames = inner
        try:
            if not statement.into_names:
                await self._run_statement_with_params(text, [])
                return
            rows = (await self._run_query_with_params(text, [])).to_pylist()
        finally:
            self._frames = outer
        for name, value in _assigned(statement.into_names, rows).items():
            outer.set(name, value)

    ScriptInterpreter._exec_execute_immediate = execute


def _read(expressions: Sequence[str]) -> list[tuple[str, str]]:
    """Return names, "" for none, and expressions of what USING gives.

    Raises:
        InvalidQueryError: It cannot be read, or some of it has names and some has none.
    """
    from bqemulator.domain.errors import InvalidQueryError

    if not expressions:
        return []
    tree = only_tree(f"SELECT {', '.join(expressions)}")  # commas inside of brackets have parted some of them
    if not isinstance(tree, exp.Select):
        raise InvalidQueryError("Syntax error: Unexpected expression in the USING clause of EXECUTE IMMEDIATE")
    given = [
        (each.alias, each.this.sql(dialect="bigquery")) if isinstance(each, exp.Alias) else ("", each.sql("bigquery"))
        for each in tree.expressions
    ]
    if len({bool(name) for name, _ in given}) > 1:
        raise InvalidQueryError("USING clause cannot mix named and positional parameters")
    return given


def with_variables(text: str, names: Sequence[str]) -> str:
    """Return a statement with a variable in the place of each parameter.

    Args:
        text: The statement.
        names: Of what is given; "" for each where it has none, and is meant by its place.

    Raises:
        InvalidQueryError: A parameter is not given, or something given is not asked for.
    """
    from bqemulator.domain.errors import InvalidQueryError

    tokens: list[Token] = sqlglot.tokenize(text, read="bigquery")
    numbers = {name.lower(): number for number, name in enumerate(names) if name}
    places, parts, end = 0, [], 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type == TokenType.PLACEHOLDER and not numbers:
            number, last = places, token
            places += 1
        elif _is_named(before, token, after):
            number, last = _number_of(after.text, numbers), after
        else:
            continue
        variable = f"{_VARIABLE}{number}"
        # In brackets its name is not that of a column of the result; of a struct's field it is not.
        parts += [text[end : token.start], variable if text[last.end + 1 :].startswith(".") else f"({variable})"]
        end = last.end + 1
    if not numbers and places != len(names):
        given = f"{len(names)} given, {places} asked for"
        raise InvalidQueryError(f"Query parameters of EXECUTE IMMEDIATE do not fit its USING clause: {given}")
    return "".join([*parts, text[end:]])


def _is_named(before: Token | None, token: Token, after: Token | None) -> bool:
    """Return whether a token and the one behind it are `@name`; `@@name` is a system variable."""
    if token.token_type != TokenType.PARAMETER or after is None or after.start != token.end + 1:
        return False
    others = [before, after]
    return not any(other is not None and other.token_type == TokenType.PARAMETER for other in others)


def _number_of(name: str, numbers: Mapping[str, int]) -> int:
    from bqemulator.domain.errors import InvalidQueryError

    if name.lower() not in numbers:
        raise InvalidQueryError(f"Query parameter '{name}' not found")
    return numbers[name.lower()]


def _assigned(names: Sequence[str], rows: Sequence[Mapping[str, Untyped]]) -> dict[str, Untyped]:
    """Return the variables behind INTO with the only row's values, in their order; NULL: there is no row."""
    from bqemulator.domain.errors import InvalidQueryError

    if len(rows) > 1:
        raise InvalidQueryError("EXECUTE IMMEDIATE INTO clause returned more than one row")
    values = list(rows[0].values()) if rows else [None] * len(names)
    if len(values) != len(names):
        raise InvalidQueryError(
            f"EXECUTE IMMEDIATE INTO clause has {len(names)} variables, but the query returned {len(values)} columns"
        )
    return dict(zip(names, values, strict=True))
