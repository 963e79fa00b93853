"""How a job of any family stands: when it is active, how it ends, and its run from start to end.

The state of a training pipeline is a PipelineState, which has the numbers of JobState: JobState stands for both here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator

from google.cloud.aiplatform_v1.types import JobState

from localcloud.vertex.processes.logs import job_log
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.operations import Cancelled, Progress
from localcloud.vertex.resources.store import Kind, Store, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, NotFound
from localcloud.vertex.wire.methods import Message

LOGGER = logging.getLogger(__name__)
_SERVICE = "service"  # task name of what the service itself says, as on Vertex AI
ACTIVE_STATES = tuple(
    f"{kind}_STATE_{state}" for kind in ("JOB", "PIPELINE") for state in ("QUEUED", "PENDING", "RUNNING", "CANCELLING")
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialRole:
    """Which trial of which tuning job a custom job is."""

    tuning_job_id: str
    trial_id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended."""

    state: JobState
    error: ApiError | None = None


def failed(error: ApiError) -> Outcome:
    """Return the end of a job that failed."""
    return Outcome(state=JobState.JOB_STATE_FAILED, error=error)


def cancelled() -> Outcome:
    """Return the end of a job that was cancelled."""
    return Outcome(state=JobState.JOB_STATE_CANCELLED, error=ApiError("CANCELED", code="CANCELLED"))


def is_active(job: Message) -> bool:
    """Return whether a job has not ended."""
    return job.state.name in ACTIVE_STATES


def finish_job(store: Store, kind: Kind, name: str, outcome: Outcome) -> None:
    """Write a job's end into the store."""
    with contextlib.suppress(NotFound), store.change(kind, name) as job:
        moment = now()
        job.state, job.update_time, job.end_time = outcome.state, moment, moment
        if outcome.error is not None:
            job.error = outcome.error.to_status()


class Run:
    """One job from start to end, in the thread that calls `run`.

    A family says in `_execute` what its job does; and in `_release` and `_finish`, if there is more to do at its end.

    Args:
        kind: The job's family.
        name: Its name in the store.
    """

    def __init__(self, store: Store, kind: Kind, name: str) -> None:
        self.name = name
        self._store = store
        self._kind = kind
        self._job = store.get(kind, name)
        self._progress = Progress()
        self._abandoned = False

    def run(self) -> None:
        """Execute the job, and write its end into the store."""
        try:
            outcome = self._execute()
        except Cancelled:
            outcome = cancelled()
        except ApiError as refusal:
            outcome = failed(refusal)
        except Exception as problem:  # the thread's last line: a job without an end would be waited for for ever
            LOGGER.exception("%s failed", self.name)
            outcome = failed(ApiError(f"Internal error: {type(problem).__name__}: {problem}.", code="INTERNAL"))
        self._release()
        if not self._abandoned:
            self._finish(outcome)

    def cancel(self) -> None:
        """Ask the job to end as CANCELLED."""
        self._progress.cancel()

    def abandon(self) -> None:
        """End the run because the server ends: the job stays in the store as it is."""
        self._abandoned = True
        self.cancel()

    def _execute(self) -> Outcome:
        """Do the job's work.

        Raises:
            ApiError: The job fails with it.
            Cancelled: The job was cancelled.
        """
        raise NotImplementedError

    def _release(self) -> None:
        """Give back what the job holds, however it ended."""

    def _finish(self, outcome: Outcome) -> None:
        finish_job(self._store, self._kind, self.name, outcome)

    @contextlib.contextmanager
    def _change(self) -> Iterator[Message]:
        with self._store.change(self._kind, self.name) as job:
            job.update_time = now()
            yield job

    def _advance(self, state: JobState) -> None:
        """Write a later state of an active job; one that is being cancelled stays so."""
        with contextlib.suppress(NotFound), self._store.change(self._kind, self.name) as job:
            if int(job.state) < state:
                job.state = state
                job.update_time = now()
                if state == JobState.JOB_STATE_RUNNING:
                    job.start_time = job.update_time


class LoggedRun(Run):
    """A run with the job's log.

    Args:
        title: What the log calls the job.
        trial: What the job is to a tuning job; None when it stands alone.
    """

    def __init__(self, machinery: Machinery, kind: Kind, name: str, title: str, trial: TrialRole | None = None) -> None:
        super().__init__(machinery.store, kind, name)
        self._machinery = machinery
        self._title = title
        self._trial = trial
        self._project = names.parse_location(str(names.location_of(name))).project
        self._log_id = trial.tuning_job_id if trial else names.last_part(name)
        self._log = job_log(machinery.shipper, self._project, self._log_id, trial.trial_id if trial else None)

    def _say(self, message: str, severity: str = "INFO") -> None:
        self._log.say(_SERVICE, message, severity)

    def _finish(self, outcome: Outcome) -> None:
        stopped_trial = self._trial is not None and self._progress.is_cancelled
        if outcome.error is not None and not stopped_trial:
            self._say(outcome.error.message, "ERROR")
        self._say(f"{self._title} ended: {outcome.state.name}.")
        self._machinery.shipper.flush()
        super()._finish(outcome)
