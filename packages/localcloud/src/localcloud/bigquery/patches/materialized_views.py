"""Patches materialized views: only `CREATE MATERIALIZED VIEW d.v AS …` makes one, letter by letter.

With OPTIONS, PARTITION BY, CLUSTER BY, IF NOT EXISTS or a comment before it, as dbt writes it, a view is made that no
list has and nothing drops; OR REPLACE is refused where there is one. Source:
cloud.google.com/bigquery/docs/reference/standard-sql/data-definition-language#create_materialized_view_statement.
"""

from __future__ import annotations

import dataclasses
import functools
import uuid
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.kept_fields import KeptFields, created_options
from localcloud.bigquery.types.trees import only_tree
from localcloud.untyped import Untyped

_OPTIONS = {"description", "enable_refresh", "friendly_name", "labels", "refresh_interval_minutes", "tags"}
_INTERVAL_MINUTES = 30
"""Between two refreshes where nothing is said: the service's default."""


def apply(executor: Untyped, kept: KeptFields) -> None:
    """Read such statements by their trees, and keep what they say of the view."""
    from bqemulator.scripting import interpreter

    _read_by_trees()
    execute = executor.execute_versioning_ddl

    @functools.wraps(execute)
    async def execute_as_said(ddl: Untyped, ctx: Untyped) -> None:
        tree = getattr(ddl, "tree", None)
        if tree is None:
            await execute(ddl, ctx)
            return
        there = ctx.catalog.get_table(*_place_of(ddl))
        if tree.args.get("exists") and (there is not None) == isinstance(tree, exp.Create):
            return
        options = _options_of(tree)
        if tree.args.get("replace") and there is not None and there.table_type == "MATERIALIZED_VIEW":
            # A statement that fails leaves the view that is there.
            trial = dataclasses.replace(ddl, target_table=f"localcloud_trial_{uuid.uuid4().hex}")
            await execute(trial, ctx)
            for each in (trial, ddl):
                await execute(dataclasses.replace(each, kind=type(ddl.kind).DROP_MATERIALIZED_VIEW), ctx)
        await execute(ddl, ctx)
        if isinstance(tree, exp.Create):
            _keep(ddl, options, ctx, kept)

    for module in (executor, interpreter):
        module.execute_versioning_ddl = execute_as_said


def _read_by_trees() -> None:
    from bqemulator.versioning.ddl import VersioningDDL, VersioningDDLKind, VersioningDDLRouter

    @dataclasses.dataclass(frozen=True)
    class Statement(VersioningDDL):  # type: ignore[misc]  # bqemulator is untyped here
        tree: Untyped = None

    parse = VersioningDDLRouter.parse

    def parse_by_tree(self: Untyped, sql: str) -> Untyped:
        tree = only_tree(sql) if "MATERIALIZED" in sql.upper() else None
        if not isinstance(tree, exp.Create | exp.Drop) or not is_materialized(tree):
            return parse(self, sql)
        table, created = tree.find(exp.Table), isinstance(tree, exp.Create)
        return Statement(
            kind=VersioningDDLKind.CREATE_MATERIALIZED_VIEW if created else VersioningDDLKind.DROP_MATERIALIZED_VIEW,
            target_project=table.catalog or self._project_id,
            target_dataset=table.db,
            target_table=table.name,
            view_query=tree.expression.sql(dialect="bigquery") if created else None,
            tree=tree,
        )

    VersioningDDLRouter.parse = parse_by_tree


def _place_of(ddl: Untyped) -> tuple[str, str, str]:
    return ddl.target_project, ddl.target_dataset, ddl.target_table


def _keep(ddl: Untyped, options: dict[str, Any], ctx: Untyped, kept: KeptFields) -> None:
    """Keep what a statement says of the view that it made."""
    table = ctx.catalog.get_table(*_place_of(ddl))
    ctx.catalog.update_table(table.model_copy(update=created_options(ddl.tree)))
    minutes = float(options.get("refresh_interval_minutes", _INTERVAL_MINUTES))
    view = {
        "query": ddl.view_query,
        "enableRefresh": options.get("enable_refresh", "true").lower() == "true",
        "refreshIntervalMs": str(int(minutes * 60_000)),
    }
    fields = {"materializedView": view, **_tags_of(ddl.tree)}
    kept.keep(".".join(_place_of(ddl)), int(table.creation_time.timestamp() * 1000), fields)


def is_materialized(tree: exp.Expression) -> bool:
    """Return whether a statement makes or drops a materialized view."""
    properties = tree.args.get("properties")
    return bool(tree.args.get("materialized")) or (
        properties is not None and properties.find(exp.MaterializedProperty) is not None
    )


def _options_of(tree: exp.Expression) -> dict[str, Any]:
    """Return the words and numbers of OPTIONS.

    Raises:
        UnsupportedFeatureError: One of them is not offered.
    """
    from bqemulator.domain.errors import UnsupportedFeatureError

    properties = tree.args.get("properties")
    given = [each for each in properties.expressions if type(each) is exp.Property] if properties is not None else []
    refused = next((each.name for each in given if each.name.lower() not in _OPTIONS), None)
    if refused is not None:
        raise UnsupportedFeatureError(
            f"OPTIONS({refused}) of CREATE MATERIALIZED VIEW is not offered by the local cloud."
        )
    return {each.name.lower(): each.args["value"].sql(dialect="bigquery") for each in given}


def _tags_of(tree: exp.Create) -> dict[str, Any]:
    """Return the resource tags of OPTIONS, as a table's document has them; {} for none."""
    options = (each for each in tree.args["properties"].expressions if type(each) is exp.Property)
    given = next((each.args["value"] for each in options if each.name.lower() == "tags"), None)
    pairs = [pair.expressions for pair in given.expressions] if isinstance(given, exp.Array) else []
    return {"resourceTags": {key.name: value.name for key, value in pairs}} if pairs else {}
