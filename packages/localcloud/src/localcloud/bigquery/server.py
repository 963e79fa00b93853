"""Runs BigQuery for a state directory: `python -m localcloud.bigquery.server --state DIR`.

In: the state directory. Out: REST and Storage Read on unix sockets until SIGTERM; tables live in `bigquery/` of the
state directory and are there again after a restart.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import sys
import time
from pathlib import Path

from localcloud.access.bearer import Bearers
from localcloud.access.grpc_middleware import GrpcMiddleware
from localcloud.access.iam import Iam
from localcloud.faults import FaultStore
from localcloud.projects import Projects
from localcloud.state import State
from localcloud.untyped import Untyped

# A working set that leaves room for TensorFlow and Airflow on a laptop; DuckDB spills to disk above it.
MEMORY_LIMIT = "1500MB"


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="localcloud.bigquery.server", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    state = State(parser.parse_args(arguments).state)
    projects = Projects.of(state)
    directory = state.directory("bigquery")
    bearers, iam = Bearers(state), Iam(state, projects)

    import duckdb_extensions
    from bqemulator.server import EmulatorServer

    from localcloud.bigquery import emulator
    from localcloud.bigquery.middleware import guard, job_documents, known_fields
    from localcloud.bigquery.patches import kept_fields
    from localcloud.bigquery.patches.expirations import Expirations
    from localcloud.bigquery.read.service import build_server

    duckdb_extensions.import_extension("spatial")  # the emulator would download it
    emulator_settings = _settings(state)
    faults = FaultStore(state.faults_path)
    emulator.prepare(
        projects=projects,
        directory=directory,
        memory_limit=MEMORY_LIMIT,
        expiring=Expirations(directory / "expirations.json", lambda: time.time_ns() // 1_000_000),
        faults=faults,
        read_server=functools.partial(
            build_server, state.socket_path("bigquery_grpc"), GrpcMiddleware(bearers, iam, counts=faults), projects
        ),
        rest_socket=state.socket_path("bigquery_rest"),
        readable=[state.directory("bigquery/uploads")],
    )
    known_fields.install(kept_fields.remember)
    guard.install(iam, bearers, faults)
    job_documents.install()
    server = EmulatorServer(emulator_settings)
    asyncio.run(server._run_forever_async())
    os._exit(0)  # DuckDB is closed; a channel that a client keeps open must not hold the process


def _settings(state: State) -> Untyped:
    from bqemulator import config

    return config.Settings(
        persistence_mode=config.PersistenceMode.PERSISTENT,
        data_dir=state.directory("bigquery"),
        default_project_id=state.read_settings().project,
        upload_staging_dir=state.directory("bigquery/uploads"),
        enable_format_extensions=False,  # Avro files; loading it would download it
        query_cache_ttl_seconds=0,
        log_level=config.LogLevel.WARNING,
        log_format=config.LogFormat.CONSOLE,
    )


if __name__ == "__main__":
    sys.exit(main())
