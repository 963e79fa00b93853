"""The custom jobs that run now.

Comes in: names of queued jobs. Goes out: a `JobRun` for each, until it ends.

Jobs do not outlive this server: a clean stop ends them, the guardian ends them after a crash, and the next start marks
what was running as FAILED with INTERNAL, an error that callers may retry.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from google.cloud.aiplatform_v1.types import JobState

from localcloud.vertex.jobs.run import METRIC_FILE, METRIC_FOLDER, PROCESS_GROUPS, JobRun, job_folder
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.jobs import ACTIVE_STATES, Outcome, TrialRole, cancelled, finish_job
from localcloud.vertex.resources.store import CUSTOM_JOBS
from localcloud.vertex.wire.errors import ApiError


class Runner:
    """The jobs that run now."""

    def __init__(self, machinery: Machinery) -> None:
        self._machinery = machinery
        self._lock = threading.Lock()
        self._runs: dict[str, JobRun] = {}

    def start(self, name: str, trial: TrialRole | None = None) -> None:
        """Run a queued job in the background.

        Args:
            trial: What it is to a tuning job; None when it stands alone.
        """
        run = JobRun(self._machinery, name, self._forget, trial)
        with self._lock:
            self._runs[name] = run
        run.start()

    def cancel(self, name: str) -> None:
        """Ask a job to end; its state follows."""
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run.cancel()

    def find_metric_files(self, name: str) -> list[Path]:
        """Return the files that the replicas of a trial have reported metrics into so far."""
        return sorted(job_folder(self._machinery.folder, name).glob(f"{METRIC_FOLDER}/*/{METRIC_FILE}"))

    def delete_files(self, name: str) -> None:
        """Drop what a finished job left in the state directory."""
        shutil.rmtree(job_folder(self._machinery.folder, name), ignore_errors=True)

    def resume(self) -> None:
        """After a restart: end what is left of its processes, and mark what was running."""
        for _, group, replica in self._machinery.store.list_documents(PROCESS_GROUPS):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if _is_ours(int(group), self._machinery.folder):
                    os.killpg(int(group), signal.SIGKILL)
            if replica.get("end"):
                subprocess.run(replica["end"], capture_output=True, check=False)
        self._machinery.store.delete_documents(PROCESS_GROUPS)
        lost = ApiError(
            "Internal error: the local cloud was stopped while the job ran, and its processes with it."
            " Create the job again.",
            code="INTERNAL",
        )
        for job in self._machinery.store.list_in_state(CUSTOM_JOBS, *ACTIVE_STATES):
            cancelling = job.state == JobState.JOB_STATE_CANCELLING
            outcome = cancelled() if cancelling else Outcome(state=JobState.JOB_STATE_FAILED, error=lost)
            finish_job(self._machinery.store, CUSTOM_JOBS, job.name, outcome)

    def close(self) -> None:
        """End all jobs and wait for them; the next start marks them."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.abandon()
        for run in runs:
            run.join(self._machinery.grace_s + 2.0)

    def _forget(self, name: str) -> None:
        with self._lock:
            self._runs.pop(name, None)


def _is_ours(group: int, folder: Path) -> bool:
    """Tell whether a group number still means the job it once was: its leader works in the jobs' folder."""
    try:
        return Path(f"/proc/{group}/cwd").resolve().is_relative_to(folder.resolve())
    except OSError:
        return False
