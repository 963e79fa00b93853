"""What a trial's replicas report through hypertune, read while they run.

Comes in: files of JSON lines, one file a replica, that `CLOUD_ML_HP_METRIC_FILE` names. Goes out: the trial's
measurements. hypertune writes the whole file again with each report, its last hundred lines, and the metric's name is a
key beside `timestamp`, `trial`, `global_step` and `checkpoint_path`:

    {"checkpoint_path": "", "global_step": "3", "timestamp": 1763711000.5, "trial": "1", "val_auc": "0.91"}

https://github.com/GoogleCloudPlatform/cloudml-hypertune
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1.types import Measurement

from localcloud.vertex.jobs.tuning.search.measurements import sort_key


class MetricFiles:
    """The reports of one trial.

    Args:
        find_files: Gives the files that there are so far.
        metric_ids: Metrics of the study; others are left out.
        began: When the trial started, for the elapsed time of its measurements.
    """

    def __init__(
        self, find_files: Callable[[], Iterable[Path]], metric_ids: Iterable[str], began: datetime.datetime
    ) -> None:
        self._find_files = find_files
        self._metric_ids = frozenset(metric_ids)
        self._began = began.timestamp()
        self._signatures: dict[Path, tuple[int, int]] = {}
        self._seen: set[str] = set()

    def read_measurements(self, known: Sequence[Measurement]) -> list[Measurement] | None:
        """Return all measurements with what was reported since the last call, or None when nothing was.

        Args:
            known: The trial's measurements so far.
        """
        reports = [report for line in self._new_lines() if (report := self._parse(line)) is not None]
        if not reports:
            return None
        measurements = list(known)
        for seconds, step, metrics in sorted(reports, key=lambda report: report[:2]):
            _note(measurements, max(0.0, seconds - self._began), step, metrics)
        return sorted(measurements, key=sort_key)

    def _new_lines(self) -> Iterator[str]:
        for path in self._find_files():
            status = path.stat()
            signature = (status.st_mtime_ns, status.st_size)
            if self._signatures.get(path) == signature:
                continue
            self._signatures[path] = signature
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
                # A line without its end is being written: it comes whole the next time.
                if line.endswith("\n") and line not in self._seen:
                    self._seen.add(line)
                    yield line

    def _parse(self, line: str) -> tuple[float, int, dict[str, float]] | None:
        """Return time, step and metrics of a line; None of one that says nothing of the study."""
        try:
            document: Any = json.loads(line)
            metrics = {name: float(document[name]) for name in self._metric_ids if name in document}
            step, seconds = int(document.get("global_step") or 0), float(document.get("timestamp") or self._began)
        except (ValueError, TypeError, AttributeError):
            return None
        metrics = {name: value for name, value in metrics.items() if math.isfinite(value)}
        return (seconds, max(step, 0), metrics) if metrics else None


def _note(measurements: list[Measurement], elapsed_s: float, step: int, metrics: dict[str, float]) -> None:
    """Put a report where it belongs: several metrics of one step are one measurement, and a repeated step replaces."""
    same = next((m for m in reversed(measurements) if m.step_count == step), None)
    if same is not None and step == 0 and any(metric.metric_id in metrics for metric in same.metrics):
        same = None  # reports without a step are told apart by their time
    if same is None:
        same = Measurement(step_count=step)
        measurements.append(same)
        same = measurements[-1]
    kept = {metric.metric_id: metric.value for metric in same.metrics}
    same.elapsed_duration = datetime.timedelta(seconds=elapsed_s)
    same.metrics = [Measurement.Metric(metric_id=name, value=value) for name, value in {**kept, **metrics}.items()]
