"""What deployed models answered: requests, errors and latency from Cloud Monitoring.

In: an endpoint, and minutes. Out: numbers by deployed-model id. The service measures each minute and shows it up to
some minutes later.
https://cloud.google.com/monitoring/api/metrics_gcp_a_b#gcp-aiplatform
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retraining.core.documents import Served
from retraining.core.naming.vertex import ResourceName
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.monitoring_v3 import Aggregation, MetricServiceClient

CALL_TIMEOUT_S = 60
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
        latency is the model's own, at the 95th percentile.

        Args:
            endpoint_name: Its full name.
            start: Of the time, exclusive.
            end: Of the time; at least a minute later.
        """
        from google.cloud.monitoring_v3 import Aggregation

        aligner = Aggregation.Aligner
        requests: dict[str, int] = {}
        errors: dict[str, int] = {}
        for series in self._series(endpoint_name, "response_count", aligner.ALIGN_DELTA, start, end):
            deployed_id, code = series.metric.labels["deployed_model_id"], int(series.metric.labels["response_code"])
            count = sum(point.value.int64_value for point in series.points)
            requests[deployed_id] = requests.get(deployed_id, 0) + count
            errors[deployed_id] = errors.get(deployed_id, 0) + (count if code >= 500 or code == 429 else 0)
        latencies = {
            series.metric.labels["deployed_model_id"]: max(point.value.double_value for point in series.points)
            for series in self._series(
                endpoint_name, "prediction_latencies", aligner.ALIGN_PERCENTILE_95, start, end, latency_type="model"
            )
            if series.points
        }
        return {
            key: Served(requests=count, errors=errors[key], latency_ms=latencies.get(key))
            for key, count in requests.items()
        }

    def _series(
        self,
        endpoint_name: str,
        metric: str,
        aligner: Aggregation.Aligner,
        start: datetime,
        end: datetime,
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
            "aggregation": {"alignment_period": end - start, "per_series_aligner": aligner},
        }
        return call(lambda: list(self._client.list_time_series(request=request, retry=None, timeout=CALL_TIMEOUT_S)))

    @cached_property
    def _client(self) -> MetricServiceClient:
        from google.cloud.monitoring_v3 import MetricServiceClient

        return MetricServiceClient(credentials=self._session.credentials)
