"""Patches resources that forget: fields of datasets, tables, routines and jobs that bqemulator has no place for.

In: the bodies of requests. Out: the fields in a small file beside the database, and in what is answered; expirations,
REQUIRED columns and new columns with their effect. A resource that is made anew by another way begins without them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.altered_tables import described
from localcloud.bigquery.patches.expirations import Expirations
from localcloud.bigquery.types.columns import quoted
from localcloud.bigquery.types.trees import trees_of
from localcloud.nulls import without_nulls
from localcloud.statements import statement
from localcloud.untyped import Untyped

DATASET_FIELDS = (
    "defaultEncryptionConfiguration",
    "location",
    "maxTimeTravelHours",
    "resourceTags",
    "storageBillingModel",
)
ROUTINE_FIELDS = ("dataGovernanceType", "returnTableType", "strictMode")
_REFUSED_OF_ROUTINES = (
    "externalRuntimeOptions",
    "pythonOptions",
    "remoteFunctionOptions",
    "securityMode",
    "sparkOptions",
)
TABLE_FIELDS = ("rangePartitioning", "resourceTags", "tableConstraints", "view")
_PARTITIONS = (exp.Date, exp.DateTrunc, exp.DatetimeTrunc, exp.RangeBucket, exp.TimestampTrunc, exp.TsOrDsToDate)
_METHOD: ContextVar[str] = ContextVar("method", default="")
_ASKED: ContextVar[Mapping[str, Any] | None] = ContextVar("asked", default=None)
_LOADED = ("_PARTITIONTIME", "_PARTITIONDATE")
"""The columns that a table has which is partitioned by the time of loading."""
_CLEARED_BY_NULL = {"clustering": "clustering", "timePartitioning": "time_partitioning"}
_CLEARED: dict[str, Any] = {"friendlyName": None, "description": None, "labels": {}}


def remember(method: str, configuration: Mapping[str, Any]) -> None:
    """Note what the request asks for that is answered now.

    Args:
        method: PUT replaces a resource, PATCH changes some of it.
        configuration: Of the job that it asks for, {} for none.
    """
    _METHOD.set(method)
    _ASKED.set(configuration)


def asked_configuration() -> Mapping[str, Any]:
    """Return the configuration of the job that the request asks for, {} for none."""
    return _ASKED.get() or {}


class KeptFields:
    """Fields by the name of a resource, each with the time when that was made, in milliseconds since 1970 UTC."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else {}

    def of(self, name: str, made: int) -> dict[str, Any]:
        """Return what is kept of a resource."""
        found = self._known.get(name)
        return dict(found["fields"]) if found and found["made"] == made else {}

    def keep(self, name: str, made: int, fields: dict[str, Any]) -> None:
        """Keep fields of a resource, in the place of what was kept of it."""
        if fields != self.of(name, made):
            self._known[name] = {"made": made, "fields": fields}
            temporary = self._path.with_suffix(".new")
            temporary.write_text(json.dumps(self._known, indent=2, sort_keys=True) + "\n")
            temporary.replace(self._path)


def apply(context: Untyped, kept: KeptFields, expirations: Expirations) -> None:
    """Keep fields of datasets, tables, routines and jobs."""
    _keep_of_datasets(kept)
    _keep_of_tables(context, kept, expirations)
    _keep_of_routines(kept)
    _keep_of_jobs(context)
    _expire_by_default(context, expirations)


@dataclass(frozen=True, kw_only=True)
class _Created:
    """What CREATE TABLE says of a table that is kept."""

    where: tuple[str, str, str]
    if_not_exists: bool
    options: dict[str, Any]
    columns: list[exp.Expression]


def keep_of_statements(executor: Untyped, routes: Untyped) -> None:
    """Keep options and descriptions of columns of CREATE TABLE and CREATE VIEW; IF NOT EXISTS changes nothing."""
    from bqemulator.scripting import interpreter

    original, register = routes.execute_query_job, executor.sync_created_table

    def register_new(bq_sql: str, project_id: str, ctx: Untyped) -> None:
        created = [each for each in _created(bq_sql, project_id) if each.if_not_exists]
        if not any(ctx.catalog.get_table(*each.where) is not None for each in created):
            register(bq_sql, project_id, ctx)

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        created = list(_created(bq_sql, project_id))
        before = {each.where: ctx.catalog.get_table(*each.where) for each in created if each.if_not_exists}
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        for each in created:
            table, old = ctx.catalog.get_table(*each.where), before.get(each.where)
            if table is None or (old is not None and old.creation_time == table.creation_time):
                continue
            schema = table.schema_.model_copy(update={"fields": described(table.schema_.fields, each.columns)})
            ctx.catalog.update_table(table.model_copy(update={**each.options, "schema_": schema}))
        return job

    routes.execute_query_job = execute
    for module in (executor, interpreter):
        module.sync_created_table = register_new


def _created(sql: str, project: str) -> Iterator[_Created]:
    """Yield what is kept of each table or view that a statement, or one of a script, creates."""
    if "create" not in sql.lower():
        return
    for tree in trees_of(sql):
        if isinstance(tree, exp.Create) and tree.kind in ("TABLE", "VIEW") and not tree.find(exp.MaterializedProperty):
            table = tree.this.find(exp.Table)
            yield _Created(
                where=(table.catalog or project, table.db, table.name),
                if_not_exists=bool(tree.args.get("exists")),
                options=created_options(tree),
                columns=tree.this.expressions if isinstance(tree.this, exp.Schema) else [],
            )


def created_options(tree: exp.Create) -> dict[str, Any]:
    """Return what a statement says of a table or view that it creates, by the fields of bqemulator's catalog."""
    from bqemulator.catalog.models import Clustering

    properties = tree.args.get("properties") or exp.Properties()
    given = {each.name.lower(): each.args.get("value") for each in properties.expressions if each.name}
    options: dict[str, Any] = {}
    for name in ("description", "friendly_name"):
        if isinstance(given.get(name), exp.Literal):
            options[name] = given[name].this
    if isinstance(given.get("labels"), exp.Array):
        pairs = [each.expressions for each in given["labels"].expressions]
        options["labels"] = {name.this: value.this for name, value in pairs}
    cluster = properties.find(exp.ClusterProperty)
    if cluster is not None:
        options["clustering"] = Clustering(fields=tuple(each.name for each in cluster.expressions))
    return options | _partitioning_of(properties)


def _partitioning_of(properties: exp.Properties) -> dict[str, Any]:
    """Return the partitioning of `PARTITION BY column`, or of a function of one; by the time of loading it has none."""
    from bqemulator.catalog.ddl_sync import _ddl_table_options
    from bqemulator.catalog.models import RangePartitioning, TimePartitioning

    found = properties.find(exp.PartitionedByProperty)
    by = found.this if found is not None else None
    column = by if isinstance(by, exp.Identifier) else by.this if isinstance(by, _PARTITIONS) else None
    if column is None:
        return {}
    if isinstance(by, exp.RangeBucket):
        ends = [by.expression.args.get(name) for name in ("start", "end", "step")]
        if not all(isinstance(each, exp.Literal) for each in ends):
            return {}
        start, end, step = (int(each.name) for each in ends)
        return {"range_partitioning": RangePartitioning(field=column.name, start=start, end=end, interval=step)}
    unit = by.args.get("unit") if isinstance(by, exp.Func) else None
    kind = unit.name.upper() if unit is not None else "DAY"
    options = _ddl_table_options(properties)
    partitioning = TimePartitioning(
        type=kind,
        field=None if column.name.upper() in _LOADED else column.name,
        expiration_ms=options.expiration_ms,
        require_partition_filter=options.require_partition_filter,
    )
    return {"time_partitioning": partitioning}


def _keep_of_datasets(kept: KeptFields) -> None:
    from bqemulator.api.routes import datasets

    to_meta, to_rest = datasets._rest_to_dataset_meta, datasets._dataset_to_rest

    def read(project: str, body: dict[str, Any], clock: Untyped, existing: Untyped = None) -> Untyped:
        body = _changed(body, existing)
        if existing is not None:
            body = _in_place(body, existing, kept)
        meta = to_meta(project, body, clock, existing)
        _keep(kept, _name_of(meta), meta, body, existing, DATASET_FIELDS)
        return meta

    datasets._rest_to_dataset_meta, datasets._dataset_to_rest = read, _shown(kept, to_rest)


def _in_place(body: dict[str, Any], dataset: Untyped, kept: KeptFields) -> dict[str, Any]:
    """Return what changes a dataset with the location that it was made with; none where it was made without.

    Raises:
        ValidationError: It asks for another location.
    """
    from bqemulator.domain.errors import ValidationError

    asked = body.get("location")
    if asked is not None and str(asked).lower() != dataset.location.lower():
        raise ValidationError(f"Cannot change the location of a dataset from {dataset.location} to {asked}")
    made = kept.of(_name_of(dataset), _made(dataset)).get("location")
    others = {key: value for key, value in body.items() if key != "location"}
    return others | ({"location": made} if made else {})


def _keep_of_tables(context: Untyped, kept: KeptFields, expirations: Expirations) -> None:
    from bqemulator.api.routes import tables

    to_meta, to_rest, columns = tables._rest_to_table_meta, tables._table_to_rest, tables.bq_schema_to_duckdb_columns

    def read(project: str, dataset: str, body: dict[str, Any], clock: Untyped, existing: Untyped = None) -> Untyped:
        body = _changed(body, existing)
        meta = to_meta(project, dataset, body, clock, existing)
        gone = {field: None for key, field in _CLEARED_BY_NULL.items() if key in body and body[key] is None}
        meta = meta.model_copy(update=gone) if gone else meta
        name = _name_of(meta)
        if existing is not None:
            _change_columns(context, existing, meta)
        if "expirationTime" in body or existing is None:
            expires = body.get("expirationTime")
            expirations.set(name, None if expires is None else int(expires))
        _keep(kept, name, meta, body, existing, TABLE_FIELDS)
        return meta

    def typed(fields: list[dict[str, Any]]) -> list[tuple[str, str]]:
        required = {field["name"] for field in fields if field.get("mode") == "REQUIRED"}
        return [(name, f"{kind} NOT NULL" if name in required else kind) for name, kind in columns(fields)]

    tables._rest_to_table_meta, tables._table_to_rest = read, _shown(kept, to_rest)
    tables.bq_schema_to_duckdb_columns = typed


def _keep_of_routines(kept: KeptFields) -> None:
    from bqemulator.api.routes import routines
    from bqemulator.domain.errors import UnsupportedFeatureError

    to_meta, to_rest = routines._rest_to_routine_meta, routines._routine_to_rest

    def read(project: str, dataset: str, body: dict[str, Any], clock: Untyped, existing: Untyped = None) -> Untyped:
        refused = next((name for name in _REFUSED_OF_ROUTINES if body.get(name)), None)
        if refused is not None:
            raise UnsupportedFeatureError(f"{refused} of a routine is not offered by the local cloud. Leave it out.")
        meta = to_meta(project, dataset, body, clock, existing)
        _keep(kept, _name_of(meta), meta, body, existing, ROUTINE_FIELDS)
        return meta

    routines._rest_to_routine_meta, routines._routine_to_rest = read, _shown(kept, to_rest)


def _keep_of_jobs(context: Untyped) -> None:
    original = context.catalog.upsert_job

    def upsert(job: Untyped) -> Untyped:
        asked, stored = asked_configuration(), dict(job.configuration or {})
        for name, value in asked.items():
            inner = stored.get(name)
            stored[name] = {**value, **inner} if isinstance(value, dict) and isinstance(inner, dict) else value
        return original(job.model_copy(update={"configuration": stored}) if asked else job)

    context.catalog.upsert_job = upsert


def _expire_by_default(context: Untyped, expirations: Expirations) -> None:
    original = context.catalog.create_table

    def create(table: Untyped) -> Untyped:
        created = original(table)
        dataset = context.catalog.get_dataset(table.project_id, table.dataset_id)
        name = f"{table.project_id}.{table.dataset_id}.{table.table_id}"
        default = dataset and dataset.default_table_expiration_ms
        if default and expirations.get(name) is None:
            expirations.set(name, _made(created) + int(default))
        return created

    context.catalog.create_table = create


def _changed(body: dict[str, Any], existing: Untyped) -> dict[str, Any]:
    """Return a body with what it means for a resource that is there: PATCH merges labels, PUT takes away.

    Of a new resource a field that is null is not given.
    """
    if existing is None:
        new: dict[str, Any] = without_nulls(body)
        return new
    if _METHOD.get() == "PUT":
        return {**_CLEARED, **body}
    if isinstance(body.get("labels"), dict):
        labels = {**(existing.labels or {}), **body["labels"]}
        body = {**body, "labels": {name: value for name, value in labels.items() if value is not None}}
    return {**body, "labels": {}} if body.get("labels", {}) is None else body


def _name_of(meta: Untyped) -> str:
    """Return a resource's name among those that are kept; a routine's is no table's."""
    parts = [meta.project_id, meta.dataset_id, getattr(meta, "table_id", None)]
    if hasattr(meta, "routine_id"):
        parts.append(f"{meta.routine_id}()")
    return ".".join(filter(None, parts))


def _shown(kept: KeptFields, to_rest: Untyped) -> Untyped:
    """Return what answers with a resource and what is kept of it."""

    def show(meta: Untyped) -> dict[str, Any]:
        resource: dict[str, Any] = to_rest(meta)
        return resource | kept.of(_name_of(meta), _made(meta))

    return show


def _keep(
    kept: KeptFields, name: str, meta: Untyped, body: Mapping[str, Any], existing: Untyped, fields: tuple[str, ...]
) -> None:
    before = {} if existing is None or _METHOD.get() == "PUT" else kept.of(name, _made(meta))
    after = {**before, **{field: body[field] for field in fields if field in body}}
    kept.keep(name, _made(meta), {field: value for field, value in after.items() if value is not None})


def _made(meta: Untyped) -> int:
    return int(meta.creation_time.timestamp() * 1000)


def _change_columns(context: Untyped, existing: Untyped, meta: Untyped) -> None:
    """Give a table the columns that its schema has now; the service adds and relaxes columns, and nothing else.

    Raises:
        ValidationError: A column goes, or gets another type.
    """
    from bqemulator.api.routes import tables
    from bqemulator.domain.errors import ValidationError
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    if existing.table_type != "TABLE" or meta.schema_.fields == existing.schema_.fields:
        return
    old = {field.name.lower(): field for field in existing.schema_.fields}
    new = {field.name.lower(): field for field in meta.schema_.fields}
    if gone := sorted(set(old) - set(new)):
        raise ValidationError(f"Provided Schema does not match Table. Field {gone[0]} is missing in new schema")
    table = quoted_table_ref(meta.project_id, meta.dataset_id, meta.table_id)
    kinds = dict(tables.bq_schema_to_duckdb_columns([tables._field_to_rest(field) for field in meta.schema_.fields]))
    kinds_before = dict(
        tables.bq_schema_to_duckdb_columns([tables._field_to_rest(field) for field in existing.schema_.fields])
    )
    changes = []
    for name, field in new.items():
        if name not in old:
            if field.mode == "REQUIRED":
                raise ValidationError(f"Provided Schema does not match Table. Cannot add required column {field.name}")
            add = "ALTER TABLE {table} ADD COLUMN {column} {kind}"
            changes.append(statement(add, table=table, column=quoted(field.name), kind=kinds[field.name]))
            continue
        before, after = kinds_before[old[name].name], kinds[field.name]
        if after != before and f"{after} NOT NULL" != before:
            message = f"Provided Schema does not match Table. Field {field.name} has changed type or mode"
            raise ValidationError(message)
        if after != before:
            relax = "ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL"
            changes.append(statement(relax, table=table, column=quoted(field.name)))
    for change in changes:
        context.engine.execute(change)
