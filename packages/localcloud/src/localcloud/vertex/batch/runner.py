"""The batch prediction jobs that run now.

Comes in: names of pending jobs. Goes out: a `BatchRun` for each, until it ends. Like custom jobs they do not outlive
this server.
"""

from __future__ import annotations

import threading

from google.cloud.aiplatform_v1.types import JobState

from localcloud.vertex.batch.run import BatchMachinery, BatchRun
from localcloud.vertex.resources.jobs import ACTIVE_STATES, Outcome, cancelled, finish_job
from localcloud.vertex.resources.store import BATCH_JOBS
from localcloud.vertex.wire.errors import ApiError

_JOIN_S = 5.0


class BatchRunner:
    """The batch prediction jobs that run now.

    Args:
        shared: What they share.
    """

    def __init__(self, shared: BatchMachinery) -> None:
        self._shared = shared
        self._lock = threading.Lock()
        self._runs: dict[str, BatchRun] = {}

    def start(self, name: str) -> None:
        """Run a pending job in the background."""
        run = BatchRun(self._shared, name, self._forget)
        with self._lock:
            self._runs[name] = run
        run.start()

    def cancel(self, name: str) -> None:
        """Ask a job to end; its state follows."""
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run.cancel()

    def resume(self) -> None:
        """After a restart: mark what was running."""
        store = self._shared.machinery.store
        lost = ApiError(
            "Internal error: the local cloud was stopped while the job ran. Create the job again.", code="INTERNAL"
        )
        for job in store.list_in_state(BATCH_JOBS, *ACTIVE_STATES):
            cancelling = job.state == JobState.JOB_STATE_CANCELLING
            outcome = cancelled() if cancelling else Outcome(state=JobState.JOB_STATE_FAILED, error=lost)
            finish_job(store, BATCH_JOBS, job.name, outcome)

    def close(self) -> None:
        """End all jobs and wait for them; the next start marks them."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()
        for run in runs:
            run.join(_JOIN_S)

    def _forget(self, name: str) -> None:
        with self._lock:
            self._runs.pop(name, None)
