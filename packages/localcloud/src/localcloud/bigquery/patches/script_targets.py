"""Patches `SET (a, b) = (SELECT AS STRUCT …)` in scripts: the variables get the struct, or an error, not its fields."""

from __future__ import annotations

import dataclasses

from localcloud.untyped import Untyped


class _InParentheses(tuple[str, ...]):
    """Variables that take a struct's fields; one without parentheses takes a value as it is."""

    __slots__ = ()


def apply() -> None:
    """Give each variable in parentheses its field."""
    from bqemulator.domain.errors import InvalidQueryError
    from bqemulator.scripting.interpreter import ScriptInterpreter
    from bqemulator.scripting.parser import Parser

    parse, execute = Parser._parse_set, ScriptInterpreter._exec_set

    def parse_set(self: Untyped) -> Untyped:
        is_list = self._cursor.peek().value == "("  # behind SET
        assignment = parse(self)
        return dataclasses.replace(assignment, targets=_InParentheses(assignment.targets)) if is_list else assignment

    async def execute_set(self: Untyped, assignment: Untyped) -> None:
        targets = assignment.targets
        if not isinstance(targets, _InParentheses):
            await execute(self, assignment)
            return
        struct = await self._eval_expr_scalar(assignment.source_expr)
        if not isinstance(struct, dict) or len(struct) != len(targets):
            found = f"{len(struct)} fields" if isinstance(struct, dict) else "no struct"
            expected = "Expected a struct with a field for each"
            raise InvalidQueryError(f"SET of {len(targets)} variables in parentheses got {found}. {expected}.")
        for name, value in zip(targets, struct.values(), strict=True):
            self._frames.set(name, value)

    Parser._parse_set, ScriptInterpreter._exec_set = parse_set, execute_set
