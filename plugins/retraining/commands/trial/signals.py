"""How machines are taken from a job: what it is told when it is cancelled, and a replica that is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from retraining.commands.trial.jobs import QUEUED, job_request, machine_that_runs, wait_for_job
from retraining.commands.trial.probes import Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.documents.document import read_object
from retraining.core.jobs.job import SUCCEEDED, Job
from retraining.core.untyped import ProtoJson
from retraining.hooks.logs import Cursor, Line

TIMEOUT = timedelta(minutes=8)
MACHINES = 3
"""One that is cancelled, two of a cluster."""
LOGGED_WITHIN = timedelta(minutes=5)
READY, TOLD, START = "trial-ready", "trial-told ", "trial-start "
"""Lines of the programs."""
ROLES = {"chief": "chief", "master": "chief", "workerpool0": "chief", "worker": "worker", "workerpool1": "worker"}
"""What the trainer takes for the same (`trainer/cluster/replica.py`)."""


@dataclass(frozen=True, kw_only=True)
class SignalProbes:
    """Rows RUN-2 and RUN-3.

    Attributes:
        trial: The trial.
    """

    trial: Trial

    def probes(self) -> Sequence[Probe]:
        """Return them; each runs a job."""
        return (
            Probe(
                id="RUN-2",
                asked="a job that says what it is told is cancelled",
                supposed={"it is told by SIGTERM": True, "and lives on for a second": True},
                ask=self.cancel,
            ),
            Probe(
                id="RUN-3",
                asked="a worker is killed, while its chief waits for it",
                supposed={"the job": SUCCEEDED, "starts": "1 of the chief, 2 of the worker", "hosts of the worker": 1},
                ask=self.kill,
            ),
        )

    def cancel(self) -> Mapping[str, Fact]:
        """Cancel a job once it works, and read what it said after that."""
        seconds = f"{TIMEOUT.total_seconds():.0f}"
        job = self._create("signals", [machine_that_runs(self.trial, "trial_signals.py.j2", [seconds])])
        lines: list[Line] = []
        if not self._is_read("ready", job, lines, READY):
            raise LookupError("the job has not said that it works")
        self.trial.cloud.jobs.cancel(job.name)
        wait_for_job(self.trial, job.name, TIMEOUT)
        told = self._is_read("told", job, lines, TOLD)
        lived = max((float(line.text.removeprefix(TOLD)) for line in lines if line.text.startswith(TOLD)), default=0.0)
        self.trial.measured["seconds after the signal"] = lived
        return {"it is told by SIGTERM": told, "and lives on for a second": lived >= 1}

    def kill(self) -> Mapping[str, Fact]:
        """Run the cluster to its end, and read who started how often, and where."""
        pool = machine_that_runs(self.trial, "trial_restart.py.j2", [f"{self.trial.model_uri}/restart"])
        job = self._create("restart", [pool, pool])
        ended = wait_for_job(self.trial, job.name, TIMEOUT)
        lines: list[Line] = []
        self._is_read("started again", job, lines, START, times=3)
        started = [read_object(line.text.removeprefix(START), "a line of the cluster") for line in lines]
        counts = Counter(ROLES.get(str(each["role"]), str(each["role"])) for each in started)
        hosts = {str(each["host"]) for each in started if ROLES.get(str(each["role"])) != "chief"}
        return {
            "the job": ended.state,
            "starts": ", ".join(f"{count} of the {role}" for role, count in sorted(counts.items())),
            "hosts of the worker": len(hosts),
        }

    def _create(self, task: str, pools: list[ProtoJson]) -> Job:
        return self.trial.cloud.jobs.create(job_request(self.trial, task, pools, TIMEOUT))

    def _is_read(self, what: str, job: Job, lines: list[Line], begins: str, times: int = 1) -> bool:
        """Read a job's log until so many lines begin with a word, if ever; add those to `lines`."""
        cursor = Cursor()

        def read() -> bool:
            found = self.trial.cloud.logs.read_new(job.job_id, cursor)
            lines.extend(line for line in found if line.text.startswith(begins))
            return sum(line.text.startswith(begins) for line in lines) >= times

        return self.trial.comes(what, read, QUEUED + LOGGED_WITHIN)
