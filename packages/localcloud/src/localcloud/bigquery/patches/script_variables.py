"""Patches variables of scripts: a value has the type of its own expression, and names mind case.

| statement | without it |
|---|---|
| `DECLARE day DATE DEFAULT '2024-01-01'` | a text |
| `DECLARE s STRUCT<a INT64> DEFAULT STRUCT(1)` | has no field `a` |
| `DECLARE x DEFAULT 1`, of the type of its value | NULL |
| `DECLARE X INT64; SET x = 1` | refused |

Source: cloud.google.com/bigquery/docs/reference/standard-sql/procedural-language#declare.
"""

from __future__ import annotations

import dataclasses

from localcloud.untyped import Untyped


class _Visible(dict[str, Untyped]):
    """Variables by their names in small letters, found by any."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).lower())

    def __getitem__(self, name: str) -> Untyped:
        return super().__getitem__(name.lower())


def apply() -> None:
    """Give values their variables' types, and let names have capitals."""
    from bqemulator.scripting.frames import FrameStack
    from bqemulator.scripting.interpreter import ScriptInterpreter
    from bqemulator.scripting.parser import Parser

    declare, set_, lookup = FrameStack.declare, FrameStack.set, FrameStack.lookup
    visible, left_over = FrameStack.all_visible, FrameStack.snapshot_current
    read_type = Parser._read_type_name
    execute_declare, execute_set = ScriptInterpreter._exec_declare, ScriptInterpreter._exec_set

    def declare_any(self: Untyped, name: str, type_name: str, value: Untyped = None) -> None:
        declare(self, name.lower(), type_name, value)

    def set_any(self: Untyped, name: str, value: Untyped) -> None:
        set_(self, name.lower(), value)

    async def execute_declare_typed(self: Untyped, statement: Untyped) -> None:
        typed = _typed(statement.default_expr, statement.type_name)
        await execute_declare(self, dataclasses.replace(statement, default_expr=typed))

    async def execute_set_typed(self: Untyped, statement: Untyped) -> None:
        known = self._frames.all_visible()
        name = statement.targets[0]
        if len(statement.targets) == 1 and name in known:
            typed = _typed(statement.source_expr, known[name].type_name)
            statement = dataclasses.replace(statement, source_expr=typed)
        await execute_set(self, statement)

    def read_any_type(self: Untyped) -> str:
        return "ANY" if self._cursor.match_keyword("DEFAULT") else str(read_type(self))

    Parser._read_type_name = read_any_type
    FrameStack.declare, FrameStack.set = declare_any, set_any
    FrameStack.lookup = lambda self, name: lookup(self, name.lower())
    FrameStack.all_visible = lambda self: _Visible(visible(self))
    FrameStack.snapshot_current = lambda self: _Visible(left_over(self))  # by a procedure, for its caller
    ScriptInterpreter._exec_declare, ScriptInterpreter._exec_set = execute_declare_typed, execute_set_typed


def _typed(expression: str | None, kind: str | None) -> str | None:
    """Return an expression of a variable's type."""
    if expression is None or not kind or kind.upper() == "ANY":
        return expression
    return f"CAST(({expression}) AS {kind})"
