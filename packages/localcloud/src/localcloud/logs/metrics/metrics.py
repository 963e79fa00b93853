"""The metrics of online prediction, by the names, kinds and labels of Google's table, made of measurements.

In: measurements. Out: series of single measured values, which `series` aligns.
https://cloud.google.com/monitoring/api/metrics_gcp_a_b#gcp-aiplatform
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from localcloud.logs.metrics.measurements import Measurement

RESOURCE = "aiplatform.googleapis.com/Endpoint"
_PREFIX = "aiplatform.googleapis.com/prediction/online/"
Measured = Iterator[tuple[dict[str, str], float]]
"""Labels beside `deployed_model_id`, and a value."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric: whether it counts or spreads, and what one request adds to which of its series."""

    is_distribution: bool = False
    measure: Callable[[Measurement], Measured]


def _predictions(one: Measurement) -> Measured:
    yield {}, one.instances


def _errors(one: Measurement) -> Measured:
    yield {}, int(one.response_code >= 400)


def _responses(one: Measurement) -> Measured:
    yield {"response_code": str(one.response_code)}, 1


def _latencies(one: Measurement) -> Measured:
    yield {"latency_type": "model"}, one.model_ms
    yield {"latency_type": "overhead"}, one.overhead_ms


METRICS = {
    f"{_PREFIX}prediction_count": Metric(measure=_predictions),
    f"{_PREFIX}error_count": Metric(measure=_errors),
    f"{_PREFIX}response_count": Metric(measure=_responses),
    f"{_PREFIX}prediction_latencies": Metric(measure=_latencies, is_distribution=True),
}


@dataclass(frozen=True)
class Series:
    """One series: its labels, and its values with their times, oldest first."""

    metric_labels: dict[str, str]
    resource_labels: dict[str, str]
    values: list[tuple[int, float]]


def series_of(metric: Metric, rows: Iterable[Measurement]) -> list[Series]:
    """Return the series of a metric, in order of their labels."""
    found: dict[tuple[tuple[str, str], ...], Series] = {}
    for row in rows:
        resource = {"resource_container": row.project, "location": row.location, "endpoint_id": row.endpoint_id}
        for further, value in metric.measure(row):
            labels = {"deployed_model_id": row.deployed_model_id, **further}
            key = (*resource.items(), *labels.items())
            found.setdefault(key, Series(labels, resource, [])).values.append((row.time_ns, value))
    return [found[key] for key in sorted(found)]
