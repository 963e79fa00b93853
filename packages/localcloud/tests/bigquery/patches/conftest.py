"""bqemulator as it comes, and what is asked of it and of the patched one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from localcloud.supervision.processes import accepts, choose_ports, spawn, stop, tail
from tests.support.local_cloud import LOCALCLOUD_PYTHON


@pytest.fixture(scope="package")
def unpatched_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start bqemulator as it comes."""
    log_path = tmp_path_factory.mktemp("bqemulator") / "log"
    ports = choose_ports(["rest", "grpc"], {})
    program = LOCALCLOUD_PYTHON.with_name("bqemulator")
    command = [program, "start", "--rest-port", str(ports["rest"]), "--grpc-port", str(ports["grpc"]), "--project", "p"]
    process = spawn(command, log_path=log_path)
    try:
        while not accepts(ports["rest"]):
            assert process.poll() is None, tail(log_path)
            try_again_after(process)
        yield f"http://127.0.0.1:{ports['rest']}"
    finally:
        stop(process)


@pytest.fixture
def unpatched(unpatched_address: str) -> bigquery.Client:
    """Return a client of it; each test has its own, since a fault may end the connection."""
    options = ClientOptions(api_endpoint=unpatched_address)
    return bigquery.Client(project="p", credentials=AnonymousCredentials(), client_options=options)


def try_again_after(process: subprocess.Popen[bytes], seconds: float = 0.2) -> None:
    """Wait a little, or until a process has ended."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return


def rows_of(client: bigquery.Client, sql: str, **asked: Any) -> list[dict[str, Any]]:
    """Return a statement's rows by column; nothing is tried again."""
    return [dict(row) for row in run(client, sql, **asked).result(retry=None, job_retry=None)]


def run(client: bigquery.Client, sql: str, **asked: Any) -> bigquery.QueryJob:
    """Start a statement; nothing is tried again."""
    return client.query(sql, job_retry=None, retry=None, **asked)


def what_comes(ask: Callable[[], object]) -> object:
    """Return an answer, or the error's kind."""
    try:
        return ask()
    except (exceptions.GoogleAPICallError, requests.ConnectionError) as error:
        return type(error).__name__
