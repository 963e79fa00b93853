"""Patches ALTER TABLE … RENAME TO: DuckDB's table had its new name, the catalog the old one, and the answer was 501.

A table keeps all that is known of it under its new name: description, labels, partitions, options, expiration, row
access policies, and the time when it was made. What it was before is not known under the new name: asking for that time
is refused.
https://cloud.google.com/bigquery/docs/reference/standard-sql/data-definition-language#alter_table_rename_to_statement
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches.expirations import Expirations
from localcloud.bigquery.patches.kept_fields import KeptFields
from localcloud.untyped import Untyped


def apply(executor: Untyped, expiring: Expirations, kept: KeptFields) -> None:
    """Let the catalog follow each statement that has renamed a table, in a script too."""
    from bqemulator.catalog import ddl_sync
    from bqemulator.scripting import interpreter

    original = executor.sync_dropped_object

    @functools.wraps(original)
    def follow(bq_sql: str, project_id: str, ctx: Untyped) -> None:
        original(bq_sql, project_id, ctx)
        for target, name in renames_in(bq_sql):
            project, dataset, old = ddl_sync._split_target(target, project_id)
            if dataset and (table := ctx.catalog.get_table(project, dataset, old)) is not None:
                _rename(ctx, table, name, expiring, kept)

    executor.sync_dropped_object = interpreter.sync_dropped_object = follow


def renames_in(sql: str) -> Iterator[tuple[exp.Table, str]]:
    """Yield the tables that a statement, or each of a script, renames, with their new names."""
    if "rename" not in sql.lower():
        return
    try:
        trees = sqlglot.parse(sql, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return
    for tree in trees:
        if isinstance(tree, exp.Alter):
            for action in tree.args["actions"]:
                if isinstance(action, exp.AlterRename):
                    yield tree.this, action.this.name


def _rename(ctx: Untyped, table: Untyped, name: str, expiring: Expirations, kept: KeptFields) -> None:
    """Keep a table's entry, and all that goes by its name, under its new one."""
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    catalog, old = ctx.catalog, (table.project_id, table.dataset_id, table.table_id)
    new = (*old[:2], name)
    made = int(table.creation_time.timestamp() * 1000)
    kept.keep(".".join(new), made, kept.of(".".join(old), made))
    expires = expiring.get(".".join(old))
    policies = catalog.list_row_access_policies(*old)
    for policy in policies:  # before anybody may look for the table
        catalog.create_row_access_policy(policy.model_copy(update={"table_id": name}))
    catalog.create_table(table.model_copy(update={"table_id": name, "last_modified_time": ctx.clock.now()}))
    expiring.set(".".join(new), expires)
    expiring.set(".".join(old), None)
    for policy in policies:
        catalog.delete_row_access_policy(*old, policy.policy_id)
    catalog.delete_table(*old, not_found_ok=True)
    ctx.engine.history.begin(quoted_table_ref(*new))
    ctx.snapshots.drop_snapshots_for_table(*old, include_user=False)
