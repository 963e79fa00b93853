"""One custom job from queue to end: every replica a process or a container, the chief's end is the job's end.

Comes in: the name of a job in the store. Goes out: its states, times and error in the store, its lines in the log.

As on Vertex AI (https://cloud.google.com/vertex-ai/docs/training/understanding-training-service): the job succeeds when
the chief exits with 0; a replica that exits with an error of the program's own ends the job as FAILED; one that was
killed from outside (130, 137, 143, or preempted) is started again, at most five times, or the whole job with
`restart_job_on_worker_restart`, or not at all with `disable_retries`. A job past its timeout is CANCELLED.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from google.cloud.aiplatform_v1.types import CustomJob, JobState

from localcloud.vertex.jobs.cluster import ReplicaId, choose_addresses, cluster_variables, list_replicas
from localcloud.vertex.processes.commands import replica_command
from localcloud.vertex.processes.containers import METRIC_VARIABLE
from localcloud.vertex.processes.logs import job_log
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.processes.replicas import Replica, stop_replicas
from localcloud.vertex.resources.jobs import Outcome, TrialRole, cancelled, finish_job
from localcloud.vertex.resources.store import CUSTOM_JOBS, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, NotFound

LOGGER = logging.getLogger(__name__)
DEFAULT_TIMEOUT_S = 7 * 24 * 3600.0
MAX_RESTARTS = 5
PROCESS_GROUPS = "process groups"  # shelf of the store
METRIC_FOLDER, METRIC_FILE = "hypertune", "output.metrics"
_SERVICE = "service"  # task name of what the service itself says, as on Vertex AI
_TRANSIENT_CODES = (130, 137, 143)
_TICK_S = 0.1


class JobRun:
    """One job from queue to end, in a thread of its own."""

    def __init__(
        self, machinery: Machinery, name: str, on_end: Callable[[str], None], trial: TrialRole | None = None
    ) -> None:
        self._machinery = machinery
        self._trial = trial
        self._name = name
        self._on_end = on_end
        self._job: CustomJob = machinery.store.get(CUSTOM_JOBS, name)
        self._project = names.parse_location(str(names.location_of(name))).project
        self._log_id = trial.tuning_job_id if trial else names.last_part(name)
        self._log = job_log(machinery.shipper, self._project, self._log_id, trial.trial_id if trial else None)
        self._title = f"Trial {trial.trial_id}" if trial else "Job"
        self._exits: queue.Queue[tuple[Replica, int] | None] = queue.Queue()
        self._replicas: dict[str, Replica] = {}
        self._restarts: dict[str, int] = {}
        self._documents: list[int] = []
        self._stop = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(target=self._run_job, name=f"job-{names.last_part(name)}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """End as CANCELLED."""
        self._stop.set()
        self._exits.put(None)

    def abandon(self) -> None:
        """End the processes because the server ends."""
        self._abandoned = True
        self.cancel()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def _run_job(self) -> None:
        try:
            outcome = self._execute()
        except ApiError as refusal:
            outcome = Outcome(state=JobState.JOB_STATE_FAILED, error=refusal)
        except Exception as problem:  # the thread's last line: a job without an end would be waited for for ever
            LOGGER.exception("%s failed", self._name)
            error = ApiError(f"Internal error: {type(problem).__name__}: {problem}.", code="INTERNAL")
            outcome = Outcome(state=JobState.JOB_STATE_FAILED, error=error)
        stop_replicas(self._replicas.values(), self._machinery.grace_s)
        self._settle()
        if not self._abandoned:
            if outcome.error is not None and not (self._trial and self._stop.is_set()):
                self._log.say(_SERVICE, outcome.error.message, "ERROR")
            self._log.say(_SERVICE, f"{self._title} ended: {outcome.state.name}.")
            self._machinery.shipper.flush()
            finish_job(self._machinery.store, CUSTOM_JOBS, self._name, outcome)
        self._on_end(self._name)

    def _settle(self) -> None:
        """Wait until every replica's last lines are in the log, then forget its process group."""
        end = time.monotonic() + 5.0
        while time.monotonic() < end and not all(replica.settled for replica in self._replicas.values()):
            time.sleep(0.005)
        if self._documents:
            self._machinery.store.delete_documents(PROCESS_GROUPS, *self._documents)

    def _execute(self) -> Outcome:
        self._set_state(JobState.JOB_STATE_PENDING)
        self._apply_start_fault()
        self._log.say(_SERVICE, f"{self._title} is preparing: {len(list_replicas(self._job))} replica(s).")
        addresses = choose_addresses(list_replicas(self._job))
        if self._stop.is_set():
            return cancelled()
        self._start_all(addresses)
        self._set_state(JobState.JOB_STATE_RUNNING)
        return self._supervise(addresses)

    def _apply_start_fault(self) -> None:
        fault = self._machinery.faults.take("Job.Start", self._job, kinds=("error", "delay"))
        if fault and fault["kind"] == "error":
            raise ApiError(fault["message"], code=fault["code"])
        if fault:
            self._stop.wait(fault["seconds"])

    def _start_all(self, addresses: dict[ReplicaId, str]) -> None:
        for replica in addresses:
            self._start_one(replica, addresses)

    def _start_one(self, replica: ReplicaId, addresses: dict[ReplicaId, str]) -> None:
        machinery = self._machinery
        folder = job_folder(machinery.folder, self._name)
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
                {"job": self._name, "replica": str(replica), "end": command.end},
            )
        )

    def _variables(self, replica: ReplicaId, addresses: dict[ReplicaId, str]) -> dict[str, str]:
        """Return what Vertex AI tells a replica; to one of a trial also hypertune's file."""
        variables = cluster_variables(self._job, replica, addresses, self._trial)
        if self._trial:
            path = metric_path(job_folder(self._machinery.folder, self._name), str(replica))
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
            if self._stop.is_set():
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
        if self._replicas.get(replica.name) is not replica or self._stop.is_set():
            return None  # of an attempt that is over
        status = code if code >= 0 else 128 - code
        if status == 0 and not replica.preempted:
            return Outcome(state=JobState.JOB_STATE_SUCCEEDED) if replica.name == "workerpool0-0" else None
        error = _exit_error(replica, code, self._project, self._log_id)
        transient = replica.preempted or status in _TRANSIENT_CODES
        used = self._restarts[replica.name] = self._restarts.get(replica.name, 0) + 1
        scheduling = self._job.job_spec.scheduling
        if not transient or scheduling.disable_retries or used > MAX_RESTARTS:
            return Outcome(state=JobState.JOB_STATE_FAILED, error=error)
        self._log.say(_SERVICE, f"{error.message} It is started again ({used} of {MAX_RESTARTS}).", "WARNING")
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

    def _set_state(self, state: JobState) -> None:
        with contextlib.suppress(NotFound), self._machinery.store.change(CUSTOM_JOBS, self._name) as job:
            if job.state == JobState.JOB_STATE_CANCELLING:
                return
            moment = now()
            job.state, job.update_time = state, moment
            if state == JobState.JOB_STATE_RUNNING:
                job.start_time = moment


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
