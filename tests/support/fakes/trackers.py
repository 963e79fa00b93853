"""Experiment trackers in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from retraining.core.errors import TrackingError
from retraining.core.report.tracking.tracked_run import TrackedRun


@dataclass
class FakeTrackers:
    """Keeps what it is told.

    Attributes:
        runs: By tracker and run key.
        told: How often it was told of a run.
        broken: Trackers that do not answer.
    """

    runs: dict[tuple[str, str], TrackedRun] = field(default_factory=dict)
    told: int = 0
    broken: set[str] = field(default_factory=set)

    def track(self, tracker: str, run: TrackedRun) -> str:
        """As the hook."""
        self._require(tracker)
        self.told += 1
        self.runs[tracker, run.run_key] = run
        return run.run_key

    def digests(self, tracker: str, model: str) -> dict[str, str]:
        """As the hook."""
        self._require(tracker)
        return {key: run.digest for (name, key), run in self.runs.items() if name == tracker and run.model == model}

    def _require(self, tracker: str) -> None:
        if tracker in self.broken:
            raise TrackingError(f"tracker {tracker}", "no answer", "one", "Look at it")
