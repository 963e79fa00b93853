"""bqemulator, made ready: its faults patched (`patches`), its limits set, and our own services in its place.

In: the emulator's modules, before its server starts. Out: the same modules with some functions replaced. Site-packages
stay as they are.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path

from localcloud.bigquery import job_locations, limits, parsed_once, time_travel
from localcloud.bigquery.files import extracts, loads, staging
from localcloud.bigquery.middleware.faults import fail_queries
from localcloud.bigquery.patches import (
    altered_options,
    altered_tables,
    anonymous_tables,
    assigned_arrays,
    assigned_fields,
    assigned_numbers,
    assigned_structs,
    cast_digits,
    changed_tables,
    child_jobs,
    column_case,
    created_types,
    declared_columns,
    destinations,
    dml_counts,
    dry_runs,
    dynamic_statements,
    error_words,
    expirations,
    failed_queries,
    fingerprints,
    function_columns,
    information_schema,
    inserted_rows,
    internal_errors,
    javascript_functions,
    job_ids,
    json_literals,
    kept_fields,
    language,
    last_policies,
    matched_once,
    materialized_views,
    media_types,
    numerics,
    pages,
    parameter_names,
    parameter_values,
    query_bytes,
    referenced_tables,
    refused_statements,
    renamed_tables,
    result_types,
    routine_arguments,
    script_columns,
    script_statements,
    script_targets,
    script_variables,
    shared_connection,
    signatures,
    sql,
    star_columns,
    stored_sql,
    table_names,
    table_resources,
    temporary_tables,
    unknown_projects,
    unnamed_columns,
    unnested_fields,
    unqualified_tables,
    used_datasets,
    views,
    wildcards,
)
from localcloud.bigquery.types.results import BoundedResults, OfProject
from localcloud.faults import FaultStore
from localcloud.projects import Projects
from localcloud.untyped import Untyped


def prepare(
    *,
    projects: Projects,
    directory: Path,
    memory_limit: str,
    expiring: expirations.Expirations,
    faults: FaultStore,
    read_server: Callable[[FaultStore, BoundedResults, Untyped], Untyped],
    rest_socket: Path,
    readable: list[Path],
) -> None:
    """Make bqemulator ready.

    Args:
        directory: where DuckDB may spill to disk.
        memory_limit: DuckDB's memory limit, for example `1500MB`.
        expiring: when tables expire.
        read_server: makes the gRPC server, from the faults, the results of queries and the emulator's context.
        rest_socket: unix socket of the REST server.
        readable: directories that loads and extracts may read and write.
    """
    from bqemulator import server
    from bqemulator.api.routes import jobs as job_routes
    from bqemulator.jobs import executor

    results = BoundedResults()
    server.build_grpc_server = functools.partial(read_server, faults, results)
    listen_at(server, rest_socket)
    limits.bound_memory(memory_limit, directory)
    limits.bound_results(executor)
    lock_files(readable)
    patch_sql(executor)
    keeping = kept_fields.KeptFields(directory / "kept-fields.json")
    patch_jobs(executor, job_routes, expiring)
    renamed_tables.apply(executor, expiring, keeping)
    time_travel.apply(job_routes, directory)
    schemas = OfProject()
    for module in (executor, job_routes):
        module.JOB_RESULTS, module.JOB_SCHEMAS = results, schemas
    fail_queries(job_routes, faults)
    open_app(server, projects, expiring, results, keeping)


def patch_sql(executor: Untyped) -> None:
    """Put right what is wrong with statements, their types and their functions."""
    json_literals.apply()
    cast_digits.apply()
    parsed_once.apply()
    shared_connection.apply()
    table_names.apply()
    fingerprints.apply()
    sql.apply(executor)
    numerics.apply(executor)
    unnamed_columns.apply(executor)
    assigned_arrays.apply(executor)
    assigned_numbers.apply(executor)
    assigned_structs.apply(executor)
    assigned_fields.apply(executor)
    signatures.apply(executor)
    unnested_fields.apply(executor)
    information_schema.apply(executor)
    wildcards.apply(executor)
    stored_sql.apply()
    star_columns.apply()
    column_case.apply()
    parameter_names.apply()
    parameter_values.apply()
    script_variables.apply()
    script_columns.apply()
    dynamic_statements.apply()
    script_targets.apply()
    script_statements.apply()
    result_types.apply(executor)
    routine_arguments.apply()
    created_types.apply()
    declared_columns.apply(executor)


def patch_jobs(executor: Untyped, routes: Untyped, expiring: expirations.Expirations) -> None:
    """Put right what is wrong with jobs; each replaces functions of those before it."""
    from bqemulator.api.routes import upload
    from bqemulator.storage.engine import DuckDBEngine

    media_types.apply()
    matched_once.apply(DuckDBEngine)
    dml_counts.apply(executor, routes)
    loads.apply(routes, upload)
    extracts.apply(routes, executor)
    destinations.apply(routes)
    job_ids.apply(routes)
    query_bytes.apply(routes)
    expirations.apply(routes, expiring)
    last_policies.apply(executor, routes)
    dry_runs.apply(routes)
    unqualified_tables.apply(routes)
    function_columns.apply(routes)
    refused_statements.apply(routes)
    language.apply(routes)
    error_words.apply(routes)
    javascript_functions.apply(routes, staging.text_of)
    kept_fields.keep_of_statements(executor, routes)
    altered_tables.apply(routes)
    altered_options.apply(routes, expiring)
    referenced_tables.apply(routes)
    changed_tables.apply(routes)
    temporary_tables.apply(executor, routes)
    child_jobs.apply(executor, routes)


def listen_at(server: Untyped, path: Path) -> None:
    """Let the REST server listen on a unix socket: its port asks nobody who they are."""
    original = server.uvicorn.Config
    # The gateway's word counts for the scheme that clients use: addresses of uploads are made of it.
    server.uvicorn.Config = functools.partial(original, uds=str(path), forwarded_allow_ips="*")


def lock_files(readable: list[Path]) -> None:
    """Keep SQL away from files (`read_text`, `COPY … TO`, `ATTACH`), but for the directories that loads need.

    The settings cannot be changed again, so each connection's time zone is set for all of them before.
    """
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine._register_builtin_udfs  # the last step before the engine serves

    def register(self: Untyped) -> None:
        original(self)
        quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in readable)
        self.connection.execute(f"SET allowed_directories = [{quoted}]")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    DuckDBEngine._register_builtin_udfs = register


def open_app(
    server: Untyped,
    projects: Projects,
    expiring: expirations.Expirations,
    results: BoundedResults,
    keeping: kept_fields.KeptFields,
) -> None:
    """Put what concerns all requests around the REST application once it is made."""
    from bqemulator.api.routes import tables
    from bqemulator.jobs import executor

    anonymous_tables.apply(tables, results, executor.JOB_SCHEMAS)
    materialized_views.apply(executor, keeping)
    original = server.create_app

    def create_app(context: Untyped) -> Untyped:
        app = original(context)
        app.add_middleware(failed_queries.FailedQueries)
        app.add_middleware(last_policies.ForcedDeletes)
        app.add_middleware(unknown_projects.KnownProjects, projects=projects)
        app.add_middleware(internal_errors.InternalErrors)
        table_resources.apply(context, expiring)
        kept_fields.apply(context, keeping, expiring)
        dml_counts.count_in_results(app, context)
        inserted_rows.apply(app, context)
        views.apply(app, context)
        used_datasets.apply(context)
        pages.apply(app, context)
        job_locations.install(app, context, keeping)
        anonymous_tables.list_rows_of(app, results, context)
        anonymous_tables.make_datasets(projects.ids, context)
        dropping = expirations.drop_expired(context, projects.main, expiring)
        asyncio.get_running_loop().create_task(dropping, name="expirations")
        return app

    server.create_app = create_app
