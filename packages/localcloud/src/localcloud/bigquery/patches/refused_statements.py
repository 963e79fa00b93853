"""Refuses by name statements that bqemulator does not know, and those whose options it drops without a word.

In: a statement that is about to run. Out: it runs, or 501 with the name of what is not offered.
"""

from __future__ import annotations

import functools
import re

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.text_lengths import limit_of
from localcloud.bigquery.types.trees import trees_of
from localcloud.untyped import Untyped

_NOT_OFFERED = (
    "CREATE MODEL",
    "CREATE EXTERNAL TABLE",
    "CREATE SEARCH INDEX",
    "CREATE VECTOR INDEX",
    "CREATE CAPACITY",
    "CREATE RESERVATION",
    "CREATE ASSIGNMENT",
    "GRANT",
    "LOAD DATA",
    "REVOKE",
    "UNDROP SCHEMA",
)
"""How statements begin; one that creates may replace."""
_BEGUN = {
    **{name: re.compile(name.replace("CREATE ", r"CREATE (OR REPLACE )?") + r"\b") for name in _NOT_OFFERED},
    "CREATE TABLE COPY": re.compile(r"CREATE (OR REPLACE )?TABLE (IF NOT EXISTS )?[\w.-]+ COPY\b"),
}
_QUOTED = re.compile(
    r"""[rRbB]{0,2}(?:'''(?:\\.|(?!''').)*'''|\"{3}(?:\\.|(?!\"{3}).)*\"{3}|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
    r"|`[^`]*`|--[^\n]*|\#[^\n]*|/\*.*?\*/",
    re.DOTALL,
)
"""Texts, names in backticks, and comments."""
_VARIABLE = re.compile(r"@@\w+(?:\.\w+)*")
_SHOWN = {"description", "friendly_name", "labels"}
_OPTIONS = {"TABLE": {*_SHOWN, "expiration_timestamp", "partition_expiration_days"}, "VIEW": _SHOWN}


def apply(routes: Untyped) -> None:
    """Refuse them before they run."""
    from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError

    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(project_id: str, job_id: str, bq_sql: str, *args: Untyped, **kwargs: Untyped) -> Untyped:
        if _has_returning(bq_sql):
            raise InvalidQueryError("Syntax error: Expected end of input but got keyword RETURNING")
        if refused := refused_part(bq_sql):
            raise UnsupportedFeatureError(f"{refused} is not offered by the local cloud.")
        return await original(project_id, job_id, bq_sql, *args, **kwargs)

    routes.execute_query_job = execute


def refused_part(statement: str) -> str:
    """Return what of a statement is not offered; "" for nothing."""
    bare = _QUOTED.sub(lambda found: " " if found.group()[0] in "-#/" else "x", statement)
    words = " ".join(bare.upper().split())
    begun = next((name for name, pattern in _BEGUN.items() if pattern.match(words)), "")
    if begun:
        return begun
    if variable := _VARIABLE.search(bare):
        return f"The system variable {variable.group()}"
    trees = trees_of(statement)
    return next((found for tree in trees if isinstance(tree, exp.Create) and (found := _refused_of(tree))), "")


def _has_returning(statement: str) -> bool:
    """Whether a statement of DML has the RETURNING of other databases, which GoogleSQL does not."""
    if not re.search(r"\bRETURNING\b", statement, re.IGNORECASE):
        return False
    return any(tree.args.get("returning") is not None for tree in trees_of(statement))


def _refused_of(tree: exp.Create) -> str:
    properties = tree.args.get("properties") or exp.Properties()
    if tree.kind not in _OPTIONS or properties.find(exp.MaterializedProperty):
        return ""
    for option in properties.expressions:
        if type(option) is exp.Property and option.name.lower() not in _OPTIONS[tree.kind]:
            return f"OPTIONS({option.name}) of CREATE {tree.kind}"
    if tree.kind != "TABLE":
        return ""
    held = tree.this.expressions if isinstance(tree.this, exp.Schema) and tree.expression is None else []
    for column in tree.find_all(exp.ColumnDef):
        if column.kind is not None and column.kind.is_type("bigdecimal") and column.kind.expressions:
            return f"A number of digits of {column.name} (BIGNUMERIC(p, s))"
        if limit_of(column) and not any(column is each for each in held):
            where = "a struct's field" if tree.expression is None else "CREATE TABLE AS SELECT"
            return f"A length of {column.name} (STRING(n), BYTES(n)) in {where}"
    return ""
