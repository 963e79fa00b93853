"""What deployed models answered: requests, errors and latency from Cloud Monitoring.

In: an endpoint, and minutes. Out: numbers by deployed-model id. The service measures each minute and shows it up to
some minutes later.
https://cloud.google.com/monitoring/api/metrics_gcp_a_b#gcp-aiplatform
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retraining.core.documents import Served
from retraining.core.monitoring.signals import Answered
from retraining.core.naming.vertex import ResourceName
from retraining.core.promotion.latencies import Latencies, Measured
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.api.distribution_pb2 import Distribution
    from google.cloud.monitoring_v3 import Aggregation, MetricServiceClient, Point, TimeSeries

ONLINE = "aiplatform.googleapis.com/prediction/online"


class ServingMetrics:
    """Cloud Monitoring, for the metrics of online prediction.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def served(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, Served]:
        """Return what each deployed model of an endpoint answered, by id.

        An answer with a status of 500 and above, or 429, is an error; another of 400 and above is the caller's. The
        latency is the model's own, at the 95th percentile. Either may be there without the other: they are two metrics.

        Args:
            endpoint_name: Its full name.
            start: Of the time, exclusive.
            end: Of the time; at least a minute later.
        """
        from google.cloud.monitoring_v3 import Aggregation

        counted = self._counts(endpoint_name, start, end)
        latencies = self._latencies(endpoint_name, Aggregation.Aligner.ALIGN_PERCENTILE_95, start, end)
        found: dict[str, Served] = {}
        for key in counted.keys() | latencies.keys():
            requests, errors = counted.get(key, (0, 0))
            found[key] = Served(requests=requests, errors=errors, latency_ms=_number(latencies.get(key)))
        return found

    def measured(
        self, endpoint_name: str, start: datetime, end: datetime, period: timedelta
    ) -> list[dict[str, Measured]]:
        """Return what each deployed model of an endpoint answered, by id, in one period after the other.

        Requests and errors are counted as of `served`; times are those of the model, in the service's buckets.

        Args:
            endpoint_name: Its full name.
            start: Of the first period, exclusive.
            end: Of the last one; some periods later.
            period: Whole minutes.
        """
        from google.cloud.monitoring_v3 import Aggregation

        number = (end - start) // period
        aligner = Aggregation.Aligner.ALIGN_DELTA
        found: list[dict[str, Measured]] = [{} for _ in range(number)]
        for series in self._series(endpoint_name, "response_count", aligner, start, end, period):
            key, code = series.metric.labels["deployed_model_id"], int(series.metric.labels["response_code"])
            for index, point in _by_period(series, start, period, number):
                known, count = found[index].get(key, Measured()), point.value.int64_value
                errors = count if _is_error(code) else 0
                found[index][key] = replace(known, requests=known.requests + count, errors=known.errors + errors)
        for series in self._series(
            endpoint_name, "prediction_latencies", aligner, start, end, period, latency_type="model"
        ):
            key = series.metric.labels["deployed_model_id"]
            for index, point in _by_period(series, start, period, number):
                known = found[index].get(key, Measured())
                found[index][key] = replace(known, latencies=_latencies(point.value.distribution_value))
        return found

    def answered(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, Answered]:
        """Return what each deployed model of an endpoint answered, by id, with three percentiles of its own latency.

        They are as the service gives them: NaN, too.

        Args:
            endpoint_name: Its full name.
            start: Of the time, exclusive.
            end: Of the time; at least a minute later.
        """
        from google.cloud.monitoring_v3 import Aggregation

        aligner = Aggregation.Aligner
        counted = self._counts(endpoint_name, start, end)
        p50, p95, p99 = (
            self._latencies(endpoint_name, percentile, start, end)
            for percentile in (aligner.ALIGN_PERCENTILE_50, aligner.ALIGN_PERCENTILE_95, aligner.ALIGN_PERCENTILE_99)
        )
        return {
            key: Answered(
                requests=requests, errors=errors, p50_ms=p50.get(key), p95_ms=p95.get(key), p99_ms=p99.get(key)
            )
            for key, (requests, errors) in counted.items()
        }

    def _counts(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, tuple[int, int]]:
        """Return requests, and errors among them, by deployed model."""
        from google.cloud.monitoring_v3 import Aggregation

        found: dict[str, tuple[int, int]] = {}
        for series in self._series(endpoint_name, "response_count", Aggregation.Aligner.ALIGN_DELTA, start, end):
            deployed_id, code = series.metric.labels["deployed_model_id"], int(series.metric.labels["response_code"])
            count = sum(point.value.int64_value for point in series.points)
            requests, errors = found.get(deployed_id, (0, 0))
            found[deployed_id] = requests + count, errors + (count if _is_error(code) else 0)
        return found

    def _latencies(
        self, endpoint_name: str, aligner: Aggregation.Aligner, start: datetime, end: datetime
    ) -> dict[str, float]:
        """Return a percentile of each model's own latency, in milliseconds."""
        found = self._series(endpoint_name, "prediction_latencies", aligner, start, end, latency_type="model")
        return {
            series.metric.labels["deployed_model_id"]: max(point.value.double_value for point in series.points)
            for series in found
            if series.points
        }

    def _series(
        self,
        endpoint_name: str,
        metric: str,
        aligner: Aggregation.Aligner,
        start: datetime,
        end: datetime,
        period: timedelta | None = None,
        **labels: str,
    ) -> list[Any]:
        conditions = {
            "metric.type": f"{ONLINE}/{metric}",
            "resource.type": "aiplatform.googleapis.com/Endpoint",
            "resource.labels.endpoint_id": ResourceName.parse(endpoint_name).resource_id,
            "resource.labels.location": self._session.region,
            **{f"metric.labels.{key}": value for key, value in labels.items()},
        }
        request = {
            "name": f"projects/{self._session.project}",
            "filter": " AND ".join(f'{key} = "{value}"' for key, value in conditions.items()),
            "interval": {"start_time": start, "end_time": end},
            "aggregation": {"alignment_period": period or end - start, "per_series_aligner": aligner},
        }
        return call(lambda: list(self._client.list_time_series(request=request, retry=None)))

    @cached_property
    def _client(self) -> MetricServiceClient:
        from google.cloud.monitoring_v3 import MetricServiceClient

        from retraining.hooks.transports import grpc_client

        client: MetricServiceClient = grpc_client(MetricServiceClient, self._session)
        return client


def _is_error(code: int) -> bool:
    return code >= 500 or code == 429


def _by_period(series: TimeSeries, start: datetime, period: timedelta, number: int) -> Iterator[tuple[int, Point]]:
    """Yield the points of a series with the index of the period that they end in, or with."""
    for point in series.points:
        index = -((start - point.interval.end_time) // period) - 1
        if 0 <= index < number:
            yield index, point


def _latencies(distribution: Distribution) -> Latencies:
    """Return the counts of a distribution with their bounds, in whichever form the service gives these.

    https://cloud.google.com/monitoring/api/ref_v3/rest/v3/TypedValue#bucketoptions
    """
    options = distribution.bucket_options
    if options.explicit_buckets.bounds:
        bounds = tuple(options.explicit_buckets.bounds)
    elif number := options.exponential_buckets.num_finite_buckets:
        growth, scale = options.exponential_buckets.growth_factor, options.exponential_buckets.scale
        bounds = tuple(itertools.accumulate([scale, *itertools.repeat(growth, number)], float.__mul__))
    else:
        linear = options.linear_buckets
        bounds = tuple(linear.offset + linear.width * index for index in range(linear.num_finite_buckets + 1))
    return Latencies(bounds=bounds, counts=tuple(distribution.bucket_counts))


def _number(value: float | None) -> float | None:
    """Return a latency; None: there is none, or what the service gives is no number."""
    return value if value is not None and math.isfinite(value) and value >= 0 else None
