"""The tuning jobs that run now.

Comes in: names of queued jobs. Goes out: a `TuningRun` for each, until it ends; after a restart, again for each that
had not ended.
"""

from __future__ import annotations

import threading

from google.cloud.aiplatform_v1.types import JobState

from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.jobs import ACTIVE_STATES, cancelled, finish_job
from localcloud.vertex.resources.store import CUSTOM_JOBS, TUNING_JOBS
from localcloud.vertex.tuning.run import TuningRun
from localcloud.vertex.tuning.search.bayesian import Designer
from localcloud.vertex.tuning.trial_run import JobRunner

_JOIN_S = 5.0


class Tuner:
    """The tuning jobs that run now.

    Args:
        runner: Runs the trials' custom jobs.
    """

    def __init__(self, machinery: Machinery, runner: JobRunner) -> None:
        self._machinery = machinery
        self._runner = runner
        self.designer = Designer(machinery.folder.with_name("tuning"), machinery.guardian)
        self._lock = threading.Lock()
        self._runs: dict[str, TuningRun] = {}

    def start(self, name: str) -> None:
        """Run a tuning job in the background."""
        run = TuningRun(self._machinery, self._runner, self.designer, name, self._forget)
        with self._lock:
            self._runs[name] = run
        run.start()

    def cancel(self, name: str) -> None:
        """Ask a tuning job to end; its state follows."""
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run.cancel()

    def delete(self, name: str) -> None:
        """Forget a tuning job that has ended, with its trials' custom jobs and their files."""
        store = self._machinery.store
        for job in store.list_under(CUSTOM_JOBS, name):
            store.delete(CUSTOM_JOBS, job.name)
            self._runner.delete_files(job.name)
        store.delete(TUNING_JOBS, name)

    def resume(self) -> None:
        """After a restart: go on with every job that had not ended. The runner has settled its custom jobs before."""
        for job in self._machinery.store.list_in_state(TUNING_JOBS, *ACTIVE_STATES):
            if job.state == JobState.JOB_STATE_CANCELLING:
                finish_job(self._machinery.store, TUNING_JOBS, job.name, cancelled())
            else:
                self.start(job.name)

    def close(self) -> None:
        """Leave all jobs where they are; the next start goes on."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()
        self.designer.close()
        for run in runs:
            run.join(_JOIN_S)

    def _forget(self, name: str) -> None:
        with self._lock:
            self._runs.pop(name, None)
