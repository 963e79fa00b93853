"""Load jobs as the service runs them: whole or not at all, by the options that were given, or refused by name.

In: a job's configuration and its files (`staging`, `load_formats`). Out: rows in a table, which the job makes when it
is missing, and a job that says how many. bqemulator knows none of CSV's options, always drops a file's first row, makes
no table of a file that brings its own schema, and leaves half of a load that fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.bigquery.files.load_formats import FORMATS, compression_of
from localcloud.bigquery.files.staging import staged
from localcloud.bigquery.types.columns import ColumnType, column_types, quoted
from localcloud.bigquery.types.tables import make_table
from localcloud.nulls import without_nulls
from localcloud.statements import statement
from localcloud.untyped import Untyped

OFFERED = {
    *("sourceUris", "sourceFormat", "schema", "destinationTable", "createDisposition", "writeDisposition"),
    *("autodetect", "skipLeadingRows", "nullMarker", "nullMarkers", "fieldDelimiter", "quote", "encoding"),
    *("allowJaggedRows", "ignoreUnknownValues", "maxBadRecords", "parquetOptions", "destinationTableProperties"),
    # without effect here: the layout of a table, and what is so anyway
    *("timePartitioning", "rangePartitioning", "clustering"),
    *("allowQuotedNewlines", "useAvroLogicalTypes"),
}
_WORDS = {"friendlyName": "friendly_name", "description": "description", "labels": "labels"}
_CSV_ONLY = {"nullMarker", "nullMarkers", "skipLeadingRows", "fieldDelimiter", "quote", "maxBadRecords"}


@dataclass(frozen=True, kw_only=True)
class _Target:
    """The table that a load writes."""

    project: str
    dataset: str
    table: str
    reference: str
    columns: list[ColumnType]


def apply(routes: Untyped, upload: Untyped) -> None:
    """Let load jobs run here, from Cloud Storage and uploaded ones; these keep the id that the client gave."""
    read_envelope = upload._load_configuration_from_envelope

    def configuration(envelope: dict[str, Any]) -> dict[str, Any]:
        read: dict[str, Any] = read_envelope(without_nulls(envelope))
        return {**read, "localcloudJobId": (envelope.get("jobReference") or {}).get("jobId")}

    async def run_uploaded(
        *, project_id: str, configuration: dict[str, Any], media_path: str, ctx: Untyped
    ) -> tuple[str, Untyped]:
        job_id = configuration.pop("localcloudJobId") or upload._new_job_id()
        config = {**configuration, "load": {**configuration["load"], "sourceUris": [f"file://{media_path}"]}}
        job = await routes._handle_load_job_with_async_envelope(project_id, job_id, config, ctx)
        ctx.catalog.upsert_job(job)
        return job_id, job

    async def run_load(project_id: str, job_id: str, config: dict[str, Any], ctx: Untyped) -> Untyped:
        return await _finished_job(project_id, job_id, config, ctx, routes)

    upload._load_configuration_from_envelope = configuration
    upload._run_load = run_uploaded
    routes._handle_load_job_with_async_envelope = run_load


async def _finished_job(project: str, job_id: str, config: dict[str, Any], ctx: Untyped, routes: Untyped) -> Untyped:
    """Return the finished job; what is wrong with the files stands in it, what is wrong with the request is raised."""
    import duckdb
    from bqemulator.domain.errors import DomainError, UnsupportedFeatureError

    begun = ctx.clock.now()
    load = config["load"]
    _refuse_unknown_options(load)
    try:
        statistics = await _load(project, load, ctx)
    except UnsupportedFeatureError:
        raise
    except DomainError as error:
        result = routes._domain_error_to_error_result(error)
    except duckdb.Error as error:
        message = f"Error while reading data, error message: {error}"
        result = {"reason": "invalid", "message": message, "location": (load.get("sourceUris") or [""])[0]}
    else:
        job = routes._failed_job_meta(project, job_id, "LOAD", config, {}, begun)
        return job.model_copy(
            update={"error_result": None, "statistics": {"load": statistics}, "end_time": ctx.clock.now()}
        )
    return routes._failed_job_meta(project, job_id, "LOAD", config, result, begun)


async def _load(project: str, load: dict[str, Any], ctx: Untyped) -> dict[str, str]:
    uris = load.get("sourceUris") or []
    files = staged(uris, Path(ctx.settings.upload_staging_dir), project)
    paths = await asyncio.to_thread(files.__enter__)
    try:
        async with ctx.engine.write_lock():
            with ctx.engine.history.changing(ctx.engine.connection, _reference(project, load)):
                rows = _write(project, load, paths, ctx)
        return {
            "inputFiles": str(len(paths)),
            "inputFileBytes": str(sum(path.stat().st_size for path in paths)),
            "outputRows": str(rows),
        }
    finally:
        files.__exit__(None, None, None)


def _reference(project: str, load: Mapping[str, Any]) -> str:
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    where = load["destinationTable"]
    return str(quoted_table_ref(where.get("projectId") or project, where["datasetId"], where["tableId"]))


def _refuse_unknown_options(load: Mapping[str, Any]) -> None:
    from bqemulator.domain.errors import UnsupportedFeatureError

    source_format = str(load.get("sourceFormat") or "CSV").upper()
    if source_format not in FORMATS:
        raise UnsupportedFeatureError(
            f"Source format {source_format} is not offered by the local cloud. Expected one of: {', '.join(FORMATS)}"
        )
    strange = sorted(name for name, value in load.items() if value and name not in OFFERED)
    if source_format != "CSV":
        strange += sorted(name for name in _CSV_ONLY if load.get(name))
    if strange:
        raise UnsupportedFeatureError(
            f"The option {strange[0]} of a load job of {source_format} is not offered by the local cloud. Leave it out"
        )


def _write(project: str, load: Mapping[str, Any], paths: list[Path], ctx: Untyped) -> int:
    """Insert all files in one transaction; gives how many rows."""
    from bqemulator.domain.errors import ValidationError

    if len({compression_of(path) for path in paths}) > 1:
        raise ValidationError("Compressed and uncompressed files cannot be loaded by one job.")
    connection = ctx.engine.connection
    where = load["destinationTable"]
    name = where.get("projectId") or project, where["datasetId"], where["tableId"]
    before = ctx.catalog.get_table(*name)
    connection.execute("BEGIN TRANSACTION")
    try:
        target = _target(project, load, paths, ctx)
        if load.get("writeDisposition") == "WRITE_TRUNCATE":
            connection.execute(statement("DELETE FROM {table}", table=target.reference))
        arrays = [field.name for field in ctx.catalog.get_table(*name).schema_.fields if field.mode == "REPEATED"]
        with_nulls = _rows_with_nulls(arrays, target, connection)
        rows = sum(_insert(path, target, load, connection) for path in paths)
        _refuse_nulls(with_nulls, _rows_with_nulls(arrays, target, connection))
        connection.execute("COMMIT")
    except BaseException:  # whatever it was, no half of a load may stay: no rows, and no other schema
        connection.execute("ROLLBACK")
        if before is not None:  # the catalog is in memory too, which no transaction takes back
            ctx.catalog.update_table(before)
        else:
            ctx.catalog.delete_table(*name, not_found_ok=True)
        raise
    stored = ctx.catalog.get_table(*name)
    (count,) = connection.execute(statement("SELECT count(*) FROM {table}", table=target.reference)).fetchone()
    ctx.catalog.update_table(stored.model_copy(update={"num_rows": count, "last_modified_time": ctx.clock.now()}))
    return rows


def _rows_with_nulls(arrays: list[str], target: _Target, connection: Untyped) -> dict[str, int]:
    """Count the rows with a NULL in an array, by its column; a table of an earlier release may have some."""
    found = "SELECT count(*) FROM {table} WHERE list_aggregate({column}, 'count') < len({column})"
    return {
        name: connection.execute(statement(found, table=target.reference, column=quoted(name))).fetchone()[0]
        for name in arrays
    }


def _refuse_nulls(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Refuse what no array of the service has."""
    from bqemulator.domain.errors import ValidationError

    for name, rows in after.items():
        if rows > before[name]:
            message = f"Only optional fields can be set to NULL. Field: {name}; Value: NULL"
            raise ValidationError(f"Error while reading data, error message: {message}")


def _insert(path: Path, target: _Target, load: Mapping[str, Any], connection: Untyped) -> int:
    from bqemulator.domain.errors import ValidationError

    bad_rows = int(load.get("maxBadRecords") or 0)
    for rejected in ("reject_errors", "reject_scans") if bad_rows else ():
        connection.execute(f"DROP TABLE IF EXISTS {rejected}")
    with _format(load).open(path, target.columns, connection) as chosen:
        if chosen.unknown and not load.get("ignoreUnknownValues"):
            raise ValidationError(
                f"Error while reading data, error message: No such field: {chosen.unknown[0]}. Table"
                f" {target.project}:{target.dataset}.{target.table} does not have it; ignoreUnknownValues skips it."
            )
        names = ", ".join(quoted(column.name) for column in chosen.columns)
        (rows,) = connection.execute(
            statement(
                "INSERT INTO {table} ({names}) SELECT {values} FROM {source}",
                table=target.reference,
                names=names,
                values=", ".join(chosen.values),
                source=chosen.source,
            )
        ).fetchone()
    if bad_rows:
        (bad,) = connection.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchone()
        if bad > bad_rows:
            raise ValidationError(
                f"Error while reading data, error message: CSV table encountered too many errors, giving up. Bad rows:"
                f" {bad}, allowed: {bad_rows}"
            )
    return int(rows)


def _target(project: str, load: Mapping[str, Any], paths: list[Path], ctx: Untyped) -> _Target:
    """Find the table, or make it: of the schema that is given, else of what the first file says."""
    from bqemulator.domain.errors import AlreadyExistsError, NotFoundError, ValidationError
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    where = load["destinationTable"]
    owner, dataset, table = where.get("projectId") or project, where["datasetId"], where["tableId"]
    reference = quoted_table_ref(owner, dataset, table)
    full_name = f"{owner}:{dataset}.{table}"
    connection = ctx.engine.connection
    disposition = load.get("writeDisposition") or "WRITE_APPEND"
    if ctx.catalog.get_dataset(owner, dataset) is None:
        raise NotFoundError(f"Not found: Dataset {owner}:{dataset}")
    stored = ctx.catalog.get_table(owner, dataset, table)
    given = (load.get("schema") or {}).get("fields") or []
    if stored is None and load.get("createDisposition") == "CREATE_NEVER":
        raise NotFoundError(f"Not found: Table {full_name}")
    if stored is not None and disposition == "WRITE_EMPTY" and _has_rows(reference, connection):
        raise AlreadyExistsError(f"Already Exists: Table {full_name}")
    described = load.get("destinationTableProperties") or {}
    if stored is not None:
        _refuse_other_words(stored, described, full_name)
    is_without_columns = stored is not None and not stored.schema_.fields
    if stored is None or is_without_columns or (disposition == "WRITE_TRUNCATE" and (given or load.get("autodetect"))):
        fields = given or _detect(paths, load, connection)
        if not fields:
            raise ValidationError("No schema specified on job or table.")
        make_table(owner, dataset, table, fields, ctx)
        if stored is None and described:
            made = ctx.catalog.get_table(owner, dataset, table)
            ctx.catalog.update_table(made.model_copy(update=_words(described)))
    columns = column_types(connection, reference)
    if given and stored is not None and disposition != "WRITE_TRUNCATE":
        columns = _in_file_order(columns, given, full_name)
    return _Target(project=owner, dataset=dataset, table=table, reference=reference, columns=columns)


def _words(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what destinationTableProperties says, by the catalog's names."""
    return {name: described[key] for key, name in _WORDS.items() if described.get(key) is not None}


def _refuse_other_words(stored: Untyped, described: Mapping[str, Any], full_name: str) -> None:
    """Let a load pass that describes a table as it is: destinationTableProperties are for one that it makes.

    Raises:
        ValidationError: It describes it otherwise.
    """
    from bqemulator.domain.errors import ValidationError

    for name, value in _words(described).items():
        if getattr(stored, name) != value:
            raise ValidationError(f"Table {full_name} exists, with another {name} than destinationTableProperties say.")


def _detect(paths: list[Path], load: Mapping[str, Any], connection: Untyped) -> list[dict[str, Any]]:
    """Return the schema of the first file, when the format has one or it may be guessed."""
    brings_schema = str(load.get("sourceFormat") or "CSV").upper() in ("PARQUET", "AVRO")
    if not paths or not (brings_schema or load.get("autodetect")):
        return []
    return [column.rest_field() for column in _format(load).detect(paths[0], connection)]


def _in_file_order(columns: list[ColumnType], given: list[dict[str, Any]], full_name: str) -> list[ColumnType]:
    """Return a table's columns in the order of the job's schema, which is that of the file; others stay NULL."""
    from bqemulator.domain.errors import ValidationError

    known = {column.name.lower(): column for column in columns}
    strange = [field["name"] for field in given if field["name"].lower() not in known]
    if strange:
        raise ValidationError(
            f"Provided Schema does not match Table {full_name}. Cannot add fields (field: {strange[0]})"
        )
    return [known[field["name"].lower()] for field in given]


def _has_rows(reference: str, connection: Untyped) -> bool:
    row = connection.execute(statement("SELECT 1 FROM {table} LIMIT 1", table=reference)).fetchone()
    return row is not None


def _format(load: Mapping[str, Any]) -> Untyped:
    return FORMATS[str(load.get("sourceFormat") or "CSV").upper()](load)
