"""One batch prediction job from start to end: a model in processes of its own, batches to them, answers to the output.

Comes in: the name of a job in the store. Goes out: its states, counts and error in the store, its output in BigQuery or
Cloud Storage. As on Vertex AI a batch is one request: when the model refuses it, all its instances have failed, and the
job goes on; it fails when no instance at all succeeded.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import queue
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from google.cloud.aiplatform_v1.types import (
    BatchPredictionJob,
    CompletionStats,
    DeployedModel,
    JobState,
    Model,
    ResourcesConsumed,
)
from google.protobuf import json_format

from localcloud.vertex.jobs.batch import lines, table
from localcloud.vertex.jobs.batch.conversion import Batch, Conversion, Json
from localcloud.vertex.jobs.runs import LoggedRun, Outcome
from localcloud.vertex.processes.logs import ProcessLog
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.processes.serving_contract import read_predictions, request_body
from localcloud.vertex.resources.operations import Progress
from localcloud.vertex.resources.store import BATCH_JOBS
from localcloud.vertex.resources.validation import split_bigquery_uri
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, NotFound
from localcloud.vertex.wire.methods import raw

DEFAULT_BATCH_SIZE = 64
MAX_PARTIAL_FAILURES = 20
_TICK_S = 0.1
_COUNT_EVERY_S = 1.0
_AHEAD = 2  # batches on their way, per replica


class Served(Protocol):
    """A process that serves a model."""

    def start(self) -> None:
        """Begin to come up."""

    def wait_ready(self, progress: Progress | None = None) -> int:
        """Return once it answers."""

    def predict(self, body: bytes) -> bytes:
        """Return its answer to a request."""

    def stop(self) -> None:
        """End it."""


class Output(Protocol):
    """Where predictions go."""

    def add(self, batch: Batch, predictions: list[Json]) -> None:
        """Keep instances with their predictions."""

    def add_failed(self, batch: Batch, error: ApiError) -> None:
        """Keep instances that have none."""

    def finish(self) -> BatchPredictionJob.OutputInfo:
        """Write everything to its place."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchMachinery:
    """What all batch prediction jobs share.

    Attributes:
        serve: Makes a process of a model: version, its machines, what messages call it, its log, its folder.
        find_version: Finds the model version that a name means.
        folder: Jobs keep their files in folders below it.
    """

    machinery: Machinery
    serve: Callable[[Model, DeployedModel, str, ProcessLog, Path], Served]
    find_version: Callable[[names.ModelName], Model]
    folder: Path


class BatchRun(LoggedRun):
    """One batch prediction job from start to end."""

    def __init__(self, shared: BatchMachinery, name: str) -> None:
        super().__init__(shared.machinery, BATCH_JOBS, name, "Batch prediction")
        self._shared = shared
        self._folder = shared.folder / names.last_part(name)
        self._served: list[Served] = []
        self._stats = CompletionStats(incomplete_count=-1)
        self._failures: list[ApiError] = []
        self._counted = 0.0
        self._begun = time.monotonic()

    def _release(self) -> None:
        for served in self._served:
            served.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _finish(self, outcome: Outcome) -> None:
        seconds = time.monotonic() - self._begun
        with self._change_counted() as job:
            job.resources_consumed = ResourcesConsumed(replica_hours=len(self._served) * seconds / 3600)
        super()._finish(outcome)

    @contextlib.contextmanager
    def _change_counted(self) -> Iterator[BatchPredictionJob]:
        """Change the job in the store, with its counts."""
        with self._change() as job:
            job.completion_stats = self._stats
            job.partial_failures = [failure.to_status() for failure in self._failures]
            yield job

    def _write_counts(self) -> None:
        with self._change_counted():
            pass

    def _execute(self) -> Outcome:
        self._folder.mkdir(parents=True)
        self._machinery.faults.apply("Job.Start", self._progress.sleep, self._job)
        version = self._shared.find_version(
            names.parse_model(f"{self._job.model}@{self._job.model_version_id}", "model")
        )
        batches, output = self._open(version)
        self._serve(version)
        self._advance(JobState.JOB_STATE_RUNNING)
        self._write_counts()
        for batch, answer in self._predict(batches):
            self._keep(output, batch, answer)
        self._progress.check()
        output_info = output.finish()
        self._stats.incomplete_count = 0
        with self._change_counted() as job:
            job.output_info = output_info
        if self._failures and not self._stats.successful_count:
            raise self._failures[0]
        return Outcome(state=JobState.JOB_STATE_SUCCEEDED)

    def _open(self, version: Model) -> tuple[Iterator[Batch], Output]:
        job, buckets, tables = self._job, self._machinery.buckets, self._machinery.tables
        conversion = Conversion.of(job)
        batch_size = job.manual_batch_tuning_parameters.batch_size or DEFAULT_BATCH_SIZE
        if job.input_config.instances_format == "jsonl":
            prefix = job.output_config.gcs_destination.output_uri_prefix.rstrip("/")
            moment = f"{job.create_time:%Y-%m-%dT%H:%M:%S}.{job.create_time.microsecond // 1000:03}Z"
            destination = f"{prefix}/prediction-{version.display_name.replace('/', '_')}-{moment}"
            uris = list(job.input_config.gcs_source.uris)
            return (
                lines.read_batches(buckets, uris, conversion, batch_size),
                lines.LineOutput(buckets=buckets, destination=destination, folder=self._folder),
            )
        source = job.input_config.bigquery_source.input_uri.removeprefix("bq://")
        columns = tables.find_columns(source)
        if columns is None:
            raise NotFound(f"The BigQuery table {source} does not exist.")
        dataset, tables_names = self._destination_tables(version)
        output = table.TableOutput(
            tables=tables,
            destination=dataset,
            names=tables_names,
            columns=table.shown_columns(columns, conversion),
            folder=self._folder,
        )
        return table.read_batches(tables, source, conversion, batch_size), output

    def _destination_tables(self, version: Model) -> tuple[str, tuple[str, str]]:
        """Return dataset and tables of the output; a dataset of the job's own is made."""
        job = self._job
        project, dataset, name = split_bigquery_uri(job.output_config.bigquery_destination.output_uri) or ("", "", "")
        moment = f"{job.create_time:%Y_%m_%dT%H_%M_%S}_{job.create_time.microsecond // 1000:03}Z"
        if not dataset:
            dataset = re.sub(r"\W", "_", f"prediction_{version.display_name}_{moment}")
            self._machinery.tables.make_dataset(f"{project}.{dataset}")
        suffix = f"{moment}_{job.name[-3:]}"
        return f"{project}.{dataset}", (name or f"predictions_{suffix}", f"errors_{suffix}")

    def _serve(self, version: Model) -> None:
        """Bring up a process for each replica; never more than this machine has cores."""
        resources = self._job.dedicated_resources
        replicas = min(resources.starting_replica_count or 1, os.cpu_count() or 1)
        self._say(f"Batch prediction is preparing: {replicas} replica(s).")
        where = f"model of {self.name}"
        for index in range(replicas):
            replica = DeployedModel(
                id=str(index),
                dedicated_resources={"machine_spec": resources.machine_spec},
                service_account=self._job.service_account,
            )
            folder = self._folder / f"{names.last_part(self.name)}-{index}"
            self._served.append(self._shared.serve(version, replica, where, self._log, folder))
            self._served[-1].start()
        for served in self._served:
            served.wait_ready(self._progress)

    def _predict(self, batches: Iterator[Batch]) -> Iterator[tuple[Batch, list[Json] | ApiError]]:
        """Return batches in order, with predictions or the reason for none; a few are on their way at any time."""
        free: queue.SimpleQueue[Served] = queue.SimpleQueue()
        for served in self._served:
            free.put(served)
        sent: collections.deque[tuple[Batch, Future[list[Json] | ApiError]]] = collections.deque()
        pool = ThreadPoolExecutor(len(self._served), thread_name_prefix="batch-request")
        try:
            for batch in batches:
                sent.append((batch, pool.submit(self._ask, free, batch)))
                if len(sent) >= _AHEAD * len(self._served):
                    yield self._wait(*sent.popleft())
            while sent:
                yield self._wait(*sent.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _wait(self, batch: Batch, answer: Future[list[Json] | ApiError]) -> tuple[Batch, list[Json] | ApiError]:
        while True:
            self._progress.check()
            with contextlib.suppress(TimeoutError):
                return batch, answer.result(_TICK_S)

    def _ask(self, free: queue.SimpleQueue[Served], batch: Batch) -> list[Json] | ApiError:
        if batch.problem is not None:
            return batch.problem
        parameters = None
        if "model_parameters" in self._job:
            parameters = json_format.MessageToDict(raw(self._job).model_parameters)
        served = free.get()
        try:
            answer = served.predict(request_body(batch.instances, parameters))
            return read_predictions(answer, len(batch.instances))
        except ApiError as error:
            return ApiError(f"Post request fails. Cannot get predictions. Error: {error.message}.", code=error.code)
        finally:
            free.put(served)

    def _keep(self, output: Output, batch: Batch, answer: list[Json] | ApiError) -> None:
        if isinstance(answer, ApiError):
            output.add_failed(batch, answer)
            self._stats.failed_count += len(batch.instances)
            if len(self._failures) < MAX_PARTIAL_FAILURES:
                self._failures.append(answer)
        else:
            output.add(batch, answer)
            self._stats.successful_count += len(batch.instances)
        if time.monotonic() - self._counted > _COUNT_EVERY_S:
            self._counted = time.monotonic()
            self._write_counts()
