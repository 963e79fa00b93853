"""Each file of `bigquery/patches/sql` mends a fault that bqemulator still has: with it right, without it wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from localcloud.supervision.processes import accepts, choose_ports, spawn, stop, tail
from tests.conftest import LOCALCLOUD_PYTHON, REPOSITORY_PATH

PATCHES = REPOSITORY_PATH / "dev" / "localcloud" / "bigquery" / "patches" / "sql"
# Patch: a statement, and the columns and rows that BigQuery gives.
FAULTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "array_indexes": (
        "SELECT [10, 20, 30][OFFSET(o)] v FROM UNNEST([2, 0]) o ORDER BY v",
        [{"v": 10}, {"v": 30}],
    ),
    "byte_literals": ("SELECT TO_HEX(b'\\x00\\xff') v", [{"v": "00ff"}]),
    "column_names": ("SELECT COUNT(*), 1", [{"f0_": 1, "f1_": 1}]),
    "offset_names": ("SELECT o FROM UNNEST(['a', 'b']) WITH OFFSET o ORDER BY o", [{"o": 0}, {"o": 1}]),
    "selected_structs": (
        "SELECT ARRAY(SELECT AS STRUCT LOWER(x) AS n FROM UNNEST(['B', 'A']) x ORDER BY n) v",
        [{"v": [{"n": "a"}, {"n": "b"}]}],
    ),
    "struct_fields": ("SELECT STRUCT(a, t.b) v FROM (SELECT 1 a, 'x' b) t", [{"v": {"a": 1, "b": "x"}}]),
    "top_counts": (
        "SELECT APPROX_TOP_COUNT(x, 1) v FROM UNNEST(['a', 'b', 'a']) x",
        [{"v": [{"value": "a", "count": 2}]}],
    ),
    "whole_division": ("SELECT 100 - DIV(n + 1, 3) * 2 v FROM UNNEST([95]) n", [{"v": 36}]),
}


@pytest.fixture(scope="module")
def unpatched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bigquery.Client]:
    """A client of bqemulator as it comes."""
    log_path = tmp_path_factory.mktemp("bqemulator") / "log"
    ports = choose_ports(["rest", "grpc"], {})
    program = LOCALCLOUD_PYTHON.with_name("bqemulator")
    command = [program, "start", "--rest-port", str(ports["rest"]), "--grpc-port", str(ports["grpc"]), "--project", "p"]
    process = spawn(command, log_path=log_path)
    try:
        while not accepts(ports["rest"]):
            assert process.poll() is None, tail(log_path)
            try_again_after(process)
        options = ClientOptions(api_endpoint=f"http://127.0.0.1:{ports['rest']}")
        yield bigquery.Client(project="p", credentials=AnonymousCredentials(), client_options=options)
    finally:
        stop(process)


def try_again_after(process: subprocess.Popen[bytes], seconds: float = 0.2) -> None:
    """Wait a little, or until a process has ended."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return


def answer(client: bigquery.Client, sql: str) -> list[dict[str, Any]] | str:
    """Return the rows by column, or the error's kind."""
    try:
        return [dict(row) for row in client.query(sql, job_retry=None, retry=None).result(retry=None, job_retry=None)]
    except (exceptions.GoogleAPICallError, requests.ConnectionError) as error:
        return type(error).__name__


def test_each_patch_has_its_fault() -> None:
    """And no fault is tried that has no patch any more."""
    assert set(FAULTS) == {path.stem for path in Path(PATCHES).glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("patch", FAULTS)
def test_patched_it_is_right(local_cloud, patch: str) -> None:
    """As BigQuery."""
    sql, expected = FAULTS[patch]
    assert answer(bigquery.Client(project=local_cloud.project), sql) == expected


@pytest.mark.parametrize("patch", FAULTS)
def test_unpatched_it_is_wrong(unpatched: bigquery.Client, patch: str) -> None:
    """When this fails bqemulator has become right: remove the patch, and its row here."""
    sql, expected = FAULTS[patch]
    assert answer(unpatched, sql) != expected


def test_the_unpatched_emulator_answers(unpatched: bigquery.Client) -> None:
    """So that it is not wrong above because it answers nothing."""
    assert answer(unpatched, "SELECT 1 AS v") == [{"v": 1}]
