"""Cloud Monitoring's MetricService over gRPC: ListTimeSeries of the metrics of online prediction.

In: requests in Google's own types. Out: series of what endpoints measured; points are there at once, while the service
shows them some minutes later. What is not offered is refused by name.
https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import grpc
from google.api import distribution_pb2, metric_pb2
from google.cloud.monitoring_v3 import types

from localcloud.fields import read_fields
from localcloud.logs.metrics import alignment, filters
from localcloud.logs.metrics.measurements import Measurements
from localcloud.logs.metrics.metrics import METRICS, RESOURCE, Metric, Series, series_of
from localcloud.message_fields import MessageFields
from localcloud.projects import Projects

_METHOD = "/google.monitoring.v3.MetricService/ListTimeSeries"
_MINUTE_NS = 60_000_000_000
_Aligner = types.Aggregation.Aligner
_PERCENTILES = {
    _Aligner.ALIGN_PERCENTILE_50: 50,
    _Aligner.ALIGN_PERCENTILE_95: 95,
    _Aligner.ALIGN_PERCENTILE_99: 99,
}
_PLAIN = (_Aligner.ALIGN_NONE, _Aligner.ALIGN_DELTA)
FIELDS = MessageFields(read_fields(Path(__file__).with_name("fields.json")), "google.monitoring.v3.")
"""What becomes of each field."""


class RefusalError(ValueError):
    """A request that the service would refuse, or that is more than is offered here."""


class MetricService(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers for series.

    Args:
        measurements: What endpoints measured.
        projects: Known by id and number.
    """

    def __init__(self, measurements: Measurements, projects: Projects) -> None:
        self._measurements = measurements
        self._projects = projects

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of a method (grpc's interface)."""
        if handler_call_details.method != _METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=types.ListTimeSeriesRequest.deserialize,
            response_serializer=types.ListTimeSeriesResponse.serialize,
        )

    def _answer(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - a message
        try:
            return self.list_time_series(request)
        except (RefusalError, filters.FilterError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise AssertionError("abort always raises") from error

    def list_time_series(self, request: types.ListTimeSeriesRequest) -> types.ListTimeSeriesResponse:
        """Return the series of one metric in an interval.

        Raises:
            CallError: A field of it is not offered.
            RefusalError: The request is wrong, or more than is offered here.
            FilterError: Its filter is.
        """
        FIELDS.check("MetricService.ListTimeSeries", types.ListTimeSeriesRequest.pb(request))
        _check_aligner(request.aggregation)
        project = self._projects.find_id(request.name.removeprefix("projects/"))
        if project is None:
            raise RefusalError(f"{request.name!r} is no project of the local cloud. Expected projects/<project>.")
        wanted = filters.parse(request.filter)
        metric = METRICS.get(wanted.metric_type)
        if metric is None:
            raise RefusalError(
                f"The local cloud does not measure {wanted.metric_type!r}. Expected one of: {', '.join(METRICS)}."
            )
        start_ns, end_ns = _interval(request)
        rows = self._measurements.read(project, start_ns, end_ns)
        found = [each for each in series_of(metric, rows) if wanted.passes(_fields(wanted.metric_type, each))]
        return types.ListTimeSeriesResponse(
            time_series=[_series(request, wanted.metric_type, metric, each, start_ns, end_ns) for each in found]
        )


def _check_aligner(aggregation: types.Aggregation) -> None:
    if aggregation.per_series_aligner not in (*_PLAIN, *_PERCENTILES):
        offered = ", ".join(each.name for each in (*_PLAIN, *_PERCENTILES))
        raise RefusalError(
            f"The local cloud does not offer {aggregation.per_series_aligner!r}. Expected one of: {offered}."
        )


def _interval(request: types.ListTimeSeriesRequest) -> tuple[int, int]:
    interval = types.TimeInterval.pb(request.interval)
    if not interval.HasField("end_time"):
        raise RefusalError("interval.end_time is not set. Expected the end of the interval.")
    end_ns = interval.end_time.ToNanoseconds()
    start_ns = interval.start_time.ToNanoseconds() if interval.HasField("start_time") else end_ns - 1
    if start_ns > end_ns:
        raise RefusalError("interval.start_time is after interval.end_time.")
    return start_ns, end_ns


def _fields(metric_type: str, series: Series) -> dict[str, str]:
    return {
        "metric.type": metric_type,
        "resource.type": RESOURCE,
        **{f"metric.labels.{key}": value for key, value in series.metric_labels.items()},
        **{f"resource.labels.{key}": value for key, value in series.resource_labels.items()},
    }


def _series(
    request: types.ListTimeSeriesRequest, metric_type: str, metric: Metric, series: Series, start_ns: int, end_ns: int
) -> types.TimeSeries:
    aligner = request.aggregation.per_series_aligner
    period_ns = _period_ns(request, aligner)
    percent = _PERCENTILES.get(aligner)
    if percent is not None and not metric.is_distribution:
        raise RefusalError(f"{aligner.name} is for distributions: {metric_type} counts.")
    kinds, values = metric_pb2.MetricDescriptor.MetricKind, metric_pb2.MetricDescriptor.ValueType
    value_type = (
        values.DOUBLE if percent is not None else values.DISTRIBUTION if metric.is_distribution else values.INT64
    )
    message = types.TimeSeries()
    raw = types.TimeSeries.pb(message)
    raw.metric_kind = kinds.DELTA if percent is None else kinds.GAUGE
    raw.value_type = value_type
    raw.metric.type, raw.resource.type = metric_type, RESOURCE
    raw.metric.labels.update(series.metric_labels)
    raw.resource.labels.update(series.resource_labels)
    for begin, end, found in alignment.periods(series.values, start_ns, end_ns, period_ns):
        point = raw.points.add()
        point.interval.end_time.FromNanoseconds(end)
        point.interval.start_time.FromNanoseconds(begin if percent is None else end)
        if percent is not None:
            point.value.double_value = alignment.percentile(found, percent)
        elif metric.is_distribution:
            point.value.distribution_value.CopyFrom(_distribution(found))
        else:
            point.value.int64_value = int(sum(found))
    return message


def _period_ns(request: types.ListTimeSeriesRequest, aligner: types.Aggregation.Aligner) -> int:
    """Return the period of a point; without an aligner the minute in which endpoints measure."""
    period_ns: int = types.Aggregation.pb(request.aggregation).alignment_period.ToNanoseconds()
    if aligner == _Aligner.ALIGN_NONE:
        return _MINUTE_NS
    if period_ns < _MINUTE_NS:
        raise RefusalError(f"aggregation.alignment_period is {period_ns / 1e9:g} s. Expected at least 60 s.")
    return period_ns


def _distribution(values: list[float]) -> distribution_pb2.Distribution:
    mean = statistics.fmean(values)
    made = distribution_pb2.Distribution(
        count=len(values),
        mean=mean,
        sum_of_squared_deviation=sum((value - mean) ** 2 for value in values),
        bucket_counts=alignment.bucket_counts(values),
    )
    options = made.bucket_options.exponential_buckets
    options.num_finite_buckets, options.growth_factor, options.scale = (
        alignment.FINITE_BUCKETS,
        alignment.GROWTH,
        alignment.SCALE,
    )
    return made
