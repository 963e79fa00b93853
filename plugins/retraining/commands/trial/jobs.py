"""Jobs of Vertex AI: three of the trainer's image, on the cheapest machine that it fits. The first leaves a model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from retraining.commands.trial.probes import LABEL, MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.jobs.failures import Failure
from retraining.core.jobs.job import CANCELLED, SUCCEEDED, Job
from retraining.core.jobs.outcomes import failure_of
from retraining.core.settings import data_path
from retraining.core.untyped import ProtoJson
from retraining.hooks.logs import Cursor, Line

MACHINE = "e2-standard-4"
DISK_GB = 100
TIMEOUT = timedelta(minutes=20)
"""Of a job: the most that it is paid for."""
QUEUED = timedelta(minutes=10)
"""That a job may wait for its machine on top."""
LISTED_WITHIN = timedelta(minutes=2)
LOGGED_WITHIN = timedelta(minutes=5)
SHORT = timedelta(seconds=30)
"""The timeout of a job that ends by itself `ENDED_WITHIN` later: the most that it is paid for, if nothing ends it."""
ENDED_WITHIN = timedelta(minutes=2)
LINE = "a line of the trial's job"
NUMBERED = "line of the trial's job, number"
LEAST_LINES = 20
QUIET_S = 45
"""Without a new line: longer than the hook goes back for those that come late."""


@dataclass(kw_only=True)
class JobProbes:
    """Rows JOB-…, RUN-7 and LOGS-….

    Attributes:
        trial: The trial.
        made: The jobs, the first one and the second of its name.
        watched: Lines of the last job, as they came while it worked.
        cursor: How far they are read.
        last_id: That job's.
    """

    trial: Trial
    made: list[Job] = field(default_factory=list)
    watched: list[Line] = field(default_factory=list)
    cursor: Cursor = field(default_factory=Cursor)
    last_id: str = ""

    def probes(self) -> Sequence[Probe]:
        """Return them; the first two make the jobs, the last ones wait for their ends."""
        return (*self._created(), *self._listed(), *self._ended())

    def _created(self) -> Sequence[Probe]:
        return (
            Probe(
                id="JOB-12",
                asked="a job is created",
                supposed={"answered in the time that is waited for it": True},
                ask=self.create,
            ),
            Probe(
                id="JOB-4",
                asked="the same job is created again",
                supposed={"it is another one": True},
                ask=self.create_again,
            ),
        )

    def _listed(self) -> Sequence[Probe]:
        return (
            Probe(
                id="JOB-3",
                asked="both are listed by their label, soon",
                supposed={"jobs": 2},
                ask=self.find,
            ),
            Probe(
                id="JOB-1",
                asked="jobs by several labels, and by one that none has",
                supposed={"of these labels": 2, "of another value": 0},
                ask=self.find_by_labels,
            ),
            Probe(
                id="JOB-2",
                asked="jobs that carry a label and have not ended",
                supposed={"jobs": 2},
                ask=self.find_active,
            ),
            Probe(
                id="JOB-5",
                asked="a job's labels, when it is read",
                supposed={"label": "as given", "task": "trial"},
                ask=self.read_labels,
            ),
            Probe(
                id="JOB-14",
                asked="a job's machines, when it is listed",
                supposed={"machines": f"1 {MACHINE}"},
                ask=self.read_machines,
            ),
        )

    def _ended(self) -> Sequence[Probe]:
        return (
            Probe(
                id="JOB-10",
                asked="a job is cancelled, again, and after its end",
                supposed={"state": CANCELLED, "state after the third time": CANCELLED},
                ask=self.cancel,
            ),
            Probe(
                id="RUN-7",
                asked="a job writes a model by the client of Cloud Storage",
                supposed={"state": SUCCEEDED, "the model is there": True},
                ask=self.finish,
            ),
            Probe(
                id="LOGS-1",
                asked="the lines of a job",
                supposed={"its line is there, once": 1, "replica": "workerpool0-0"},
                ask=self.read_lines,
            ),
            Probe(
                id="JOB-9",
                asked=f"a job that works on after its timeout of {SHORT.total_seconds():.0f} seconds",
                supposed={"it ended": Failure.EXPIRED.value, "it had its seconds": True, "and no minutes more": True},
                ask=self.outlast_a_timeout,
            ),
            Probe(
                id="LOGS-2",
                asked="its lines as they came while it worked, beside all of them",
                supposed={"enough of them": True, "missing": 0, "twice": 0},
                ask=self.read_lines_again,
            ),
        )

    def create(self) -> Mapping[str, Fact]:
        """Create the job that stores the model."""
        began = time.monotonic()
        self.made.append(self.trial.cloud.jobs.create(model_job(self.trial)))
        self.trial.measured["create"] = round(time.monotonic() - began, 1)
        return {"answered in the time that is waited for it": True}

    def create_again(self) -> Mapping[str, Fact]:
        """Create it once more."""
        self.made.append(self.trial.cloud.jobs.create(model_job(self.trial)))
        return {"it is another one": self.made[-1].name != self.made[0].name}

    def find(self) -> Mapping[str, Fact]:
        """Look until both are listed."""

        def both() -> list[Job] | None:
            listed = self.trial.cloud.jobs.find_jobs({LABEL: self.trial.number})
            return listed if {job.name for job in listed} >= {job.name for job in self.made} else None

        return {"jobs": len(self.trial.wait("list", both, LISTED_WITHIN))}

    def find_by_labels(self) -> Mapping[str, Fact]:
        """Look for two labels at once, and for another value."""
        jobs = self.trial.cloud.jobs
        labels = {LABEL: self.trial.number, "retraining-task": "trial"}
        return {
            "of these labels": len(jobs.find_jobs(labels)),
            "of another value": len(jobs.find_jobs({**labels, LABEL: f"{self.trial.number}0"})),
        }

    def find_active(self) -> Mapping[str, Fact]:
        """Look for whatever has not ended."""
        found = self.trial.cloud.jobs.find_active(LABEL)
        return {"jobs": sum(job.labels.get(LABEL) == self.trial.number for job in found)}

    def read_labels(self) -> Mapping[str, Fact]:
        """Read the first job."""
        labels = self.trial.cloud.jobs.get(self.made[0].name).labels
        label = labels.get(LABEL)
        return {
            "label": "as given" if label == self.trial.number else label,
            "task": labels.get("retraining-task"),
        }

    def read_machines(self) -> Mapping[str, Fact]:
        """Read the first job's machines from the list."""
        listed = self.trial.cloud.jobs.find_jobs({LABEL: self.trial.number})
        groups = [group for job in listed if job.name == self.made[0].name for group in job.machines]
        return {"machines": ", ".join(f"{group.count} {group.machine}" for group in groups)}

    def cancel(self) -> Mapping[str, Fact]:
        """Cancel the second job three times, the last time after its end."""
        jobs, name = self.trial.cloud.jobs, self.made[1].name
        jobs.cancel(name)
        jobs.cancel(name)
        ended = wait_for_job(self.trial, name, TIMEOUT)
        jobs.cancel(name)
        return {"state": ended.state, "state after the third time": jobs.get(name).state}

    def finish(self) -> Mapping[str, Fact]:
        """Wait for the first job's end, and for its model."""
        ended = wait_for_job(self.trial, self.made[0].name, TIMEOUT)
        if ended.seconds is not None:
            self.trial.measured["worked"] = round(ended.seconds, 1)
        return {
            "state": ended.state,
            "the model is there": self.trial.cloud.artifacts.exists(f"{self.trial.model_uri}/1/saved_model.pb"),
        }

    def read_lines(self) -> Mapping[str, Fact]:
        """Read the first job's log until its line is there."""
        cursor, found = Cursor(), []

        def read() -> bool:
            found.extend(self.trial.cloud.logs.read_new(self.made[0].job_id, cursor))
            return any(LINE in line.text for line in found)

        self.trial.wait("line", read, LOGGED_WITHIN)
        own = [line for line in found if LINE in line.text]
        return {"its line is there, once": len(own), "replica": own[0].task}

    def outlast_a_timeout(self) -> Mapping[str, Fact]:
        """Create a job that writes lines, and read them until it was ended."""
        arguments = [str((SHORT + ENDED_WITHIN).total_seconds()), NUMBERED]
        pool = machine_that_runs(self.trial, "trial_lines.py.j2", arguments)
        job = self.trial.cloud.jobs.create(job_request(self.trial, "trial-timeout", [pool], SHORT))
        self.last_id = job.job_id

        def look() -> Job | None:
            self._watch()
            now = self.trial.cloud.jobs.get(job.name)
            return None if now.active else now

        ended = self.trial.wait("end", look, TIMEOUT + QUEUED)
        worked = timedelta(seconds=ended.seconds or 0)
        self.trial.measured["worked"] = worked.total_seconds()
        return {
            "it ended": "by itself" if ended.state == SUCCEEDED else failure_of(ended).value,
            "it had its seconds": worked >= 0.9 * SHORT,  # start and end are the service's own, and rounded
            "and no minutes more": worked < SHORT + ENDED_WITHIN,
        }

    def read_lines_again(self) -> Mapping[str, Fact]:
        """Go on until no line has come for a while, then read all from the first one on."""
        last = time.monotonic()

        def quiet() -> bool:
            nonlocal last
            if self._watch():
                last = time.monotonic()
            return time.monotonic() - last >= QUIET_S

        self.trial.wait("no more lines", quiet, LOGGED_WITHIN)
        came = [line.text for line in self.watched if NUMBERED in line.text]
        whole = {line.text for line in self.trial.cloud.logs.read_new(self.last_id, Cursor()) if NUMBERED in line.text}
        return {
            "enough of them": len(whole) >= LEAST_LINES,
            "missing": len(whole - set(came)),
            "twice": len(came) - len(set(came)),
        }

    def _watch(self) -> bool:
        """Read what is new of the last job's lines; return whether there was anything."""
        found = self.trial.cloud.logs.read_new(self.last_id, self.cursor)
        self.watched.extend(found)
        return bool(found)


def model_job(trial: Trial) -> ProtoJson:
    """Return the job that stores a model that answers 2 x + 1."""
    pool = machine_that_runs(trial, "trial_job.py.j2", [f"{trial.model_uri}/1", LINE])
    return job_request(trial, "trial", [pool], TIMEOUT)


def wait_for_job(trial: Trial, name: str, timeout: timedelta) -> Job:
    """Return a job once it has ended; it may wait for its machine on top of its timeout."""

    def look() -> Job | None:
        job = trial.cloud.jobs.get(name)
        return None if job.active else job

    return trial.wait("end", look, timeout + QUEUED)


def machine_that_runs(trial: Trial, template: str, arguments: Sequence[str] = ()) -> ProtoJson:
    """Return one machine of the trainer's image, as a worker pool.

    Args:
        trial: Whose it is.
        template: Of the Python program that it runs.
        arguments: Of that.
    """
    program = data_path(f"templates/{template}").read_text(encoding="utf-8")
    return {
        "machine_spec": {"machine_type": MACHINE},
        "replica_count": 1,
        "disk_spec": {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": DISK_GB},
        "container_spec": {
            "image_uri": trial.cloud.settings.trainer_image,
            "command": ["python", "-c", program],
            "args": list(arguments),
        },
    }


def job_request(trial: Trial, task: str, pools: list[ProtoJson], timeout: timedelta) -> ProtoJson:
    """Return a job of a trial, as `aiplatform_v1.CustomJob` in proto-JSON.

    Args:
        trial: Whose it is, by its label.
        task: What it is for, as another label.
        pools: Its machines.
        timeout: The most that it is paid for.
    """
    job_spec: ProtoJson = {
        "worker_pool_specs": pools,
        "scheduling": {"timeout": f"{timeout.total_seconds():.0f}s"},
        "base_output_directory": {"output_uri_prefix": trial.model_uri},
    }
    if trial.cloud.settings.service_account:
        job_spec["service_account"] = trial.cloud.settings.service_account
    labels = {LABEL: trial.number, "retraining-task": task}
    return {"display_name": f"{MODEL}__{trial.number}", "job_spec": job_spec, "labels": labels}
