"""Batch prediction jobs over a model that doubles the distance of UA."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as v1
from google.cloud import bigquery

from packages.localcloud.tests.vertex.conftest import ENDED, poll

MACHINE = {"machine_spec": {"machine_type": "n1-standard-2"}, "starting_replica_count": 1, "max_replica_count": 2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Batches:
    """Makes jobs of one model and waits for them."""

    api: Any
    model: str
    dataset: str  # project.dataset
    prefix: str  # gs://

    def table_job(self, table: str, **changes: Any) -> v1.BatchPredictionJob:
        """A job from a table into the dataset."""
        return self.job(
            **{
                "input_config": {
                    "instances_format": "bigquery",
                    "bigquery_source": {"input_uri": f"bq://{self.dataset}.{table}"},
                },
                "output_config": {
                    "predictions_format": "bigquery",
                    "bigquery_destination": {"output_uri": f"bq://{self.dataset}"},
                },
                "instance_config": {"instance_type": "object"},
                **changes,
            }
        )

    def line_job(self, *uris: str, **changes: Any) -> v1.BatchPredictionJob:
        """A job from objects below the prefix into a folder there."""
        return self.job(
            **{
                "input_config": {
                    "instances_format": "jsonl",
                    "gcs_source": {"uris": [f"{self.prefix}/{uri}" for uri in uris]},
                },
                "output_config": {
                    "predictions_format": "jsonl",
                    "gcs_destination": {"output_uri_prefix": f"{self.prefix}/out"},
                },
                **changes,
            }
        )

    def job(self, **fields: Any) -> v1.BatchPredictionJob:
        """A job of the model."""
        return v1.BatchPredictionJob(
            **{"display_name": "score", "model": self.model, "dedicated_resources": MACHINE, **fields}
        )

    def create(self, job: v1.BatchPredictionJob) -> v1.BatchPredictionJob:
        """Create a job."""
        return self.api.jobs.create_batch_prediction_job(parent=self.api.parent, batch_prediction_job=job)

    def wait(self, job: v1.BatchPredictionJob, *states: str) -> v1.BatchPredictionJob:
        """The job once it is in one of the states (default: has ended)."""
        return poll(
            lambda: self.api.jobs.get_batch_prediction_job(name=job.name),
            lambda seen: seen.state.name in (set(states) or ENDED),
            60,
        )

    def run(self, job: v1.BatchPredictionJob) -> v1.BatchPredictionJob:
        """Create a job and wait for its end."""
        return self.wait(self.create(job))


@pytest.fixture(scope="session")
def bq(local_cloud) -> bigquery.Client:
    """The real BigQuery client, with a dataset `batch` that has flights and nothing else."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("batch", exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE batch.flights AS SELECT n AS id, IF(MOD(n, 2) = 0, 'UA', 'AA') AS carrier,"
        " CAST(n AS FLOAT64) AS distance FROM UNNEST(GENERATE_ARRAY(1, 200)) AS n"
    )
    return client


@pytest.fixture(scope="session")
def batches(api, bq, bucket, upload) -> Batches:
    """Jobs over a model of two versions."""
    name = upload("batched").model
    upload("batched", parent_model=name, version_aliases=["challenger"])
    prefix = f"gs://{bucket.name}/vertex-tests/batch"
    return Batches(api=api, model=name, dataset=f"{bq.project}.batch", prefix=prefix)
