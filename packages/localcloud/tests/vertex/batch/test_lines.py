"""Batch prediction from JSON lines to JSON lines, through Google's SDK and client."""

from __future__ import annotations

import json
import re

import pytest
from google.cloud import aiplatform, storage


@pytest.fixture(scope="module")
def inputs(bucket) -> None:
    """Lines in three objects, one of them in a folder below."""
    lines = [json.dumps({"carrier": "UA", "distance": n, "id": n}) for n in range(1, 101)]
    folder = "vertex-tests/batch/in"
    bucket.blob(f"{folder}/a.jsonl").upload_from_string("\n".join(lines[:60]) + "\n")
    bucket.blob(f"{folder}/b.jsonl").upload_from_string("\n".join(lines[60:]))
    bucket.blob(f"{folder}/below/c.jsonl").upload_from_string(lines[0])
    bucket.blob(f"{folder}/bad.txt").upload_from_string(f"{lines[0]}\n\nno json\n[1]\n{lines[1]}\n")


def outputs(bucket, directory: str) -> dict[str, str]:
    prefix = directory.removeprefix(f"gs://{bucket.name}/")
    return {blob.name.removeprefix(f"{prefix}/"): blob.download_as_text() for blob in bucket.list_blobs(prefix=prefix)}


@pytest.mark.usefixtures("inputs")
def test_the_sdk_gets_a_line_for_each_line(batches, local_cloud, bucket):
    aiplatform.init(project=local_cloud.project, location=local_cloud.region)
    lines = "\n".join(json.dumps({"carrier": "UA", "distance": n}) for n in range(1, 101))
    bucket.blob("vertex-tests/batch/sdk.jsonl").upload_from_string(lines)
    job = aiplatform.BatchPredictionJob.create(
        job_display_name="sdk batch",
        model_name=batches.model,
        instances_format="jsonl",
        predictions_format="jsonl",
        gcs_source=[f"{batches.prefix}/sdk.jsonl"],
        gcs_destination_prefix=f"{batches.prefix}/out",
        machine_type="n1-standard-2",
        starting_replica_count=1,
        max_replica_count=1,
        batch_size=16,
        labels={"by": "sdk-batch"},
        sync=True,
    )
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert job.completion_stats.successful_count == 100
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(rf"{batches.prefix}/out/prediction-batched-{moment}", job.output_info.gcs_output_directory)
    blobs: list[storage.Blob] = list(job.iter_outputs())
    assert [blob.name.rsplit("/", 1)[1] for blob in blobs] == [
        "prediction.errors_stats-00000-of-00001",
        "prediction.results-00000-of-00001",
    ]
    assert blobs[0].download_as_bytes() == b""
    assert [json.loads(line) for line in blobs[1].download_as_text().splitlines()] == [
        {"instance": {"carrier": "UA", "distance": n}, "prediction": 2.0 * n} for n in range(1, 101)
    ]
    found = aiplatform.BatchPredictionJob.list(filter="labels.by=sdk-batch")
    assert [seen.resource_name for seen in found] == [job.resource_name]
    job.delete()
    assert aiplatform.BatchPredictionJob.list(filter="labels.by=sdk-batch") == []


@pytest.mark.usefixtures("inputs")
def test_wildcards_and_keys(batches, bucket):
    job = batches.run(batches.line_job("in/*.jsonl", instance_config={"key_field": "id"}))
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    files = outputs(bucket, job.output_info.gcs_output_directory)
    lines = [json.loads(line) for line in files["prediction.results-00000-of-00001"].splitlines()]
    assert lines == [{"key": n, "prediction": 2.0 * n} for n in range(1, 101)]


@pytest.mark.usefixtures("inputs")
def test_lines_that_are_no_instances_are_counted(batches, bucket):
    job = batches.run(
        batches.line_job("in/bad.txt", instance_config={"instance_type": "object", "excluded_fields": ["id"]})
    )
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    assert (job.completion_stats.successful_count, job.completion_stats.failed_count) == (2, 2)
    files = outputs(bucket, job.output_info.gcs_output_directory)
    assert [json.loads(line) for line in files["prediction.results-00000-of-00001"].splitlines()] == [
        {"id": n, "instance": {"carrier": "UA", "distance": n}, "prediction": 2.0 * n} for n in (1, 2)
    ]
    errors = files["prediction.errors_stats-00000-of-00001"].splitlines()
    assert [line.endswith(", 1)") for line in errors] == [True, True]
    assert "in/bad.txt: line 2 is no instance" in errors[0]
    assert "Expected an object" in errors[1]


def test_no_object_fits(batches):
    job = batches.run(batches.line_job("in/nothing-*.jsonl"))
    assert job.state.name == "JOB_STATE_FAILED"
    assert (job.error.code, job.completion_stats.incomplete_count) == (9, -1)
    assert "No object fits" in job.error.message
