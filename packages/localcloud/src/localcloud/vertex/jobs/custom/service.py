"""JobService, custom jobs: checked as the service does, run as processes and containers.

Custom jobs do not outlive this server: a clean stop ends them, the guardian ends them after a crash, and the next start
marks what was running.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from localcloud.vertex.jobs.custom.checks import check_job
from localcloud.vertex.jobs.custom.run import METRIC_FILE, METRIC_FOLDER, PROCESS_GROUPS, JobRun, job_folder
from localcloud.vertex.jobs.family import JobFamily
from localcloud.vertex.jobs.runs import ACTIVE_STATES, TrialRole
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.held_machines import check_place, free_all
from localcloud.vertex.resources.operations import Operations
from localcloud.vertex.resources.store import CUSTOM_JOBS
from localcloud.vertex.resources.validation import refuse


class CustomJobs(JobFamily):
    """The custom jobs, those of trials too."""

    kind = CUSTOM_JOBS
    first_state = JobState.JOB_STATE_QUEUED
    lost = "the local cloud was stopped while the job ran, and its processes with it. Create the job again."

    def __init__(self, machinery: Machinery, operations: Operations) -> None:
        super().__init__(machinery.store, operations)
        self._machinery = machinery
        self.patience_s = machinery.grace_s + 2.0

    def _check(self, job: CustomJob) -> None:
        refuse([*check_job(job, self._machinery.buckets), *check_place(job, self._store, "custom_job.job_spec")])

    def _make_run(self, name: str) -> JobRun:
        return JobRun(self._machinery, name)

    def start_trial(self, name: str, trial: TrialRole) -> None:
        """Run the job of a trial in the background."""
        self._begin(JobRun(self._machinery, name, trial))

    def active_jobs(self) -> list[CustomJob]:
        """Return those that have not ended, newest first."""
        return self._store.list_in_state(self.kind, *ACTIVE_STATES)

    def end(self, name: str) -> None:
        """Ask a job to end, by its name."""
        self.cancel(types.CancelCustomJobRequest(name=name))

    def find_metric_files(self, name: str) -> list[Path]:
        """Return the files that the replicas of a trial have reported metrics into so far."""
        return sorted(job_folder(self._machinery.folder, name).glob(f"{METRIC_FOLDER}/*/{METRIC_FILE}"))

    def forget(self, name: str) -> None:
        """Remove a job that has ended, and its files in the state directory."""
        super().forget(name)
        shutil.rmtree(job_folder(self._machinery.folder, name), ignore_errors=True)

    def resume(self) -> None:
        """End what is left of the jobs' processes, and mark what was running."""
        for _, group, replica in self._machinery.store.list_documents(PROCESS_GROUPS):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if _is_ours(int(group), self._machinery.folder):
                    os.killpg(int(group), signal.SIGKILL)
            if replica.get("end"):
                subprocess.run(replica["end"], capture_output=True, check=False)
        self._machinery.store.delete_documents(PROCESS_GROUPS)
        super().resume()
        free_all(self._store)


def _is_ours(group: int, folder: Path) -> bool:
    """Return whether a group number still means the job it once was: its leader works in the jobs' folder."""
    try:
        return Path(f"/proc/{group}/cwd").resolve().is_relative_to(folder.resolve())
    except OSError:
        return False
