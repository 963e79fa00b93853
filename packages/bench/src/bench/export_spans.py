"""The whole export job as a part of `make bench-export`: a large day, and a night of sixty days of which one is new.

In: a local cloud, started here. Out: rows a second of `trainer.task export` from its first read to the manifest (read,
sort, encode, GZIP, both digests, upload), its growth in memory, and what a night reads and writes of a full export's.
The local cloud's servers share the machine's cores.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.cloud import Cloud, make_request, run_trainer, running_cloud

_SQL_PATH = Path(__file__).parent / "sql" / "export_run_table.sql"
_DAYS = 60
_DATASET = "bench"


def measure_spans(folder: Path, rounds: int, copies: int) -> dict[str, Any]:
    """Measure both.

    Args:
        folder: For the local cloud's state; removed by the caller.
        rounds: Exports of the large day; the medians are given.
        copies: Of the 336,776 flights; a third of them (at least one) in the large day.
    """
    with running_cloud(folder) as environment:
        cloud = Cloud(environment)
        cloud.create_dataset(_DATASET)
        sql = _SQL_PATH.read_text(encoding="utf-8")
        tables = {"day": (max(copies // 3, 1), 1, 10), "days": (copies, _DAYS, 1)}
        for table, (times, spans, shards) in tables.items():
            cloud.query(sql.format(table=f"{_DATASET}.{table}", copies=times, spans=spans, train_shards=shards))
        jobs = _Jobs(cloud, environment, folder)
        return {"span": _large_day(jobs, rounds), "night": _daily_export(jobs)}


class _Jobs:
    """Runs the export job."""

    def __init__(self, cloud: Cloud, environment: Mapping[str, str], folder: Path) -> None:
        self._cloud, self._environment, self._folder = cloud, environment, folder

    def request(self, table: str) -> dict[str, Any]:
        """Return a request for all rows of a table."""
        return make_request(self._cloud, f"{_DATASET}.{table}")

    def run_export(self, request: Mapping[str, Any], store: str) -> dict[str, Any]:
        """Export into a span store of the local bucket; give what the manifest and the log say."""
        manifest_path, request_path = self._folder / "manifest.json", self._folder / "request.json"
        manifest_path.unlink(missing_ok=True)
        spans_uri = f"gs://{self._cloud.bucket}/bench-export/{store}"
        request_path.write_text(
            json.dumps({**request, "spans_uri": spans_uri, "manifest_uri": str(manifest_path)}), encoding="utf-8"
        )
        done = run_trainer(self._environment, "trainer.task", "export", "--request", str(request_path))
        manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
        memory = re.findall(r"memory \+(\d+) MB", done.stdout)
        used = re.findall(r"used ([\d.]+) s of CPU", done.stdout)
        return {
            "rows": manifest["exported_rows"],
            "bytes": manifest["exported_bytes"],
            "seconds": manifest["seconds"],
            "memory_mb": int(memory[-1]) if memory else None,
            "cpu_s": float(used[-1]) if used else None,
        }


def _large_day(jobs: _Jobs, rounds: int) -> dict[str, Any]:
    request = jobs.request("day")
    exports = [jobs.run_export(request, f"day-{number}") for number in range(rounds)]
    rates = [one["rows"] / one["seconds"] for one in exports]
    own = [one["rows"] / one["cpu_s"] for one in exports if one["cpu_s"]]
    return {
        "rows": exports[0]["rows"],
        "rows_per_s": round(statistics.median(rates)),
        "rows_per_cpu_s": round(statistics.median(own)) if own else None,
        "memory_mb": max(one["memory_mb"] or 0 for one in exports) or None,
    }


def _daily_export(jobs: _Jobs) -> dict[str, Any]:
    """Export sixty days, then a window with one more new day and fifty-nine that are there."""
    request = jobs.request("days")
    full = jobs.run_export(request, "days")
    *known, _ = request["spans"]
    newest = {**request["spans"][-1], "fingerprint": "f" * 32}
    reused = [{**span, "action": "reuse", "because": "same content as in the store"} for span in known]
    daily = jobs.run_export({**request, "spans": [*reused, newest]}, "days")
    return {
        "full": full,
        "night": daily,
        "rows_share": round(daily["rows"] / full["rows"], 4),
        "bytes_share": round(daily["bytes"] / full["bytes"], 4),
    }
