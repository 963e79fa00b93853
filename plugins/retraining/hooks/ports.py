"""What a task may ask of the cloud: one protocol per service, and `CloudPort` with all of them.

Operators are written against these alone. The hooks satisfy them through Google's clients, the fakes of the tests in
memory; one suite of tests (`tests/hooks/ports`) holds both to what is said here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import IO, Any, Protocol

from retraining.core.data.source_files import Load
from retraining.core.data.span_store import StoredObject
from retraining.core.data.sql import Query
from retraining.core.documents import Served
from retraining.core.jobs.job import Job, JobType
from retraining.core.jobs.machine_pools import OpenPool
from retraining.core.monitoring.signals import Answered
from retraining.core.naming.environments import Environment
from retraining.core.notification.messages import Message, Recipient
from retraining.core.placement import Caller
from retraining.core.promotion.latencies import Measured
from retraining.core.promotion.versions import Version
from retraining.core.report.attributions import Attribution
from retraining.core.report.tracking.tracked_run import TrackedRun
from retraining.core.retention.jobs_and_tables import Table
from retraining.core.settings import Settings
from retraining.core.untyped import ApiJson, ProtoJson
from retraining.hooks import endpoints, predictions, warehouse
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.logs import Cursor, Line
from retraining.hooks.objects import Deleted
from retraining.hooks.operations import Operation
from retraining.hooks.registry import Upload


class ClockPort(Protocol):
    """The time of day, for what waits."""

    def now(self) -> datetime:
        """Return the time, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that only grow, for durations."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class ArtifactsPort(Protocol):
    """Documents in buckets, by address: written once, read by everybody."""

    def bucket_locations(self, bucket: str) -> tuple[str, ...] | None:
        """Return a bucket's location and the regions that it names itself; None: there is none, or it is not told."""

    def bucket_key(self, bucket: str) -> str | None:
        """Return the key of a bucket's new objects; empty: Google's; None: nobody may say."""

    def read_object(self, uri: str) -> bytes | None:
        """Return an object's bytes; None when there is none."""

    def read_many(self, uris: list[str]) -> list[bytes]:
        """Return the bytes of several objects, in the given order, without those that are gone."""

    def read_some(self, uris: list[str]) -> dict[str, bytes]:
        """Return addresses and bytes of the objects that are there, in the given order."""

    def read_ranges(self, ranges: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
        """Return parts of objects by address: of each the bytes from, and up to (exclusive); without those gone."""

    def parquet_columns(self, sizes: Mapping[str, int]) -> dict[str, list[str] | None]:
        """Return the names of the columns of Parquet files of known sizes; None of one that is no Parquet file."""

    def exists(self, uri: str) -> bool:
        """Say whether there is an object."""

    def existing(self, uris: list[str]) -> list[str]:
        """Return those of the addresses that have an object, in the given order."""

    def write_once(self, uri: str, data: bytes, content_type: str = "application/json") -> bytes:
        """Write an object unless there is one; return the bytes that are stored then."""

    def overwrite(self, uri: str, data: bytes, content_type: str) -> None:
        """Write an object, whatever was there."""

    def read_generation(self, uri: str) -> tuple[bytes, int]:
        """Return an object's bytes and generation; no bytes and 0 when there is none."""

    def write_if(self, uri: str, data: bytes, generation: int, content_type: str = "application/json") -> int | None:
        """Write an object if it is still of this generation; return the new one, None when somebody was faster.

        What is stored already as it would be written counts as written: it may be this writer's, whose answer got lost.
        """

    def list_uris(self, folder_uri: str, *, start: str = "", end: str = "", suffix: str = "") -> list[str]:
        """Return the objects of a folder and below, sorted: from `start` on, before `end`, with the suffix."""

    def list_folders(self, folder_uri: str, *, end: str = "") -> list[str]:
        """Return the folders directly in a folder, sorted, whose names are before `end`."""


class ObjectsPort(Protocol):
    """Objects as a listing has them, with generations, and deleting exactly those."""

    def walk(self, folder_uri: str) -> Iterator[StoredObject]:
        """Yield the objects of a folder and below, in order of names."""

    def directly_in(self, folder_uri: str) -> list[StoredObject]:
        """Return the objects of a folder, without those of folders below it."""

    def find_object(self, uri: str) -> StoredObject | None:
        """Return one object as a listing would have it; None when there is none."""

    def match(self, uri: str) -> list[StoredObject]:
        """Return the objects at an address, in order of names; one `*` in it stands for any text, slashes too."""

    def delete(self, objects: Iterable[StoredObject]) -> Iterator[Deleted]:
        """Delete each that is still of the generation listed; one that is gone counts as deleted."""


class WarehousePort(Protocol):
    """Statements on BigQuery, each a job whose id says what it is."""

    def dry_run(self, query: Query, where: str) -> warehouse.Answer:
        """Return the schema of the result, the bytes that would be read, and the tables that they are of."""

    def run_query(self, query: Query, job_id: str, where: str, max_bytes: int | None = None) -> warehouse.Answer:
        """Run a statement as the job of this id, or join the one that has it; return when it is done.

        It is refused when it would read more than `max_bytes`, or than RETRAINING_MAX_BYTES_BILLED.
        """

    def load_files(self, load: Load, job_id: str, where: str) -> None:
        """Append the rows of files to a table as the job of this id, or join the one that has it; all or none."""

    def load_lines(self, lines: IO[bytes], table: str, job_id: str, where: str) -> None:
        """Append rows, as JSON lines that may be compressed, to a table, as the job of this id; all or none."""

    def dataset_location(self, dataset: str) -> str | None:
        """Return where a dataset is; None: there is none, or it is not told."""

    def dataset_key(self, dataset: str) -> str | None:
        """Return the key of a dataset's new tables; empty: Google's; None: nobody may say."""

    def table_schema(self, table: str) -> list[ApiJson] | None:
        """Return the columns of `project.dataset.table`; None when there is no such table."""

    def table_changed(self, table: str) -> datetime | None:
        """Return when `project.dataset.table` last changed; None: it is gone, or the account may not look at it."""

    def visible_columns(self, table: str) -> list[ApiJson]:
        """Return the columns of `project.dataset.table`; none when it is gone, or the account may not look at it."""

    def delete_table(self, table: str) -> None:
        """Delete `project.dataset.table`; one that is gone stays gone."""

    def list_tables(self, dataset: str) -> list[Table]:
        """Return the tables of a dataset; none when there is no such dataset."""


class JobsPort(Protocol):
    """Custom, tuning and batch prediction jobs of Vertex AI; of this environment's alone where they are listed."""

    def find_jobs(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """Return the jobs of some types that have these labels, oldest first."""

    def find_active(self, label: str, types: Collection[JobType] = tuple(JobType)) -> list[Job]:
        """Return the jobs that may still do something and carry a label, whatever its value."""

    def create(self, job: Mapping[str, Any]) -> Job:
        """Create a job from proto-JSON. After an error it may be there: look before creating again."""

    def get(self, name: str) -> Job:
        """Return a job as it stands."""

    def find_by_name(self, name: str) -> Job | None:
        """Return a job as it stands; None when it is gone."""

    def trials(self, name: str) -> list[ProtoJson]:
        """Return the trials of a tuning job in proto-JSON, by number."""

    def cancel(self, name: str) -> None:
        """Ask a job to end; one that has ended, or is gone, stays as it is."""


class MachinePoolsPort(Protocol):
    """Machines that stay between jobs, by ids that the caller chooses; of this environment alone."""

    def find(self, pool_id: str) -> OpenPool | None:
        """Return a pool as it stands; None when there is none."""

    def create(self, pool_id: str, resource: Mapping[str, Any]) -> None:
        """Begin to make a pool from proto-JSON; one that is there stays as it is."""

    def delete(self, pool_id: str) -> None:
        """Begin to delete a pool and the jobs on it; one that is gone, or going, stays so."""

    def find_all(self) -> list[OpenPool]:
        """Return all pools."""


class LogsPort(Protocol):
    """Log lines of jobs."""

    def read_new(self, job_id: str, cursor: Cursor) -> list[Line]:
        """Return the lines that were not read before, in order of time, and move the cursor."""


class RegistryPort(Protocol):
    """Versions of models, and the aliases that point to them."""

    def find_by_alias(self, model: str, alias: str) -> Version | None:
        """Return the version that an alias points to."""

    def find_by_run(self, model: str, run_key: str) -> Version | None:
        """Return the version that a run registered; of several the oldest."""

    def versions_of_run(self, model: str, run_key: str) -> list[Version]:
        """Return what a run registered, oldest first."""

    def list_versions(self, model: str) -> list[Version]:
        """Return all versions of a model, in no order; none when it is not registered."""

    def start_upload(self, model: str, upload: Upload) -> Operation:
        """Begin to register a version. After an error it may have begun: look before beginning again."""

    def operation(self, name: str) -> Operation | None:
        """Return long-running work as it stands; None when the service has forgotten it."""

    def running_operations(self, model: str) -> list[Operation]:
        """Return the work on a model that is not done; none when it is not registered."""

    def delete_version(self, version: Version) -> bool:
        """Delete a version; False: it is deployed, or a model's only one, and stays."""

    def find_evaluation(self, version: Version, display_name: str) -> str | None:
        """Return the name of a version's evaluation by its display name; of several the oldest."""

    def import_evaluation(self, version: Version, evaluation: ProtoJson) -> str:
        """Keep an evaluation beside a version; return its name. After an error it may be there: look before."""

    def imported_slices(self, evaluation_name: str) -> set[str]:
        """Return the values of the slices that an evaluation has."""

    def import_slices(self, evaluation_name: str, slices: Sequence[ProtoJson]) -> None:
        """Keep slices of an evaluation, 50 at most; all or none. After an error they may be there: look before."""

    def merge_aliases(self, version: Version, wishes: Sequence[str]) -> Version:
        """Give aliases to a version, from whichever has them; `-alias` takes one away."""

    def move_alias(self, model: str, alias: str, to: Version, expected: str | None) -> Version:
        """Move an alias if the version of this id has it; None: if nobody has.

        Raises:
            ConflictError: Somebody else moved it meanwhile.
        """


class ModelFilesPort(Protocol):
    """Stored models."""

    def digest(self, folder_uri: str) -> str | None:
        """Return the digest over all files in a folder and below; None when there is none."""

    def copy_missing(self, source_uri: str, target_uri: str) -> int:
        """Copy the files of a folder to another one, inside the service; return how many were not there yet.

        What is there stays as it is, whatever it is: the digest tells.
        """


class EndpointsPort(Protocol):
    """The endpoint of each model."""

    def name_of(self, model: str) -> str:
        """Return the full name of a model's endpoint, whether it is there or not."""

    def get(self, model: str) -> Endpoint | None:
        """Return a model's endpoint; None when there is none."""

    def ensure(
        self,
        model: str,
        log_table: str | None,
        labels: Mapping[str, str],
        options: endpoints.EndpointOptions | None = None,
    ) -> Endpoint:
        """Return a model's endpoint; made where it is missing, with a table for its requests if one is named."""

    def has_shared_machines(self, pool_id: str) -> bool:
        """Return whether there are machines of an id that models share."""

    def read_endpoint(self, name: str) -> Endpoint:
        """Return an endpoint by its full name."""

    def start_deploy(
        self, endpoint: Endpoint, version_name: str, run_key: str, machine: Mapping[str, Any]
    ) -> Operation | None:
        """Begin to deploy a version, without traffic, if the endpoint is as it was read; None: this run's is there.

        Raises:
            ConflictError: Somebody else changed the endpoint meanwhile.
        """

    def operation(self, name: str) -> Operation | None:
        """Return long-running work as it stands; None when the service has forgotten it."""

    def cancel_operation(self, name: str) -> None:
        """Ask long-running work to end; it may be too late for that."""

    def running_operations(self, endpoint: Endpoint) -> list[Operation]:
        """Return the work on an endpoint that is not done."""

    def set_traffic(self, endpoint: Endpoint, traffic: Mapping[str, int], generation: int | None = None) -> Endpoint:
        """Share the requests anew, if the endpoint is as it was read; no shares: nobody answers.

        `generation` is of the rollout document that allows it: the endpoint's labels name it, so its etag changes.

        Raises:
            ConflictError: Somebody else changed the endpoint meanwhile.
        """

    def set_sampling(self, endpoint: Endpoint, sampling: float) -> None:
        """Log another share of an endpoint's requests from now on."""

    def undeploy(self, endpoint: Endpoint, deployed_id: str) -> None:
        """Take a deployed model without traffic away, if the endpoint is as it was read; one that is gone stays gone.

        Raises:
            ConflictError: Somebody else changed the endpoint meanwhile.
        """

    def predict(self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]]) -> predictions.Answer:
        """Ask the endpoint, as any application would."""

    def predict_once(
        self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]], timeout_s: float
    ) -> predictions.Answer | predictions.Unanswered:
        """Ask the endpoint as an application that does not try again, and waits so long."""

    def explain(
        self, endpoint: Endpoint, instances: Sequence[Mapping[str, Any]], deployed_id: str = ""
    ) -> list[list[Attribution]]:
        """Ask what each feature adds to the answers, of one deployed model; "": of one by the traffic."""


class ServingMetricsPort(Protocol):
    """What endpoints measured."""

    def served(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, Served]:
        """Return what each deployed model answered after a time and up to another one, by id."""

    def measured(
        self, endpoint_name: str, start: datetime, end: datetime, period: timedelta
    ) -> list[dict[str, Measured]]:
        """Return what each deployed model answered in one period after the other, with its times in buckets."""

    def answered(self, endpoint_name: str, start: datetime, end: datetime) -> dict[str, Answered]:
        """Return the same with three percentiles of the latency."""


class NotifiersPort(Protocol):
    """Messages to people, through an Airflow connection or by a team's own notifier."""

    def send(self, recipient: Recipient, message: Message, message_id: str) -> None:
        """Send a message to one recipient.

        Raises:
            NotSentError: It was not taken; the text may be stored.
        """


class TrackersPort(Protocol):
    """Experiment trackers, by the words of the setting."""

    def track(self, tracker: str, run: TrackedRun) -> str:
        """Bring a run in a tracker to what it is; return what it is called there.

        Raises:
            TrackingError: The tracker did not take it in time, or refused it.
        """

    def digests(self, tracker: str, model: str) -> dict[str, str]:
        """Return what a tracker was last told of each run of a model: digests by run key; empty: not all of one.

        Raises:
            TrackingError: It gave no answer in time, or refused.
        """


class CloudPort(Protocol):
    """All that a task may ask, and where it is.

    Attributes:
        caller: The task that asks, set before it asks anything.
    """

    caller: Caller

    @property
    def settings(self) -> Settings:
        """Where things are."""

    @property
    def environment(self) -> Environment:
        """Which Airflow environment this is, among those of the project."""

    @property
    def clock(self) -> ClockPort:
        """The time of day."""

    @property
    def artifacts(self) -> ArtifactsPort:
        """Cloud Storage, as documents."""

    @property
    def objects(self) -> ObjectsPort:
        """Cloud Storage, as listings and deletions."""

    @property
    def warehouse(self) -> WarehousePort:
        """BigQuery."""

    @property
    def jobs(self) -> JobsPort:
        """Vertex AI jobs."""

    @property
    def machine_pools(self) -> MachinePoolsPort:
        """Vertex AI persistent resources."""

    @property
    def logs(self) -> LogsPort:
        """Cloud Logging."""

    @property
    def registry(self) -> RegistryPort:
        """Vertex AI models."""

    @property
    def model_files(self) -> ModelFilesPort:
        """Stored models."""

    @property
    def endpoints(self) -> EndpointsPort:
        """Vertex AI endpoints."""

    @property
    def serving_metrics(self) -> ServingMetricsPort:
        """Cloud Monitoring, of endpoints."""

    @property
    def notifiers(self) -> NotifiersPort:
        """Airflow's notifiers."""

    @property
    def trackers(self) -> TrackersPort:
        """Experiment trackers."""
