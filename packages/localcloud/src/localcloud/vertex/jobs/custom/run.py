"""One custom job from queue to end: every replica a process or a container, the chief's end is the job's end.

Comes in: the name of a job in the store. Goes out: its states, times and error in the store, its lines in the log.

As on Vertex AI (https://cloud.google.com/vertex-ai/docs/training/understanding-training-service): the job succeeds when
the chief exits with 0; a replica that exits with an error of the program's own ends the job as FAILED; one that was
killed from outside (130, 137, 143, or preempted) is started again, at most five times, or the whole job with
`restart_job_on_worker_restart`, or not at all with `disable_retries`. A job past its timeout is CANCELLED.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from pathlib import Path

from google.cloud.aiplatform_v1.types import JobState

from localcloud.vertex.jobs.custom.cluster import ReplicaId, choose_addresses, cluster_variables, list_replicas
from localcloud.vertex.jobs.runs import LoggedRun, Outcome, TrialRole, cancelled, failed
from localcloud.vertex.processes.commands import replica_command
from localcloud.vertex.processes.containers import METRIC_VARIABLE
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.processes.replicas import Replica, stop_replicas
from localcloud.vertex.resources.held_machines import held_machines
from localcloud.vertex.resources.store import CUSTOM_JOBS
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError

DEFAULT_TIMEOUT_S = 7 * 24 * 3600.0
MAX_RESTARTS = 5
PROCESS_GROUPS = "process groups"  # collection of the store
METRIC_FOLDER, METRIC_FILE = "hypertune", "output.metrics"
_TRANSIENT_CODES = (130, 137, 143)
_TICK_S = 0.1


class JobRun(LoggedRun):
    """One custom job from queue to end.

    Args:
        trial: What the job is to a tuning job; None when it stands alone.
    """

    def __init__(self, machinery: Machinery, name: str, trial: TrialRole | None = None) -> None:
        super().__init__(machinery, CUSTOM_JOBS, name, f"Trial {trial.trial_id}" if trial else "Job", trial)
        self._exits: queue.Queue[tuple[Replica, int] | None] = queue.Queue()
        self._replicas: dict[str, Replica] = {}
        self._restarts: dict[str, int] = {}
        self._documents: list[int] = []

    def cancel(self) -> None:
        """Ask the job to end as CANCELLED."""
        super().cancel()
        self._exits.put(None)

    def _release(self) -> None:
        stop_replicas(self._replicas.values(), self._machinery.grace_s)
        self._settle()

    def _settle(self) -> None:
        """Wait until every replica's last lines are in the log, then forget its process group."""
        end = time.monotonic() + 5.0
        while time.monotonic() < end and not all(replica.settled for replica in self._replicas.values()):
            time.sleep(0.005)
        if self._documents:
            self._machinery.store.delete_documents(PROCESS_GROUPS, *self._documents)

    def _execute(self) -> Outcome:
        with held_machines(self._machinery.store, self._job, self._progress.sleep) as warm:
            self._advance(JobState.JOB_STATE_PENDING)
            start = "Job.StartOnPersistentResource" if warm else "Job.Start"
            self._machinery.faults.apply(start, self._progress.wait, self._job)
            try:
                return self._run_replicas()
            finally:
                stop_replicas(self._replicas.values(), self._machinery.grace_s)

    def _run_replicas(self) -> Outcome:
        self._say(f"{self._title} is preparing: {len(list_replicas(self._job))} replica(s).")
        addresses = choose_addresses(list_replicas(self._job))
        if self._progress.is_cancelled:
            return cancelled()
        self._start_all(addresses)
        self._advance(JobState.JOB_STATE_RUNNING)
        return self._supervise(addresses)

    def _start_all(self, addresses: dict[ReplicaId, str]) -> None:
        for replica in addresses:
            self._start_one(replica, addresses)

    def _start_one(self, replica: ReplicaId, addresses: dict[ReplicaId, str]) -> None:
        machinery = self._machinery
        folder = job_folder(machinery.folder, self.name)
        command = replica_command(
            spec=self._job.job_spec.worker_pool_specs[replica.pool],
            variables={
                **machinery.environment(self._job.job_spec.service_account),
                **self._variables(replica, addresses),
            },
            folder=folder,
            images=machinery.images,
            buckets=machinery.buckets,
        )
        started = Replica(
            name=str(replica),
            command=command.arguments,
            env=command.env,
            folder=folder / str(replica),
            log=self._log,
            guardian=machinery.guardian,
            on_exit=lambda ended, code: self._exits.put((ended, code)),
            end=command.end,
        )
        self._replicas[str(replica)] = started
        self._documents.append(
            machinery.store.put_document(
                PROCESS_GROUPS,
                str(started.group),
                {"job": self.name, "replica": str(replica), "end": command.end},
            )
        )

    def _variables(self, replica: ReplicaId, addresses: dict[ReplicaId, str]) -> dict[str, str]:
        """Return what Vertex AI tells a replica; to one of a trial also hypertune's file."""
        variables = cluster_variables(self._job, replica, addresses, self._trial)
        if self._trial:
            path = metric_path(job_folder(self._machinery.folder, self.name), str(replica))
            path.parent.mkdir(parents=True, exist_ok=True)
            variables[METRIC_VARIABLE] = str(path)
        return variables

    def _supervise(self, addresses: dict[ReplicaId, str]) -> Outcome:
        timeout = self._job.job_spec.scheduling.timeout
        limit_s = timeout.total_seconds() if timeout else DEFAULT_TIMEOUT_S
        end = time.monotonic() + (limit_s or DEFAULT_TIMEOUT_S)
        while True:
            with contextlib.suppress(queue.Empty):
                event = self._exits.get(timeout=min(_TICK_S, max(0.0, end - time.monotonic())))
                if event is not None:
                    outcome = self._on_exit(*event, addresses)
                    if outcome is not None:
                        return outcome
            if self._progress.is_cancelled:
                return cancelled()
            if time.monotonic() >= end:
                error = ApiError(
                    f"The job ran longer than its timeout of {limit_s:g} s (job_spec.scheduling.timeout)"
                    f" and was cancelled.",
                    code="CANCELLED",
                )
                return Outcome(state=JobState.JOB_STATE_CANCELLED, error=error)
            self._apply_replica_fault()

    def _on_exit(self, replica: Replica, code: int, addresses: dict[ReplicaId, str]) -> Outcome | None:
        if self._replicas.get(replica.name) is not replica or self._progress.is_cancelled:
            return None  # of an attempt that is over
        status = code if code >= 0 else 128 - code
        if status == 0 and not replica.preempted:
            return Outcome(state=JobState.JOB_STATE_SUCCEEDED) if replica.name == "workerpool0-0" else None
        error = _exit_error(replica, code, self._project, self._log_id)
        transient = replica.preempted or status in _TRANSIENT_CODES
        used = self._restarts[replica.name] = self._restarts.get(replica.name, 0) + 1
        scheduling = self._job.job_spec.scheduling
        if not transient or scheduling.disable_retries or used > MAX_RESTARTS:
            return failed(error)
        self._say(f"{error.message} It is started again ({used} of {MAX_RESTARTS}).", "WARNING")
        if scheduling.restart_job_on_worker_restart:
            stop_replicas(self._replicas.values(), self._machinery.grace_s)
            self._start_all(addresses)
        else:
            self._start_one(_replica_id(replica.name), addresses)
        return None

    def _apply_replica_fault(self) -> None:
        fault = self._machinery.faults.take("Replica.Run", self._job, kinds=("preempt",))
        if fault is None:
            return
        replica = self._replicas.get(fault["replica"])
        if replica is not None:
            threading.Thread(
                target=_preempt, args=(replica, fault["seconds"], fault["grace_seconds"]), daemon=True
            ).start()


def job_folder(folder: Path, name: str) -> Path:
    """Return where a job's files are: working directories, output per replica, packages."""
    return folder / names.last_part(name)


def metric_path(folder: Path, replica: str) -> Path:
    """Return the file in a job's folder that a replica of a trial reports its metrics into."""
    return folder / METRIC_FOLDER / replica / METRIC_FILE


def _exit_error(replica: Replica, code: int, project: str, log_id: str) -> ApiError:
    if replica.preempted:
        return ApiError(f"The replica {replica.name} was preempted.", code="UNAVAILABLE")
    resource = f"ml_job%2Fjob_id%2F{log_id}"
    where = f"https://console.cloud.google.com/logs/viewer?project={project}&resource={resource}"
    status = str(code) if code >= 0 else f"{128 - code}({signal.Signals(-code).name})"
    return ApiError(
        f"The replica {replica.name} exited with a non-zero status of {status}. Termination reason: Error."
        f" To find out more about why your job exited please check the logs: {where}",
        code="INVALID_ARGUMENT",
    )


def _preempt(replica: Replica, after_s: float, grace_s: float) -> None:
    time.sleep(after_s)
    if replica.running:
        replica.preempted = True
        stop_replicas([replica], grace_s)


def _replica_id(name: str) -> ReplicaId:
    pool, index = name.removeprefix("workerpool").split("-")
    return ReplicaId(pool=int(pool), index=int(index))
