"""A local cloud of the benchmarks' own: started for them, asked by REST, and the trainer run against it.

In: a folder. Out: a running cloud, its tables, export requests for them, processes in the trainer's environment.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

from bench.checkout import CHECKOUT_PATH, PACKAGES_PATH, REPOSITORY_PATH
from localcloud.environment.variables import merged_environment
from localcloud.state import State
from localcloud.statements import statement
from localcloud.supervision.processes import adopt_orphans, kill_descendants, spawn, stop, tail

TRAINER_PYTHON = REPOSITORY_PATH / ".venv" / "trainer" / "bin" / "python"
RUN_KEY = "20131120t030000z-0a1b2c3d4e5f"
_SYSTEM_COLUMNS = ("span", "part", "shard", "row_hash")


class Cloud:
    """BigQuery's REST API of a local cloud, as far as it is needed here."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._session = requests.Session()
        self._session.trust_env = False  # this process's own proxies and roots lead elsewhere
        self._session.proxies = {"https": environment["https_proxy"]}
        self._session.verify = environment["REQUESTS_CA_BUNDLE"]
        self._session.headers["Authorization"] = f"Bearer {environment['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"
        self.project = environment["RETRAINING_PROJECT"]
        self.bucket = environment["RETRAINING_BUCKET"]
        self._url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{self.project}"

    def query(self, sql: str) -> list[list[str]]:
        """Run a statement; give its rows as text."""
        answer = self._post(f"{self._url}/queries", {"query": sql, "useLegacySql": False})
        return [[cell["v"] for cell in row["f"]] for row in answer.get("rows", [])]

    def create_dataset(self, name: str) -> None:
        """Make a dataset."""
        self._post(f"{self._url}/datasets", {"datasetReference": {"projectId": self.project, "datasetId": name}})

    def columns(self, table: str) -> list[dict[str, str]]:
        """Return the columns of `dataset.table` that are features."""
        dataset, name = table.split(".")
        answer = self._session.get(f"{self._url}/datasets/{dataset}/tables/{name}", timeout=60)
        answer.raise_for_status()
        fields = answer.json()["schema"]["fields"]
        return [
            {"name": field["name"], "type": field["type"], "mode": field.get("mode", "NULLABLE")}
            for field in fields
            if field["name"] not in _SYSTEM_COLUMNS
        ]

    def insert_photos(self, folder: Path) -> None:
        """Load JPEG files into `bench.photos`."""
        self.query("CREATE OR REPLACE TABLE bench.photos (photo_id STRING, photo BYTES)")
        for path in sorted(folder.glob("*.jpg")):
            row = {"photo_id": path.stem, "photo": base64.b64encode(path.read_bytes()).decode()}
            self._post(f"{self._url}/datasets/bench/tables/photos/insertAll", {"rows": [{"json": row}]})

    def _post(self, url: str, body: object) -> dict[str, Any]:
        answer = self._session.post(url, json=body, timeout=600)
        answer.raise_for_status()
        document: dict[str, Any] = answer.json()
        if document.get("insertErrors"):
            raise RuntimeError(f"{url}: {document['insertErrors']}")
        return document


@contextlib.contextmanager
def running_cloud(folder: Path) -> Iterator[dict[str, str]]:
    """Start a local cloud in a folder, with the flights in it; give the environment of its clients."""
    adopt_orphans()
    state, log_path = State(folder / "state"), folder / "up.log"
    env = {**os.environ, "PYTHONPATH": PACKAGES_PATH, "PYTHONUNBUFFERED": "1"}
    config_path = REPOSITORY_PATH / "dev" / "demo" / "localcloud.json"
    command = [sys.executable, "-m", "localcloud", "up", "--state", str(state.path), "--config", str(config_path)]
    cloud = spawn(command, log_path=log_path, env=env)
    try:
        while "ready " not in tail(log_path):
            if cloud.poll() is not None:
                raise RuntimeError(f"the local cloud did not start:\n{tail(log_path)}")
            time.sleep(0.1)
        subprocess.run([sys.executable, "-m", "demo.seed", "--state", str(state.path)], env=env, check=True)
        yield merged_environment(state.path)
    finally:
        stop(cloud, grace_s=15)
        kill_descendants(os.getpid())


def run_trainer(
    environment: Mapping[str, str], module: str, *arguments: str, python: Path = TRAINER_PYTHON
) -> subprocess.CompletedProcess[str]:
    """Run a module in the trainer's environment, or in another one that has the trainer's packages, to its end.

    Raises:
        RuntimeError: It failed; with the end of its standard error.
    """
    done = subprocess.run(
        [str(python), "-m", module, *arguments],
        env={**environment, "PYTHONPATH": CHECKOUT_PATH},
        cwd=REPOSITORY_PATH,
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


def make_request(cloud: Cloud, table: str, **changes: object) -> dict[str, Any]:
    """Return an export request for every row of a run table."""
    counted = cloud.query(
        statement(
            "SELECT CAST(span AS STRING), part, COUNT(*), MAX(shard) + 1 FROM {table} GROUP BY 1, 2 ORDER BY 1, 2",
            table=table,
        )
    )
    days = sorted({row[0] for row in counted})
    spans = [
        {
            "span": day,
            "fingerprint": f"{index:032x}",
            "parts": [{"part": p, "rows": int(n), "shards": int(s)} for d, p, n, s in counted if d == day],
            "action": "export",
            "because": "new span",
        }
        for index, day in enumerate(days)
    ]
    run_uri = f"gs://local-retraining/flight_delays/runs/{RUN_KEY}"
    return {
        "kind": "export_request",
        "schema_version": 1,
        "model": "flight_delays",
        "run_key": RUN_KEY,
        "schema_hash": "9f8e7d6c5b4a3210",
        "compression": "GZIP",
        "spans_uri": "gs://local-retraining/flight_delays/spans/9f8e7d6c5b4a3210",
        "manifest_uri": f"{run_uri}/manifest.json",
        "schema": cloud.columns(table),
        "table": f"{cloud.project}.{table}",
        "spans": spans,
        "test_start": days[-1],
        **changes,
    }


def machine() -> dict[str, str]:
    """Say what was measured on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    return {"cpu": f"{os.cpu_count()} vCPU {model}", "python": platform.python_version()}


def write_result(name: str, out: Path, rounds: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write what was measured, and on what, as JSON."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine(), "rounds": rounds, "rows": rows}, indent=2) + "\n")
    print(f"{name}: wrote {out}")
