"""The ways of `make bench-scoring` to a model's answers that go through Vertex AI, as Google's own clients take them.

In: the environment of a local cloud's clients, a SavedModel, a file of JSON lines. Out: seconds and scores by key.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import google.auth
from google.auth.transport.requests import AuthorizedSession
from google.cloud import aiplatform_v1, bigquery, storage

from bench.scoring_contender import KEY
from localcloud.statements import statement

MODEL = "bench"
MACHINE = {"machine_spec": {"machine_type": "n1-standard-4"}}
BATCH_SIZE = 64
_TABLE = "bench.instances"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

Reading = dict[str, Any]
"""Rows, seconds, scores by key; of a job `whole_s` too: from its creation to its end."""


class Service:
    """A registered and deployed model, and its rows as a table and as a file."""

    def __init__(self, folder_path: Path) -> None:
        self.project, region = os.environ["RETRAINING_PROJECT"], os.environ["RETRAINING_REGION"]
        self._parent = f"projects/{self.project}/locations/{region}"
        self._options = {"api_endpoint": f"{region}-aiplatform.googleapis.com"}
        self._jobs = aiplatform_v1.JobServiceClient(client_options=self._options)
        self._bucket = storage.Client().bucket(os.environ["RETRAINING_BUCKET"])
        self._tables = bigquery.Client(project=self.project)
        self._session = AuthorizedSession(google.auth.default(scopes=[_SCOPE])[0])
        lines = (folder_path / "lines.jsonl").read_text().splitlines()
        self._rows = [json.loads(line) for line in lines]
        self._load_rows(folder_path / "lines.jsonl")
        self._model = self._register(folder_path / "model")
        endpoint = self._deploy()
        self._address = f"https://{self._options['api_endpoint']}/v1/{endpoint}:predict"

    def score_table(self) -> Reading:
        """Have the table scored into a table; its seconds are those while it ran, without the model's coming up."""
        job = self._run_job(
            input_config={
                "instances_format": "bigquery",
                "bigquery_source": {"input_uri": f"bq://{self.project}.{_TABLE}"},
            },
            output_config={
                "predictions_format": "bigquery",
                "bigquery_destination": {"output_uri": f"bq://{self.project}.bench"},
            },
        )
        table = f"bench.{job.output_info.bigquery_output_table}"
        rows = self._tables.query_and_wait(statement("SELECT key, prediction FROM {table}", table=table))
        return _reading(job, {row.key: json.loads(row.prediction) for row in rows})

    def score_lines(self) -> Reading:
        """Have the file scored into files; its seconds are those while it ran, without the model's coming up."""
        uri = f"gs://{self._bucket.name}/bench"
        job = self._run_job(
            input_config={"instances_format": "jsonl", "gcs_source": {"uris": [f"{uri}/lines.jsonl"]}},
            output_config={
                "predictions_format": "jsonl",
                "gcs_destination": {"output_uri_prefix": f"{uri}/answers"},
            },
        )
        prefix = job.output_info.gcs_output_directory.removeprefix(f"gs://{self._bucket.name}/")
        texts = [blob.download_as_text() for blob in self._bucket.list_blobs(prefix=f"{prefix}/prediction.results-")]
        answers = [json.loads(line) for text in texts for line in text.splitlines()]
        return _reading(job, {answer["key"]: answer["prediction"] for answer in answers})

    def ask_endpoint(self, size: int, most: int | None = None) -> Reading:
        """Ask the endpoint for the first rows, so many at once, one request after the other."""
        rows = self._rows[:most]
        instances = [{name: value for name, value in row.items() if name != KEY} for row in rows]
        self._ask(instances[:size])
        began = time.perf_counter()
        answers = [
            answer for start in range(0, len(rows), size) for answer in self._ask(instances[start : start + size])
        ]
        seconds = time.perf_counter() - began
        scores = dict(zip((row[KEY] for row in rows), answers, strict=True))
        return {"rows": len(rows), "seconds": seconds, "scores": scores}

    def _ask(self, instances: Sequence[Any]) -> list[float]:
        answer = self._session.post(self._address, json={"instances": instances}, timeout=60)
        answer.raise_for_status()
        found: list[float] = answer.json()["predictions"]
        return found

    def _load_rows(self, path: Path) -> None:
        blob = self._bucket.blob("bench/lines.jsonl")
        blob.upload_from_filename(str(path))
        fields = [
            bigquery.SchemaField(name, "STRING" if isinstance(value, str) else "FLOAT")
            for name, value in self._rows[0].items()
        ]
        config = bigquery.LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON", schema=fields)
        self._tables.create_dataset("bench", exists_ok=True)
        self._tables.load_table_from_uri(f"gs://{blob.bucket.name}/{blob.name}", _TABLE, job_config=config).result()

    def _register(self, path: Path) -> str:
        """Register the model behind TensorFlow Serving, as a run does."""
        for each in sorted(path.rglob("*")):
            if each.is_file():
                self._bucket.blob(f"bench/model/1/{each.relative_to(path)}").upload_from_filename(str(each))
        container = {
            "image_uri": os.environ["RETRAINING_SERVING_IMAGE"],
            "args": [
                "--rest_api_port=$(AIP_HTTP_PORT)",
                f"--model_name={MODEL}",
                "--model_base_path=$(AIP_STORAGE_URI)",
                "--file_system_poll_wait_seconds=0",
            ],
            "ports": [{"container_port": 8501}],
            "predict_route": f"/v1/models/{MODEL}:predict",
            "health_route": f"/v1/models/{MODEL}",
        }
        model = {
            "display_name": MODEL,
            "artifact_uri": f"gs://{self._bucket.name}/bench/model",
            "container_spec": container,
        }
        client = aiplatform_v1.ModelServiceClient(client_options=self._options)
        return str(client.upload_model(parent=self._parent, model=model).result(timeout=60).model)

    def _deploy(self) -> str:
        client = aiplatform_v1.EndpointServiceClient(client_options=self._options)
        made = client.create_endpoint(parent=self._parent, endpoint={"display_name": MODEL}).result(timeout=60)
        deployed = {"model": self._model, "dedicated_resources": {**MACHINE, "min_replica_count": 1}}
        client.deploy_model(endpoint=made.name, deployed_model=deployed, traffic_split={"0": 100}).result(timeout=120)
        return str(made.name)

    def _run_job(self, **configs: object) -> aiplatform_v1.BatchPredictionJob:
        job = {
            "display_name": MODEL,
            "model": self._model,
            "instance_config": {"instance_type": "object", "key_field": KEY},
            "dedicated_resources": {**MACHINE, "starting_replica_count": 1, "max_replica_count": 1},
            "manual_batch_tuning_parameters": {"batch_size": BATCH_SIZE},
            **configs,
        }
        made = self._jobs.create_batch_prediction_job(parent=self._parent, batch_prediction_job=job)
        while not made.end_time:
            time.sleep(0.5)
            made = self._jobs.get_batch_prediction_job(name=made.name)
        if made.error.message:
            raise RuntimeError(f"{made.name}: {made.error.message}")
        return made


def _reading(job: aiplatform_v1.BatchPredictionJob, scores: dict[str, float]) -> Reading:
    return {
        "rows": job.completion_stats.successful_count,
        "seconds": (job.end_time - job.start_time).total_seconds(),
        "whole_s": (job.end_time - job.create_time).total_seconds(),
        "scores": scores,
    }
