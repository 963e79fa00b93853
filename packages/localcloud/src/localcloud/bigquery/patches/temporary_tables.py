"""Patches CREATE TEMP TABLE: everybody would see the table, for ever, and nobody could make another of the name.

A temporary table is there for the statements of its script, and is dropped when that ends; in a session, for the
session's statements. Source: cloud.google.com/bigquery/docs/multi-statement-queries#temporary_tables. In: a statement,
and the script or session that it is of. Out: the statement with names that no other script and session has.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.kept_fields import asked_configuration
from localcloud.bigquery.types.trees import only_tree, trees_of
from localcloud.untyped import Untyped

_CHANGED = (exp.Insert, exp.TruncateTable, exp.Drop, exp.Alter, exp.Create, exp.Schema)
"""What names a table without an alias."""
_OUTSIDE = "Use of CREATE TEMPORARY TABLE requires a script or session"


class Scope:
    """A script or a session, with its temporary tables: nobody else knows how they are stored."""

    def __init__(self) -> None:
        self._prefix = f"localcloud_temporary_{uuid.uuid4().hex}_"
        self._names: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """Names of its tables, as statements have them."""
        return frozenset(self._names)

    @property
    def tables(self) -> list[str]:
        """Names of its tables, as they are stored."""
        return [f"{self._prefix}{name}" for name in sorted(self._names)]

    def rename(self, statement: str) -> str:
        """Return a statement that names its temporary tables as they are stored."""
        if not self._names and "temp" not in statement.lower():
            return statement
        tree = only_tree(statement)
        if tree is None:
            return statement
        if is_creation(tree):
            self._names.add(tree.this.find(exp.Table).name)
        made = {cte.alias for cte in tree.find_all(exp.CTE)}
        found = [table for table in tree.find_all(exp.Table) if self._has(table) and table.name not in made]
        for table in found:
            if not table.alias and not isinstance(table.parent, _CHANGED):
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
            table.set("this", exp.to_identifier(f"{self._prefix}{table.name}", quoted=True))
        return str(tree.sql(dialect="bigquery")) if found else statement

    def changed_by(self, statement: str) -> list[str]:
        """Return the temporary table that a statement changes, as DuckDB's SQL names it; [] for none."""
        tree = only_tree(statement)
        table = tree.this if isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge) else None
        table = table.this if isinstance(table, exp.Schema) else table
        return [f'"{self._prefix}{table.name}"'] if isinstance(table, exp.Table) and self._has(table) else []

    def stored_name(self, name: str) -> str | None:
        """Return how a table is stored; None: it is none of these, by either name."""
        own = name.removeprefix(self._prefix)
        return f"{self._prefix}{own}" if own in self._names else None

    def _has(self, table: exp.Table) -> bool:
        return not table.db and isinstance(table.this, exp.Identifier) and table.name in self._names


_SCOPE: ContextVar[Scope | None] = ContextVar("scope", default=None)
_NEW_SESSION: ContextVar[str | None] = ContextVar("new_session", default=None)


def stored_name(name: str) -> str | None:
    """Return how a temporary table of the script or session under way is stored; None: there is none of that name."""
    scope = _SCOPE.get()
    return None if scope is None else scope.stored_name(name)


def apply(executor: Untyped, routes: Untyped) -> None:
    """Give each script and session temporary tables of its own."""
    sessions: dict[str, Scope] = {}
    _leave_without_dataset(routes, sessions)
    _note_new_sessions(routes)
    _rename_in_statements(executor)
    _rename_in_dry_runs(routes, sessions)
    _end_with_scripts(routes, sessions)


def is_creation(tree: exp.Expression | None) -> bool:
    """Return whether a statement creates a temporary table."""
    if not isinstance(tree, exp.Create) or tree.kind != "TABLE":
        return False
    return tree.args.get("properties") is not None and tree.args["properties"].find(exp.TemporaryProperty) is not None


def _leave_without_dataset(routes: Untyped, sessions: dict[str, Scope]) -> None:
    """Keep temporary tables out of a request's default dataset."""
    from bqemulator.sql.rewriter import default_dataset

    qualify, collect = routes._apply_default_dataset, default_dataset._collect_cte_names
    temporary: ContextVar[frozenset[str]] = ContextVar("temporary", default=frozenset())

    @functools.wraps(qualify)
    def qualify_others(bq_sql: str, query: Mapping[str, Any], **kwargs: Untyped) -> str:
        scope = sessions.get(_session_of(query) or "")
        token = temporary.set((scope.names if scope else frozenset()) | created_in(bq_sql))
        try:
            return str(qualify(bq_sql, query, **kwargs))
        finally:
            temporary.reset(token)

    routes._apply_default_dataset = qualify_others
    default_dataset._collect_cte_names = lambda root: {*collect(root), *temporary.get()}


def created_in(script: str) -> frozenset[str]:
    """Return names of the temporary tables that a script creates."""
    if "temp" not in script.lower():
        return frozenset()
    return frozenset(tree.this.find(exp.Table).name for tree in trees_of(script) if is_creation(tree))


def _note_new_sessions(routes: Untyped) -> None:
    mint = routes._maybe_mint_session

    def minted(query: dict[str, Untyped]) -> str | None:
        session: str | None = mint(query)
        _NEW_SESSION.set(session)
        return session

    routes._maybe_mint_session = minted


def _rename_in_statements(executor: Untyped) -> None:
    from bqemulator.scripting import interpreter

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_renamed(bq_sql: str, **kwargs: Untyped) -> str:
        scope = _SCOPE.get()
        return str(await translate(scope.rename(bq_sql) if scope else bq_sql, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_renamed
    targets = interpreter._dml_targets

    def targets_to_restore(bq_sql: str, project_id: str) -> list[str]:
        """Return what a transaction that is rolled back restores."""
        scope = _SCOPE.get()
        return [*targets(bq_sql, project_id), *(scope.changed_by(bq_sql) if scope else ())]

    interpreter._dml_targets = targets_to_restore


def _rename_in_dry_runs(routes: Untyped, sessions: dict[str, Scope]) -> None:
    for name in ("_dry_run_response", "_build_dry_run_query_response"):
        original = getattr(routes, name)

        @functools.wraps(original)
        async def respond(*, original: Untyped = original, **kwargs: Untyped) -> Untyped:
            session = _session()
            scope = sessions.get(session) if session else None
            renamed = {"bq_sql": scope.rename(kwargs["bq_sql"])} if scope else {}
            return await original(**{**kwargs, **renamed})

        setattr(routes, name, respond)


def _end_with_scripts(routes: Untyped, sessions: dict[str, Scope]) -> None:
    from bqemulator.domain.errors import InvalidQueryError

    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        session = _session()
        if session is None and _is_alone(bq_sql):
            raise InvalidQueryError(_OUTSIDE)
        scope = sessions.setdefault(session, Scope()) if session else Scope()
        token = _SCOPE.set(scope)
        try:
            return await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        finally:
            _SCOPE.reset(token)
            for name in scope.tables if session is None else ():
                ctx.engine.execute(f'DROP TABLE IF EXISTS "{name}"')

    routes.execute_query_job = execute


def _session() -> str | None:
    """Return the session of the request that is answered now; None for none."""
    return _NEW_SESSION.get() or _session_of(asked_configuration().get("query"))


def _session_of(query: Untyped) -> str | None:
    """Return the session that a query's configuration names; None for none."""
    given = query.get("connectionProperties") if isinstance(query, dict) else None
    pairs = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    named = (each.get("value") for each in pairs if each.get("key") == "session_id")
    return next((name for name in named if isinstance(name, str) and name), None)


def _is_alone(statement: str) -> bool:
    return "temp" in statement.lower() and is_creation(only_tree(statement))
