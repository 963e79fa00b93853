"""Cloud Monitoring in memory, for what endpoints measured."""

from __future__ import annotations

import bisect
from datetime import datetime, timedelta

from retraining.core.documents import Served
from retraining.core.monitoring.signals import Answered
from retraining.core.promotion.latencies import Latencies, Measured
from tests.support.fakes.serving import FakeEndpoints

BOUNDS = tuple(1.4**power for power in range(30))


class FakeServingMetrics:
    """What an endpoint's models answered, without error and in ten milliseconds; or what `by_id` or `answers` say.

    Args:
        endpoints: That are asked.
    """

    def __init__(self, endpoints: FakeEndpoints) -> None:
        self.by_id: dict[str, Served] = {}
        self.answers: dict[datetime, dict[str, Answered]] = {}
        self.windows: list[tuple[datetime, datetime]] = []
        self._endpoints = endpoints

    def served(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, Served]:
        """As the hook, whatever the time."""
        assert endpoint_name in self._endpoints.by_name
        assert end - start >= timedelta(minutes=1)
        self.windows.append((start, end))
        answered = {
            key: Served(requests=count, errors=0, latency_ms=10.0) for key, count in self._endpoints.answered.items()
        }
        return {**answered, **self.by_id}

    def measured(
        self, endpoint_name: str, start: datetime, end: datetime, period: timedelta
    ) -> list[dict[str, Measured]]:
        """As the hook: the same in each period."""
        assert (end - start) % period == timedelta(), "some whole periods"
        found = {key: _measured(item) for key, item in self.served(endpoint_name, start, end).items()}
        return [found for _ in range((end - start) // period)]

    def answered(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, Answered]:
        """As the hook: what `answers` has for this end, else as `served`."""
        found = self.served(endpoint_name, start, end)
        return self.answers.get(end, {key: _answered(item) for key, item in found.items()})


def _measured(served: Served) -> Measured:
    """All answers take the same time."""
    if served.latency_ms is None:
        return Measured(requests=served.requests, errors=served.errors)
    bucket = bisect.bisect_right(BOUNDS, served.latency_ms)
    times = Latencies(bounds=BOUNDS, counts=(*[0] * bucket, served.requests))
    return Measured(requests=served.requests, errors=served.errors, latencies=times)


def _answered(served: Served) -> Answered:
    latency = served.latency_ms
    return Answered(requests=served.requests, errors=served.errors, p50_ms=latency, p95_ms=latency, p99_ms=latency)
