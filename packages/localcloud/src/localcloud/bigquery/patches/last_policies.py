"""Patches the last row access policy of a table: deleted like any other, it would show all rows to everybody.

REST wants `force` for it, and SQL `DROP ALL ROW ACCESS POLICIES`, which bqemulator does not have. A dry run of such a
statement changed the policies.
https://cloud.google.com/bigquery/docs/managing-row-level-security#delete_row-level_access_policy
"""

from __future__ import annotations

import contextvars
import functools
import re
from collections.abc import Collection
from urllib.parse import parse_qs

from localcloud.untyped import Untyped

_ONE = re.compile(r".*/tables/[^/]+/rowAccessPolicies/[^/:]+")
_DROP_ALL = re.compile(r"\s*DROP\s+ALL\s+ROW\s+ACCESS\s+POLICIES\s+ON\s+(?P<table>[`\w.-]+)\s*;?\s*", re.IGNORECASE)
_TYPES = {"CREATE_ROW_ACCESS_POLICY", "DROP_ROW_ACCESS_POLICY"}
_FORCED: contextvars.ContextVar[bool] = contextvars.ContextVar("delete is forced", default=False)


def apply(executor: Untyped, routes: Untyped) -> None:
    """Keep the last policy unless somebody says that all may go."""
    from bqemulator.row_access.policy import RowAccessPolicyManager

    _guard(RowAccessPolicyManager)
    run, classify = executor._maybe_run_row_access_ddl, executor._classify_rap_ddl

    @functools.wraps(run)
    def run_all(project_id: str, bq_sql: str, ctx: Untyped) -> Untyped:
        found = _DROP_ALL.fullmatch(bq_sql)
        if found is None:
            return run(project_id, bq_sql, ctx)
        project, dataset, table = executor._resolve_table_parts(found["table"], project_id)
        place = {"project_id": project, "dataset_id": dataset, "table_id": table}
        ctx.row_access._validate_target(project, dataset, table)
        names = tuple(each.policy_id for each in ctx.catalog.list_row_access_policies(project, dataset, table))
        if names:
            ctx.row_access.batch_delete(**place, policy_ids=names, force=True)
        return executor.pa.table({})

    @functools.wraps(classify)
    def classify_all(bq_sql: str) -> str:
        return "DROP_ROW_ACCESS_POLICY" if _DROP_ALL.fullmatch(bq_sql) else str(classify(bq_sql))

    executor._maybe_run_row_access_ddl = run_all
    executor._classify_rap_ddl = classify_all
    routes._DESTRUCTIVE_STATEMENT_TYPES = frozenset(routes._DESTRUCTIVE_STATEMENT_TYPES) | _TYPES


def _guard(manager: Untyped) -> None:
    """Refuse deletes that leave a table without a policy, where they are not forced."""
    delete, batch_delete = manager.delete, manager.batch_delete

    @functools.wraps(delete)
    def delete_checked(
        self: Untyped, *, project_id: str, dataset_id: str, table_id: str, policy_id: str, **kwargs: Untyped
    ) -> None:
        if not _FORCED.get():
            _check(self, (project_id, dataset_id, table_id), {policy_id})
        delete(self, project_id=project_id, dataset_id=dataset_id, table_id=table_id, policy_id=policy_id, **kwargs)

    @functools.wraps(batch_delete)
    def batch_delete_checked(
        self: Untyped,
        *,
        project_id: str,
        dataset_id: str,
        table_id: str,
        policy_ids: tuple[str, ...],
        force: bool = False,
    ) -> None:
        if not force:
            _check(self, (project_id, dataset_id, table_id), set(policy_ids))
        batch_delete(
            self, project_id=project_id, dataset_id=dataset_id, table_id=table_id, policy_ids=policy_ids, force=force
        )

    manager.delete, manager.batch_delete = delete_checked, batch_delete_checked


def _check(manager: Untyped, table: tuple[str, str, str], names: Collection[str]) -> None:
    from bqemulator.domain.errors import InvalidQueryError

    stored = {each.policy_id for each in manager._catalog.list_row_access_policies(*table)}
    if stored and stored <= set(names):
        project, dataset, name = table
        raise InvalidQueryError(
            f"Cannot delete the last row access policy on table {project}:{dataset}.{name}: everybody who may read it"
            " would see all rows. Set force to true, or use DROP ALL ROW ACCESS POLICIES."
        )


class ForcedDeletes:
    """Reads `force` of a request that deletes a policy, which bqemulator's routes do not look at (ASGI)."""

    def __init__(self, app: Untyped) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        if scope.get("method") != "DELETE" or not _ONE.fullmatch(scope.get("path", "")):
            await self._app(scope, receive, send)
            return
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        token = _FORCED.set(query.get("force", [""])[-1].lower() == "true")
        try:
            await self._app(scope, receive, send)
        finally:
            _FORCED.reset(token)
