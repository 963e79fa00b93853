"""Measures what `docs/scaling.md` counts with: the real export job and its pieces, in seconds of one core.

In: nothing but this checkout and its environments; a local cloud is started for it. Out: `build/bench/rates.json`, of
which `scaling_rates.json` is a copy, with machine and date. CPU seconds are those of the measured process
alone: the local cloud's servers, which share the machine here and are Google's there, are not counted.

    flights   the 2013 flights nine times (3,030,984 rows), all columns, a span a month
    photos    2,000 JPEG images of about 200 kB, 1024 x 768, exported as 224 x 224 pixels, raw and as JPEG
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.checkout import REPOSITORY_PATH
from bench.cloud import Cloud, machine, make_request, run_trainer, running_cloud
from bench.tables import MEMORY_PATH

OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "rates.json"
PHOTOS, COPIES = 200, 10
ROUNDS = 3
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


def probe(environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """Run one of `scaling_probes`; the median of ROUNDS by CPU seconds."""
    readings = [json.loads(run_trainer(environment, "bench.scaling_probes", *arguments).stdout) for _ in range(ROUNDS)]
    chosen: dict[str, Any] = sorted(readings, key=lambda one: float(one["cpu_s"]))[ROUNDS // 2]
    return chosen


def export(environment: Mapping[str, str], request: Mapping[str, Any], folder: Path) -> dict[str, float]:
    """Run the real export job ROUNDS times, each into a folder of its own; CPU and wall seconds of the median."""
    readings = []
    for index in range(ROUNDS):
        base = f"{request['spans_uri']}-{index}"
        path = folder / "request.json"
        path.write_text(json.dumps({**request, "spans_uri": base, "manifest_uri": f"{base}-manifest.json"}))
        begun, before = time.perf_counter(), os.times()
        run_trainer(environment, "trainer.task", "export", "--request", str(path))
        after = os.times()
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        readings.append({"wall_s": round(time.perf_counter() - begun, 3), "cpu_s": round(cpu_s, 3)})
    return sorted(readings, key=lambda one: one["cpu_s"])[ROUNDS // 2]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.tfrecord.gz"))


def measure_flights(cloud: Cloud, environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Measure the wide road: many small rows."""
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
    """Measure the narrow one: few large rows, each of which is work."""
    photos = folder / "photos"
    run_trainer(environment, "bench.scaling_probes", "photos", str(photos), str(PHOTOS))
    cloud.insert_photos(photos)
    cloud.query(_PHOTOS.format(copies=COPIES))
    measured: dict[str, Any] = {"rows": PHOTOS * COPIES, "resize": probe(environment, "resize", str(photos))}
    measured["read"] = probe(environment, "read", f"{cloud.project}.bench.photos_run", "")
    for encoding in ("raw", "jpeg"):
        image = {"name": "photo", "height": 224, "width": 224, "channels": 3, "encoding": encoding}
        request = make_request(cloud, "bench.photos_run", images=[image])
        here, there = f"{folder}/{encoding}", f"gs://{cloud.bucket}/bench/{encoding}"
        measured[encoding] = {
            "export_to_memory": export(environment, {**request, "spans_uri": here}, folder),
            "export": export(environment, {**request, "spans_uri": there}, folder),
            "file_bytes": _size(Path(f"{here}-0")),
            "input": probe(environment, "input", f"{here}-0/*/*/train*.gz", f"photo:{encoding},kind:int"),
        }
        for path in folder.glob(f"{encoding}-*"):
            shutil.rmtree(path, ignore_errors=True)
    return measured


def _kind(bigquery_type: str) -> str:
    return {"STRING": "text", "FLOAT": "float"}.get(bigquery_type, "int")


def main() -> int:
    """Measure everything; write and print the file."""
    with tempfile.TemporaryDirectory(prefix="rates-", dir=MEMORY_PATH) as temporary:
        folder = Path(temporary)
        with running_cloud(folder) as environment:
            cloud = Cloud(environment)
            cloud.create_dataset("bench")
            measured = {
                "measured": dt.datetime.now(dt.UTC).date().isoformat(),
                "command": "make bench-rates",
                "machine": machine(),
                "flights": measure_flights(cloud, environment, folder),
                "photos": measure_photos(cloud, environment, folder),
            }
    OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    OUT_PATH.write_text(json.dumps(measured, indent=2) + "\n")
    print(json.dumps(measured, indent=2))
    print(f"written to {OUT_PATH.relative_to(REPOSITORY_PATH)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
