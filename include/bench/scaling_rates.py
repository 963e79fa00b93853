"""Measures what `docs/scaling.md` counts with: the real export job and its pieces, in seconds of one core.

In: nothing but this checkout and its environments; a local cloud is started for it. Out: `build/bench/rates.json`, of
which `include/bench/scaling_rates.json` is a copy, with machine and date. CPU seconds are those of the measured process
alone: the local cloud's servers, which share the machine here and are Google's there, are not counted.

    flights   the 2013 flights nine times (3,030,984 rows), all columns, a span a month
    photos    2,000 JPEG images of about 200 kB, 1024 x 768, exported as 224 x 224 pixels, raw and as JPEG
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

from localcloud.environment import REPOSITORY_PATH, merged_environment
from localcloud.processes import adopt_orphans, kill_descendants, spawn, stop, tail
from localcloud.state import State

TRAINER_PYTHON = REPOSITORY_PATH / ".venv" / "trainer" / "bin" / "python"
OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "rates.json"
PHOTOS, COPIES = 200, 10
ROUNDS = 3
_SYSTEM_COLUMNS = ("span", "part", "shard", "row_hash")
_FLIGHTS = """
CREATE OR REPLACE TABLE bench.flights_run CLUSTER BY span, part, shard AS
WITH examples AS (
  SELECT f.* REPLACE (CONCAT(f.flight_id, '-', CAST(i AS STRING)) AS flight_id)
  FROM flights.flights AS f, UNNEST(GENERATE_ARRAY(1, 9)) AS i
),
hashed AS (
  SELECT examples.*,
    DATE_TRUNC(DATE(examples.scheduled_departure), MONTH) AS span,
    IF(ABS(MOD(FARM_FINGERPRINT(examples.flight_id), 100)) < 10, 'validation', 'train') AS part,
    FARM_FINGERPRINT(CONCAT('row:', examples.flight_id)) AS row_hash
  FROM examples
)
SELECT hashed.*, IF(part = 'train', ABS(MOD(row_hash, 3)), 0) AS shard FROM hashed
"""
_PHOTOS = """
CREATE OR REPLACE TABLE bench.photos_run CLUSTER BY span, part, shard AS
SELECT CONCAT(p.photo_id, '-', CAST(i AS STRING)) AS photo_id, p.photo, MOD(i, 10) AS kind, DATE '2024-01-01' AS span,
  'train' AS part, FARM_FINGERPRINT(CONCAT(p.photo_id, CAST(i AS STRING))) AS row_hash, MOD(i, 10) AS shard
FROM bench.photos AS p, UNNEST(GENERATE_ARRAY(1, {copies})) AS i
"""


class Cloud:
    """BigQuery's REST API of a local cloud, as far as it is needed here."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._session = requests.Session()
        self._session.trust_env = False  # this process's own proxies and roots lead elsewhere
        self._session.proxies = {"https": environment["https_proxy"]}
        self._session.verify = environment["REQUESTS_CA_BUNDLE"]
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
        """Give the columns of `dataset.table` that are features."""
        dataset, name = table.split(".")
        found = self._session.get(f"{self._url}/datasets/{dataset}/tables/{name}", timeout=60)
        found.raise_for_status()
        fields = found.json()["schema"]["fields"]
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
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY_PATH / "include"), "PYTHONUNBUFFERED": "1"}
    cloud = spawn([sys.executable, "-m", "localcloud", "up", "--state", state.path], log_path=log_path, env=env)
    try:
        while "ready " not in tail(log_path):
            if cloud.poll() is not None:
                raise RuntimeError(f"the local cloud did not start:\n{tail(log_path)}")
            time.sleep(0.1)
        subprocess.run([sys.executable, "-m", "localcloud", "seed", "--state", str(state.path)], env=env, check=True)
        yield merged_environment(state.path)
    finally:
        stop(cloud, grace_s=15)
        kill_descendants(os.getpid())


def probe(environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """Run one of `scaling_probes`; the median of ROUNDS by CPU seconds."""
    found = [json.loads(_trainer(environment, "bench.scaling_probes", *arguments).stdout) for _ in range(ROUNDS)]
    chosen: dict[str, Any] = sorted(found, key=lambda one: float(one["cpu_s"]))[ROUNDS // 2]
    return chosen


def _trainer(environment: Mapping[str, str], module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(map(str, (REPOSITORY_PATH / "include", REPOSITORY_PATH)))
    return subprocess.run(
        [str(TRAINER_PYTHON), "-m", module, *arguments],
        env={**environment, "PYTHONPATH": paths},
        cwd=REPOSITORY_PATH,
        text=True,
        capture_output=True,
        check=True,
    )


def export(environment: Mapping[str, str], request: Mapping[str, Any], folder: Path) -> dict[str, float]:
    """Run the real export job ROUNDS times, each into a folder of its own; CPU and wall seconds of the median."""
    found = []
    for index in range(ROUNDS):
        base = f"{request['spans_uri']}-{index}"
        path = folder / "request.json"
        path.write_text(json.dumps({**request, "spans_uri": base, "manifest_uri": f"{base}-manifest.json"}))
        begun, before = time.perf_counter(), os.times()
        _trainer(environment, "trainer.task", "export", "--request", str(path))
        after = os.times()
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        found.append({"wall_s": round(time.perf_counter() - begun, 3), "cpu_s": round(cpu_s, 3)})
    return sorted(found, key=lambda one: one["cpu_s"])[ROUNDS // 2]


def make_request(cloud: Cloud, table: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Give an export request for every row of a run table."""
    example_path = REPOSITORY_PATH / "include/contracts/examples/valid/export_request__two_new_spans.json"
    counted = cloud.query(
        f"SELECT CAST(span AS STRING), part, COUNT(*), MAX(shard) + 1 FROM {table} GROUP BY 1, 2 ORDER BY 1, 2"  # noqa: S608 - ours
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
    return {
        **json.loads(example_path.read_text()),
        "schema": cloud.columns(table),
        "table": f"{cloud.project}.{table}",
        "spans": spans,
        "test_start": days[-1],
        **changes,
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.tfrecord.gz"))


def measure_flights(cloud: Cloud, environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """The wide road: many small rows."""
    cloud.query(_FLIGHTS)
    text = cloud.query("SELECT AVG(LENGTH(TO_JSON_STRING(f))) FROM bench.flights_run AS f")
    request = make_request(cloud, "bench.flights_run")
    rows = sum(part["rows"] for span in request["spans"] for part in span["parts"])
    here, there = f"{folder}/flights", f"gs://{cloud.bucket}/bench/flights"
    spec = ",".join(f"{c['name']}:{_kind(c['type'])}" for c in request["schema"])
    written = export(environment, {**request, "spans_uri": here}, folder)
    return {
        "rows": rows,
        "text_bytes": round(float(text[0][0]), 1),
        "read": probe(environment, "read", request["table"], ""),
        "export_to_memory": written,
        "export": export(environment, {**request, "spans_uri": there}, folder),
        "file_bytes": _size(Path(f"{here}-0")),
        "input": probe(environment, "input", f"{here}-0/2013-01-01/*/train*.gz", spec),
    }


def measure_photos(cloud: Cloud, environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """The narrow one: few large rows, each of which is work."""
    photos = folder / "photos"
    _trainer(environment, "bench.scaling_probes", "photos", str(photos), str(PHOTOS))
    cloud.insert_photos(photos)
    cloud.query(_PHOTOS.format(copies=COPIES))
    found: dict[str, Any] = {"rows": PHOTOS * COPIES, "resize": probe(environment, "resize", str(photos))}
    found["read"] = probe(environment, "read", f"{cloud.project}.bench.photos_run", "")
    for encoding in ("raw", "jpeg"):
        image = {"name": "photo", "height": 224, "width": 224, "channels": 3, "encoding": encoding}
        request = make_request(cloud, "bench.photos_run", images=[image])
        here, there = f"{folder}/{encoding}", f"gs://{cloud.bucket}/bench/{encoding}"
        found[encoding] = {
            "export_to_memory": export(environment, {**request, "spans_uri": here}, folder),
            "export": export(environment, {**request, "spans_uri": there}, folder),
            "file_bytes": _size(Path(f"{here}-0")),
            "input": probe(environment, "input", f"{here}-0/*/*/train*.gz", f"photo:{encoding},kind:int"),
        }
        for path in folder.glob(f"{encoding}-*"):
            shutil.rmtree(path, ignore_errors=True)
    return found


def _kind(bigquery_type: str) -> str:
    return {"STRING": "text", "FLOAT": "float"}.get(bigquery_type, "int")


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


def main() -> int:
    """Measure everything; write and print the file."""
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # noqa: S108 - disks swing, memory does not
    with tempfile.TemporaryDirectory(prefix="rates-", dir=memory) as temporary:
        folder = Path(temporary)
        with running_cloud(folder) as environment:
            cloud = Cloud(environment)
            cloud.create_dataset("bench")
            found = {
                "measured": dt.datetime.now(dt.UTC).date().isoformat(),
                "command": "make bench-rates",
                "machine": machine(),
                "flights": measure_flights(cloud, environment, folder),
                "photos": measure_photos(cloud, environment, folder),
            }
    OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    OUT_PATH.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    print(f"written to {OUT_PATH.relative_to(REPOSITORY_PATH)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
