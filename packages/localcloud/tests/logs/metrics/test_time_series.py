"""Cloud Monitoring's series of what deployed models answered: as Google names, counts and aligns them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import monitoring_v3

from localcloud.errors import CallError
from localcloud.logs.metrics import filters
from localcloud.logs.metrics.measurements import Measurement, Measurements
from localcloud.logs.metrics.metrics import METRICS
from localcloud.logs.metrics.service import MetricService, RefusalError
from localcloud.projects import Projects

START = datetime(2026, 1, 1, tzinfo=UTC)
START_NS = int(START.timestamp()) * 10**9
PREFIX = "aiplatform.googleapis.com/prediction/online/"
Aligner = monitoring_v3.Aggregation.Aligner


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MetricService]:
    """Two deployed models of one endpoint, ten seconds between requests: the second errs each fifth time."""
    measurements = Measurements(tmp_path / "measurements.sqlite")
    for number in range(1, 31):
        for deployed_id, code, ms in (("1", 200, 10.0), ("2", 500 if number % 5 == 0 else 200, 20.0)):
            measurements.add(
                Measurement(
                    time_ns=START_NS + number * 10 * 10**9,
                    project="p",
                    location="r",
                    endpoint_id="late",
                    deployed_model_id=deployed_id,
                    response_code=code,
                    instances=4,
                    model_ms=ms,
                    overhead_ms=1.0,
                )
            )
    yield MetricService(measurements, Projects(["p"]))
    measurements.close()


def ask(service: MetricService, metric: str, **changes: Any) -> list[Any]:
    """The series of a metric in five minutes, one point each unless asked otherwise."""
    aligner = changes.pop("aligner", Aligner.ALIGN_DELTA)
    period = changes.pop("period_s", 300)
    request = {
        "name": "projects/p",
        "filter": f'metric.type = "{PREFIX}{metric}"' + changes.pop("further", ""),
        "interval": {"start_time": START, "end_time": datetime(2026, 1, 1, 0, 5, tzinfo=UTC)},
        "aggregation": {"alignment_period": {"seconds": period}, "per_series_aligner": aligner},
        **changes,
    }
    return list(service.list_time_series(monitoring_v3.ListTimeSeriesRequest(request)).time_series)


def test_responses_are_counted_by_deployed_model_and_code(service: MetricService) -> None:
    """One series for each; requests, not instances."""
    found = {
        (series.metric.labels["deployed_model_id"], series.metric.labels["response_code"]): series.points[0].value
        for series in ask(service, "response_count")
    }
    assert {key: value.int64_value for key, value in found.items()} == {
        ("1", "200"): 30,
        ("2", "200"): 24,
        ("2", "500"): 6,
    }


@pytest.mark.parametrize(("metric", "expected"), [("prediction_count", [120, 120]), ("error_count", [0, 6])])
def test_instances_and_errors_are_counted_by_deployed_model(service, metric: str, expected: list[int]) -> None:
    """Instances of all requests; errors of any kind."""
    found = ask(service, metric)
    assert [series.points[0].value.int64_value for series in found] == expected
    assert dict(found[0].resource.labels) == {"resource_container": "p", "location": "r", "endpoint_id": "late"}


def test_points_of_minutes_are_newest_first_and_add_up(service: MetricService) -> None:
    """Each is after its start and up to its end."""
    points = ask(service, "prediction_count", period_s=60)[0].points
    assert [point.value.int64_value for point in points] == [24] * 5
    assert [point.interval.end_time.minute for point in points] == [5, 4, 3, 2, 1]


def test_latencies_are_a_distribution_of_the_model_and_of_what_is_around_it(service: MetricService) -> None:
    """Its buckets have all values, its percentile lies in the right one."""
    model = ' AND metric.labels.latency_type = "model"'
    spread = [series.points[0].value.distribution_value for series in ask(service, "prediction_latencies")]
    assert [(each.count, sum(each.bucket_counts)) for each in spread] == [(30, 30)] * 4
    plain = ask(service, "prediction_latencies", further=model)
    assert [series.points[0].value.distribution_value.mean for series in plain] == [10.0, 20.0]
    found = ask(service, "prediction_latencies", further=model, aligner=Aligner.ALIGN_PERCENTILE_95)
    fast, slow = (series.points[0].value.double_value for series in found)
    assert 1.4**6 <= fast <= 1.4**7
    assert 1.4**8 <= slow <= 1.4**9


def test_series_are_chosen_by_labels(service: MetricService) -> None:
    """Of metric and resource; one of several values too."""
    for further, expected in (
        (' AND metric.labels.deployed_model_id = "2"', ["2"]),
        (' AND metric.label.deployed_model_id != "2"', ["1"]),
        (' AND metric.labels.deployed_model_id = one_of("1", "2")', ["1", "2"]),
        (' AND resource.labels.endpoint_id = "other"', []),
    ):
        found = ask(service, "prediction_count", further=further)
        assert [series.metric.labels["deployed_model_id"] for series in found] == expected


@pytest.mark.parametrize(
    ("metric", "changes", "words"),
    [
        ("cpu/utilization", {}, "does not measure"),
        ("error_count", {"filter": ""}, "must name one metric"),
        ("error_count", {"further": ' OR metric.labels.deployed_model_id = "1"'}, "joined by AND only"),
        ("error_count", {"further": ' AND group.id = "1"'}, "Unknown field 'group.id'"),
        ("error_count", {"further": " AND metric.labels.x ="}, "expected a string"),
        ("error_count", {"further": ' AND metric.labels.x = one_of("1"'}, "expected '\\)'"),
        ("error_count", {"further": ' AND "'}, "Unparseable filter"),
        ("error_count", {"aligner": Aligner.ALIGN_RATE}, "ALIGN_RATE"),
        ("error_count", {"aligner": Aligner.ALIGN_PERCENTILE_95}, "is for distributions"),
        ("error_count", {"period_s": 30}, "at least 60 s"),
        ("error_count", {"order_by": "x"}, "does not offer order_by"),
        ("error_count", {"view": monitoring_v3.ListTimeSeriesRequest.TimeSeriesView.HEADERS}, "does not offer view"),
        ("error_count", {"page_token": "x"}, "does not offer page_token: an answer is one page"),
        ("error_count", {"secondary_aggregation": {"group_by_fields": ["x"]}}, "does not offer secondary_aggregation"),
        ("error_count", {"name": "projects/q"}, "is no project"),
        ("error_count", {"interval": {}}, "end_time is not set"),
        ("error_count", {"interval": {"start_time": datetime(2027, 1, 1, tzinfo=UTC), "end_time": START}}, "is after"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(service, metric: str, changes: dict[str, Any], words: str) -> None:
    """No series of something else."""
    with pytest.raises((CallError, RefusalError, filters.FilterError), match=words):
        ask(service, metric, **changes)


def test_without_an_aligner_there_is_a_point_for_each_minute(service: MetricService) -> None:
    """As endpoints measure."""
    assert all(metric.startswith(PREFIX) for metric in METRICS)
    found = ask(service, "response_count", aligner=Aligner.ALIGN_NONE, period_s=0)
    assert [len(series.points) for series in found] == [5, 5, 5]
