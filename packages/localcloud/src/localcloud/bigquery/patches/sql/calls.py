"""Calls of macros, which put an argument's text wherever they name it.

A macro that names its argument ten times, called with a call of another one, binds the inner one's argument a hundred
times: `CONCAT(CONCAT('a', SUBSTR(s, n)), 'b')` took ten seconds. So each macro of one argument has another form that
evaluates it once, by a lambda; that is slower where the argument is a column.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

_ONCE = "_once"
_BOUND = "_kind"
"""What ends the names of macros that say what is bound, as a constant: no row is looked at."""
_COMPUTED = (exp.Func, exp.Query, exp.Binary, exp.Bracket)


def call(name: str, *values: exp.Expression | int | str, type_: str | None = "INT64") -> exp.Expression:
    """Return a call of a macro.

    Args:
        name: Of the macro.
        values: Expressions, numbers and texts.
        type_: That is said beside it, because sqlglot asks for it where a struct has the call, in UNNEST; None: that of
            an argument, which may be several.
    """
    literals = []
    for value in values:
        if isinstance(value, exp.Expression):
            literals.append(value.copy())
        else:
            literals.append(exp.Literal.number(value) if isinstance(value, int) else exp.Literal.string(value))
    if len(literals) == 1 and not name.endswith(_BOUND) and literals[0].find(*_COMPUTED):
        name += _ONCE
    found = exp.Anonymous(this=name, expressions=literals)
    return exp.cast(found, type_, dialect="bigquery") if type_ else found


def with_once(macros: Mapping[str, str]) -> dict[str, str]:
    """Return macros and the forms that evaluate their argument once, of those that have one."""
    found = dict(macros)
    for head in macros:
        name, _, parameters = head.partition("(")
        if parameters.count(",") == 0 and parameters != ")":
            found[f"{name}{_ONCE}(computed)"] = (
                f"list_extract(list_transform([computed], lambda value: {name}(value)), 1)"
            )
    return found
