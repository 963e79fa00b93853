"""What every family of jobs does, once: its calls, the jobs that run now, and what becomes of them after a restart.

Comes in: requests to create, get, list, cancel and delete. Goes out: jobs in the store, and a `Run` for each in a
thread of its own until it ends. A family is a subclass that says what is its own: its kind, what is wrong with a job,
how one runs, and what else it leaves behind. Names of calls, fields and permissions follow from the kind's noun, as in
the API.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Mapping
from typing import ClassVar

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import JobState
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.jobs.runs import ACTIVE_STATES, Run, cancelled, failed, finish_job, is_active
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import Kind, Store, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition
from localcloud.vertex.wire.listing import JOB_FIELDS, list_page
from localcloud.vertex.wire.methods import Message, snake_case


class JobFamily(abc.ABC):
    """Answers what is asked of the jobs of one kind, and runs them.

    `create` answers CreateCustomJob of the kind CustomJob under its handler's name `create_custom_job`, and so on.

    Attributes:
        service: The API's service that has the calls.
        kind: The kind of the jobs.
        first_state: The state of a new job.
        list_fields: What a list's filter may name.
        outlives_server: Whether a job goes on after a restart; others are marked as FAILED, which callers may retry.
        lost: What is said of a job that did not outlive the server.
        patience_s: How long the server waits at its end for a run to end.
    """

    service: ClassVar[str] = "JobService"
    kind: ClassVar[Kind]
    first_state: ClassVar[JobState] = JobState.JOB_STATE_PENDING
    list_fields: ClassVar[Mapping[str, str]] = JOB_FIELDS
    outlives_server: ClassVar[bool] = False
    lost: ClassVar[str] = "the local cloud was stopped while the job ran. Create the job again."
    patience_s: float = 5.0

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[Run, threading.Thread]] = {}
        self._field = snake_case(self.kind.noun)
        for call in (self.create, self.get, self.cancel, self.delete):
            setattr(self, f"{call.__name__}_{self._field}", call)
        setattr(self, f"list_{self._field}s", self.list_jobs)

    # --- what a family says -------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _check(self, job: Message) -> None:
        """Look for everything that can be known before a job runs, and fill in what the service fills in.

        Args:
            job: The new job, with its name; nothing is in it that only the service may set.

        Raises:
            ApiError: The refusal.
        """

    @abc.abstractmethod
    def _make_run(self, name: str) -> Run:
        """Return the run of a job of the store."""

    def forget(self, name: str) -> None:
        """Remove a job that has ended, and what it left."""
        self._store.delete(self.kind, name)

    # --- calls --------------------------------------------------------------------------------------------------------

    def create(self, request: Message) -> Message:
        """Check the job, keep it, start it."""
        location = names.parse_location(request.parent)
        job = self.kind.type()
        self.kind.type.copy_from(job, getattr(request, self._field))
        job.name = f"{location}/{self.kind.collection}/{names.new_id()}"
        self._check(job)
        job.state = self.first_state
        job.create_time = job.update_time = now()
        self._store.insert(self.kind, job.name, request.parent, job)
        self.start(job.name)
        return job

    def get(self, request: Message) -> Message:
        """Return the job as it stands."""
        return self._store.get(self.kind, self._checked_name(request))

    def list_jobs(self, request: Message) -> Message:
        """Return jobs of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(self.kind, request.parent), request, self.list_fields)
        response = getattr(types, f"List{self.kind.noun}sResponse")
        return response(**{f"{self._field}s": page}, next_page_token=token)

    def cancel(self, request: Message) -> empty_pb2.Empty:
        """Ask a job to end; one that has ended already stays as it is."""
        with self._store.change(self.kind, self._checked_name(request)) as job:
            if is_active(job):
                job.state, job.update_time = JobState.JOB_STATE_CANCELLING, now()
        self.stop(request.name)
        return empty_pb2.Empty()

    def delete(self, request: Message) -> operations_pb2.Operation:
        """Remove a job that has ended, and what it left."""
        job = self._store.get(self.kind, self._checked_name(request))
        if is_active(job):
            raise FailedPrecondition(
                f"The {self.kind.noun} {job.name} is in state {job.state.name} and cannot be deleted. Cancel it and"
                " wait until it has ended."
            )

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            self.forget(job.name)
            return empty_pb2.Empty()

        call = f"{self.service}.Delete{self.kind.noun}"
        return self._operations.start(call, job.name, types.DeleteOperationMetadata(), work)

    def _checked_name(self, request: Message) -> str:
        return names.check_name(request.name, self.kind.collection)

    # --- the jobs that run now ----------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Run a job of the store in the background."""
        self._begin(self._make_run(name))

    def _begin(self, run: Run) -> None:
        title = f"{self.kind.noun}-{names.last_part(run.name)}"
        thread = threading.Thread(target=self._follow, args=(run,), name=title, daemon=True)
        with self._lock:
            self._runs[run.name] = run, thread
        thread.start()

    def _follow(self, run: Run) -> None:
        run.run()
        with self._lock:
            self._runs.pop(run.name, None)

    def stop(self, name: str) -> None:
        """Ask a running job to end; its state follows."""
        with self._lock:
            run, _ = self._runs.get(name, (None, None))
        if run is not None:
            run.cancel()

    def resume(self) -> None:
        """Settle what had not ended when the server ended: it goes on, or it is marked."""
        for job in self._store.list_in_state(self.kind, *ACTIVE_STATES):
            if int(job.state) == JobState.JOB_STATE_CANCELLING:
                finish_job(self._store, self.kind, job.name, cancelled())
            elif self.outlives_server:
                self.start(job.name)
            else:
                lost = ApiError(f"Internal error: {self.lost}", code="INTERNAL")
                finish_job(self._store, self.kind, job.name, failed(lost))

    def close(self) -> None:
        """End all runs and wait for them, because the server ends."""
        with self._lock:
            threads = [thread for _, thread in self._runs.values()]
        self._abandon()
        for thread in threads:
            thread.join(self.patience_s)

    def _abandon(self) -> None:
        """Let all runs end, and what they share."""
        with self._lock:
            runs = [run for run, _ in self._runs.values()]
        for run in runs:
            run.abandon()
