"""The run of a job that has a log: what the service itself says of it there, up to its end."""

from __future__ import annotations

from localcloud.vertex.processes.logs import job_log
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.resources.jobs import Outcome, Run, TrialRole
from localcloud.vertex.resources.store import Kind
from localcloud.vertex.wire import names

_SERVICE = "service"  # task name of what the service itself says, as on Vertex AI


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
