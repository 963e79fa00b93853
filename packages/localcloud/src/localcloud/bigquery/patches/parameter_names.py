"""Patches named parameters: `@name` is replaced also in comments and in strings, and a name in backticks nowhere.

A name in backticks that is no identifier, as `1param`, is lost on the way: until it is bound it has another.
Then there are more values than DuckDB sees markers, or fewer. In: a statement in DuckDB's SQL after translation, and
REST's queryParameters. Out: the statement with one marker per use, and the values in the order of the markers.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.untyped import Untyped

# Strings, quoted identifiers and comments pass unchanged; what is left are uses.
_NAMED = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|\#[^\n]*|/\*.*?\*/"""
    r"""|[@$](?P<quote>["`]?)(?P<name>[^\W\d]\w*)(?P=quote)""",
    re.DOTALL,
)
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def apply() -> None:
    """Bind named parameters where they are used."""
    from bqemulator.sql import parameters

    parameters._bind_named = lambda sql, values: bind_named(sql, values, parameters)


def rewrite(tree: exp.Expression) -> bool:
    """Give parameters of a statement's tree names that are identifiers; tell whether any had none."""
    found = False
    for parameter in tree.find_all(exp.Parameter):
        name = parameter.name.lower()
        is_quoted = isinstance(parameter.this, exp.Identifier) and parameter.this.quoted  # scripts have theirs as `@1`
        if is_quoted and name != _identifier(name):
            parameter.set("this", exp.to_identifier(_identifier(name)))
            found = True
    return found


def _identifier(name: str) -> str:
    """Return a name, or one made of its bytes where it is no identifier."""
    return name if _IDENTIFIER.fullmatch(name) else f"localcloud_parameter_{name.encode().hex()}"


def bind_named(sql: str, parameters: list[dict[str, Any]], convert: Untyped) -> tuple[str, list[Any]]:
    """Replace each use of a named parameter with a marker.

    Args:
        sql: The statement, parameters as `@name` or `$name`; the name may be quoted, as SQLAlchemy sends it.
        parameters: REST's QueryParameter objects, all with names.
        convert: bqemulator's module `sql.parameters`, which knows the values' types.

    Returns:
        The statement and the values in the order of its markers.
    """
    known = {_identifier(parameter["name"].lower()): parameter for parameter in parameters}  # names do not mind case
    values: list[Any] = []

    def replace(match: re.Match[str]) -> str:
        parameter = known.get((match["name"] or "").lower())
        if parameter is None:
            return match[0]
        value = convert._extract_value(parameter)
        values.append(value)
        return str(convert._placeholder_for(value, parameter))

    return _NAMED.sub(replace, sql), values
