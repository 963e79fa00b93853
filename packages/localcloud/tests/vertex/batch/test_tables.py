"""Batch prediction from BigQuery into BigQuery, through Google's client."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from decimal import Decimal

import pytest
from google.cloud import aiplatform_v1 as v1

OBJECT = {"instance_type": "object"}


def rows(bq, table: str) -> list[dict]:
    return [dict(row) for row in bq.query_and_wait(f"SELECT * FROM `{table}`")]


def output_table(job: v1.BatchPredictionJob) -> str:
    return f"{job.output_info.bigquery_output_dataset.removeprefix('bq://')}.{job.output_info.bigquery_output_table}"


def columns(bq, table: str) -> list[tuple[str, str]]:
    return [(field.name, field.field_type) for field in bq.get_table(table).schema]


def test_every_row_gets_its_prediction(batches, bq):
    job = batches.run(
        batches.table_job(
            "flights",
            model=f"{batches.model}@challenger",
            instance_config={**OBJECT, "excluded_fields": ["id"]},
            dedicated_resources={"machine_spec": {"machine_type": "n1-standard-2"}, "starting_replica_count": 2},
        )
    )
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    assert (job.model, job.model_version_id) == (batches.model, "2")
    assert (job.completion_stats.successful_count, job.completion_stats.failed_count) == (200, 0)
    assert job.create_time <= job.start_time <= job.end_time
    assert job.resources_consumed.replica_hours > 0
    assert job.output_info.bigquery_output_dataset == f"bq://{batches.dataset}"
    assert re.fullmatch(
        r"predictions_\d{4}_\d\d_\d\dT\d\d_\d\d_\d\d_\d{3}Z_\d{3}", job.output_info.bigquery_output_table
    )
    assert columns(bq, output_table(job)) == [
        ("id", "INTEGER"),
        ("carrier", "STRING"),
        ("distance", "FLOAT"),
        ("prediction", "STRING"),
    ]
    seen = {row["id"]: (row["carrier"], json.loads(row["prediction"])) for row in rows(bq, output_table(job))}
    assert seen == {n: ("UA", 2.0 * n) if n % 2 == 0 else ("AA", float(n)) for n in range(1, 201)}


def test_a_key_stands_for_its_row_in_a_table_of_a_given_name(batches, bq):
    name = f"scores_{uuid.uuid4().hex}"
    job = batches.run(
        batches.table_job(
            "flights",
            instance_config={**OBJECT, "key_field": "id"},
            output_config={
                "predictions_format": "bigquery",
                "bigquery_destination": {"output_uri": f"bq://{batches.dataset}.{name}"},
            },
        )
    )
    assert job.output_info.bigquery_output_table == name
    assert columns(bq, f"{batches.dataset}.{name}") == [("key", "INTEGER"), ("prediction", "STRING")]
    assert {row["key"]: row["prediction"] for row in rows(bq, f"{batches.dataset}.{name}")}[4] == "8.0"


def test_a_dataset_is_made_where_only_the_project_is_given(batches, bq):
    job = batches.run(
        batches.table_job(
            "flights",
            instance_config={**OBJECT, "included_fields": ["distance", "carrier"]},
            output_config={
                "predictions_format": "bigquery",
                "bigquery_destination": {"output_uri": f"bq://{bq.project}"},
            },
        )
    )
    dataset = job.output_info.bigquery_output_dataset
    assert re.fullmatch(rf"bq://{bq.project}\.prediction_batched_\d{{4}}_\d\d_\d\dT\d\d_\d\d_\d\d_\d{{3}}Z", dataset)
    assert columns(bq, output_table(job)) == [("carrier", "STRING"), ("distance", "FLOAT"), ("prediction", "STRING")]
    bq.delete_dataset(dataset.removeprefix("bq://"), delete_contents=True)


def test_an_empty_table_has_empty_predictions(batches, bq):
    bq.query_and_wait("CREATE OR REPLACE TABLE batch.nothing AS SELECT * EXCEPT (id) FROM batch.flights WHERE FALSE")
    job = batches.run(batches.table_job("nothing"))
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    assert rows(bq, output_table(job)) == []
    assert len(columns(bq, output_table(job))) == 3


def test_what_the_model_refuses_is_in_the_table_of_errors(batches, bq):
    """A batch is one request: all its rows fail with it, and no other."""
    bq.query_and_wait(
        "CREATE OR REPLACE TABLE batch.holes AS SELECT carrier, IF(id = 15, NULL, distance) AS distance, id"
        " FROM batch.flights ORDER BY id"
    )
    job = batches.run(
        batches.table_job(
            "holes",
            instance_config={**OBJECT, "excluded_fields": ["id"]},
            manual_batch_tuning_parameters={"batch_size": 10},
        )
    )
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    stats = job.completion_stats
    assert (stats.successful_count, stats.failed_count, stats.incomplete_count) == (190, 10, 0)
    assert [failure.code for failure in job.partial_failures] == [3]
    assert "JSON Value: null of 'distance'" in job.partial_failures[0].message
    errors = rows(bq, output_table(job).replace("predictions_", "errors_"))
    assert sorted(row["id"] for row in errors) == list(range(11, 21))
    assert errors[0]["errors"] == {"code": 3, "message": job.partial_failures[0].message}
    assert not {row["id"] for row in rows(bq, output_table(job))} & set(range(11, 21))


def test_a_job_without_any_prediction_fails(batches):
    job = batches.run(batches.table_job("flights", instance_config={}))  # arrays: the model takes objects
    assert job.state.name == "JOB_STATE_FAILED"
    assert job.error.code == 3
    assert "Expected an object with the keys ['carrier', 'distance']" in job.error.message
    assert job.completion_stats.failed_count == 200


@pytest.mark.parametrize("kind", ["object", "array"])
def test_values_are_sent_as_the_service_writes_them(batches, bq, kind):
    """The model refuses them, and its refusal is not of interest: the table of errors shows that all types pass."""
    bq.query_and_wait(
        "CREATE OR REPLACE TABLE batch.types AS SELECT 1.5 AS f, TRUE AS b, 'é' AS s, b'ab' AS y,"
        " NUMERIC '1.25' AS n, TIMESTAMP '2019-01-01 23:59:59.5+00' AS t, DATE '2018-12-31' AS d,"
        " TIME '23:59:59' AS c, DATETIME '2019-01-01T00:00:00' AS dt, [1, 2] AS l, STRUCT(1 AS a, 'x' AS z) AS r,"
        " BIGNUMERIC '2.5' AS big, JSON '{\"a\": 1}' AS j, [STRUCT(1 AS a)] AS lr, ST_GEOGPOINT(1, 2) AS g"
    )
    job = batches.run(batches.table_job("types", instance_config={"instance_type": kind}))
    assert job.state.name == "JOB_STATE_FAILED"
    (row,) = rows(bq, output_table(job).replace("predictions_", "errors_"))
    assert row["errors"]["code"] == 3
    assert (row["n"], row["y"], row["l"], row["r"]) == (Decimal("1.25"), b"ab", [1, 2], {"a": 1, "z": "x"})
    assert (row["big"], row["j"], row["lr"], row["g"]) == (Decimal("2.5"), {"a": 1}, [{"a": 1}], "POINT(1 2)")
    assert (row["t"].second, row["d"], row["dt"]) == (59, dt.date(2018, 12, 31), dt.datetime(2019, 1, 1))
