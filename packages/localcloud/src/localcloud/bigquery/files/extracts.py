"""Extract jobs and EXPORT DATA: a table's or a query's rows as objects of Cloud Storage.

In: a job's configuration, or a statement's options and its result. Out: objects made through storage's own API, and how
many. bqemulator writes below the storage server's back, which makes the bucket unreadable, and takes `*` for a name.
"""

from __future__ import annotations

import asyncio
import functools
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from localcloud.bigquery.files import staging
from localcloud.bigquery.files.extract_formats import COMPRESSIONS, CONTENT_TYPES, ExtractOptions, write
from localcloud.bigquery.types.columns import ColumnType, as_sent, column_types, quoted, read_expression
from localcloud.bigquery.types.results import registered
from localcloud.statements import statement
from localcloud.untyped import Untyped

FILE_BYTES = 1024**3  # https://cloud.google.com/bigquery/quotas#export_jobs: what one file may hold
_ROWS_PER_BATCH = 65_536
OFFERED = {
    *("sourceTable", "destinationUri", "destinationUris", "destinationFormat", "compression", "fieldDelimiter"),
    *("printHeader", "useAvroLogicalTypes"),
}


def apply(routes: Untyped, executor: Untyped) -> None:
    """Let extract jobs and EXPORT DATA run here."""

    async def run_extract(project_id: str, job_id: str, config: dict[str, Any], ctx: Untyped) -> Untyped:
        return await _finished_job(project_id, job_id, config, ctx, routes)

    routes.execute_extract_job = run_extract
    executor.write_export = functools.partial(_export, executor)


async def _finished_job(project: str, job_id: str, config: dict[str, Any], ctx: Untyped, routes: Untyped) -> Untyped:
    """Return the finished job; what went wrong stands in it."""
    from bqemulator.domain.errors import DomainError, UnsupportedFeatureError

    begun = ctx.clock.now()
    try:
        statistics = await asyncio.to_thread(_extract, project, config["extract"], ctx)
    except UnsupportedFeatureError:
        raise
    except DomainError as error:
        result = routes._domain_error_to_error_result(error)
        return routes._failed_job_meta(project, job_id, "EXTRACT", config, result, begun)
    job = routes._failed_job_meta(project, job_id, "EXTRACT", config, {}, begun)
    return job.model_copy(
        update={"error_result": None, "statistics": {"extract": statistics}, "end_time": ctx.clock.now()}
    )


def _extract(project: str, extract: dict[str, Any], ctx: Untyped) -> dict[str, Any]:
    from bqemulator.domain.errors import NotFoundError, UnsupportedFeatureError
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    strange = sorted(name for name, value in extract.items() if value and name not in OFFERED)
    if strange:
        raise UnsupportedFeatureError(f"The option {strange[0]} of an extract job is not offered by the local cloud")
    source = extract["sourceTable"]
    owner, dataset, table = source.get("projectId") or project, source["datasetId"], source["tableId"]
    if ctx.catalog.get_table(owner, dataset, table) is None:
        raise NotFoundError(f"Not found: Table {owner}:{dataset}.{table}")
    options = _options(
        extract.get("destinationFormat"),
        extract.get("compression"),
        delimiter=extract.get("fieldDelimiter"),
        header=extract.get("printHeader", True),
    )
    uris = extract.get("destinationUris") or [extract.get("destinationUri") or ""]
    connection = ctx.engine.connection.cursor()  # its own: others run queries at the same time
    try:
        counts, size, _ = _write_relation(
            connection, quoted_table_ref(owner, dataset, table), uris, options, _Place(project, ctx)
        )
    finally:
        connection.close()
    return {"destinationUriFileCounts": [str(count) for count in counts], "inputBytes": str(size)}


class _Place:
    """Where files lie before they are objects, and whose client makes them."""

    def __init__(self, project: str, ctx: Untyped) -> None:
        self.project = project
        self.directory = Path(ctx.settings.upload_staging_dir)


def _options(name: object, compression: object, *, delimiter: object, header: object) -> ExtractOptions:
    from bqemulator.domain.errors import UnsupportedFeatureError, ValidationError

    kind = str(name or "CSV").upper()
    kind = "NEWLINE_DELIMITED_JSON" if kind == "JSON" else kind
    if kind not in COMPRESSIONS:
        raise ValidationError(f"Unknown destination format {kind}. Expected one of: {', '.join(COMPRESSIONS)}")
    packing = str(compression or "NONE").upper()
    if packing not in COMPRESSIONS[kind]:
        raise UnsupportedFeatureError(
            f"Compression {packing} of {kind} is not offered by the local cloud."
            f" Expected one of: {', '.join(COMPRESSIONS[kind])}"
        )
    letter = str(delimiter or ",")
    letter = "\t" if letter in ("tab", "\\t") else letter
    return ExtractOptions(format=kind, compression=packing, delimiter=letter, header=bool(header))


def _write_relation(
    connection: Untyped, relation: str, uris: Sequence[str], options: ExtractOptions, place: _Place
) -> tuple[list[int], int, int]:
    """Write what stands behind FROM to addresses; gives how many files each got, the bytes read, and the rows."""
    columns = column_types(connection, relation)
    _require_writable(columns, options)
    if len(uris) != 1:
        from bqemulator.domain.errors import UnsupportedFeatureError

        raise UnsupportedFeatureError(
            f"{len(uris)} destination addresses: the local cloud offers one. Give one, with a wildcard for many files"
        )
    bucket, name = staging.split(uris[0])
    values = ", ".join(f"{read_expression(each, quoted(each.name))} AS {quoted(each.name)}" for each in columns)
    chosen = statement("SELECT {values} FROM {relation}", values=values, relation=relation)
    table = as_sent(connection.execute(chosen).to_arrow_reader(_ROWS_PER_BATCH), columns).read_all()
    count = _file_count(table, name)
    with tempfile.TemporaryDirectory(dir=place.directory) as folder:
        for index in range(count):
            begin, end = table.num_rows * index // count, table.num_rows * (index + 1) // count
            path = Path(folder) / str(index)
            write(path, table.slice(begin, end - begin).to_reader(), columns, options)
            uri = f"gs://{bucket}/{name.replace('*', f'{index:012d}')}"
            staging.upload(path, uri, place.project, CONTENT_TYPES[options.format])
    return [count], table.nbytes, table.num_rows


def _file_count(table: pa.Table, name: str) -> int:
    from bqemulator.domain.errors import ValidationError

    count = max(1, math.ceil(int(table.nbytes) / FILE_BYTES))
    if count > 1 and "*" not in name:
        raise ValidationError(
            f"Table too large to be exported to a single file: {table.nbytes} bytes, at most {FILE_BYTES}."
            " Specify a uri including a * to shard export."
        )
    return count


def _require_writable(columns: Sequence[ColumnType], options: ExtractOptions) -> None:
    from bqemulator.domain.errors import UnsupportedFeatureError, ValidationError

    for column in columns:
        if options.format == "CSV" and (column.repeated or column.kind == "RECORD"):
            raise ValidationError(f"Operation cannot be performed on a nested schema. Field: {column.name}")
        if column.kind == "INTERVAL":
            raise UnsupportedFeatureError(
                f"Field {column.name}: files with an INTERVAL are not offered by the local cloud. Cast it to STRING"
            )


def _export(executor: Untyped, rows: pa.Table, options: Untyped, ctx: Untyped) -> Untyped:
    """Write the result of EXPORT DATA (bqemulator's `write_export`)."""
    from bqemulator.domain.errors import InvalidQueryError

    place = _Place(ctx.settings.default_project_id, ctx)
    chosen = _options(
        options.format, options.compression, delimiter=options.field_delimiter, header=options.header is not False
    )
    if not options.overwrite and staging.matches(options.uri, place.project):
        raise InvalidQueryError(f"Invalid: destination {options.uri} has files already; set overwrite=true")
    connection = ctx.engine.connection.cursor()
    try:
        with registered(rows, connection) as relation:
            counts, _, written = _write_relation(connection, relation, [options.uri], chosen, place)
    finally:
        connection.close()
    return executor._ExportOutcome(rows=written, file_count=counts[0], uris=[options.uri])
