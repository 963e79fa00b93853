"""What a model is sent of rows and lines, without a server."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from google.cloud.aiplatform_v1.types import BatchPredictionJob

from localcloud.vertex.jobs.batch.conversion import Conversion
from localcloud.vertex.jobs.batch.table import json_values
from localcloud.vertex.wire.errors import InvalidArgument

ROW = {"customerId": 1001, "col1": 1, "col2": 2}


def conversion(instances_format: str = "jsonl", **config: object) -> Conversion:
    return Conversion.of(
        BatchPredictionJob(input_config={"instances_format": instances_format}, instance_config=config)
    )


@pytest.mark.parametrize(
    ("config", "instance"),
    [
        ({}, [1001, 1, 2]),
        ({"instance_type": "object"}, ROW),
        ({"instance_type": "object", "excluded_fields": ["customerId"]}, {"col1": 1, "col2": 2}),
        ({"instance_type": "object", "included_fields": ["col2", "col1"]}, {"col2": 2, "col1": 1}),
        ({"included_fields": ["col2", "col1"]}, [2, 1]),
        ({"key_field": "customerId"}, [1, 2]),
    ],
    ids=str,
)
def test_rows_of_a_table(config, instance):
    assert conversion("bigquery", **config).instance(ROW) == instance


@pytest.mark.parametrize(
    ("config", "line", "instance", "shown"),
    [
        ({}, [1, 2], [1, 2], {"instance": [1, 2]}),
        ({}, ROW, ROW, {"instance": ROW}),
        ({"key_field": "customerId"}, ROW, {"col1": 1, "col2": 2}, {"key": 1001}),
        (
            {"excluded_fields": ["customerId"]},
            ROW,
            {"col1": 1, "col2": 2},
            {"customerId": 1001, "instance": {"col1": 1, "col2": 2}},
        ),
        ({"instance_type": "array", "included_fields": ["col2", "col1"]}, ROW, [2, 1], {"instance": [2, 1]}),
    ],
    ids=str,
)
def test_lines(config, line, instance, shown):
    assert conversion(**config).of_line(line) == (instance, shown)


@pytest.mark.parametrize(
    ("config", "line", "words"),
    [
        ({"instance_type": "object"}, [1], "The line is a JSON list. Expected an object"),
        ({"key_field": "id"}, ROW, "The line has no field 'id'"),
        ({"included_fields": ["col3"]}, ROW, "The line has no field 'col3'"),
    ],
    ids=str,
)
def test_lines_that_are_no_instances(config, line, words):
    with pytest.raises(InvalidArgument, match=words):
        conversion(**config).of_line(line)


def test_values_are_json_as_the_service_documents_it():
    moment = dt.datetime(2019, 1, 1, 23, 59, 59, 999999)
    columns = {
        "String": (["abc", None], ["abc", None]),
        "Float": ([1.2], [1.2]),
        "Numeric": ([Decimal("4925.000000000")], [4925.0]),
        "TimeStamp": (pa.array([moment], pa.timestamp("us", "UTC")), ["2019-01-01 23:59:59.999999+00:00"]),
        "DateTime": (pa.array([dt.datetime(2019, 1, 1)], pa.timestamp("us")), ["2019-01-01T00:00:00"]),
        "Date": ([dt.date(2018, 12, 31), None], ["2018-12-31", None]),
        "Time": ([dt.time(23, 59, 59, 999999)], ["23:59:59.999999"]),
        "Bytes": ([b"ab"], [{"b64": "YWI="}]),
        "Repeated Type": ([[1, 2]], [[1, 2]]),
        "Nested Record": ([{"A": {"a": dt.date(2018, 12, 31)}, "B": 1}], [{"A": {"a": "2018-12-31"}, "B": 1}]),
    }
    for name, (values, expected) in columns.items():
        assert json_values(pa.array(values)) == expected, name
