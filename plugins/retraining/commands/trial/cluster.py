"""A job of two machines, a chief and a server: what each is told, whether they reach each other, who ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from retraining.commands.trial.jobs import job_request, machine_that_runs, wait_for_job
from retraining.commands.trial.probes import Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.documents.document import read_object
from retraining.core.jobs.job import SUCCEEDED
from retraining.core.untyped import JsonObject, ProtoJson
from retraining.hooks.logs import Cursor

TIMEOUT = timedelta(minutes=8)
LOGGED_WITHIN = timedelta(minutes=5)
PLACE, REACHED, OUTLIVED = "trial-place ", "trial-reached", "trial-outlived"
"""Lines of the program."""
ROLES = {"chief": "chief", "master": "chief", "workerpool0": "chief", "ps": "server", "workerpool2": "server"}
"""What the trainer takes for the same (`trainer/cluster/replica.py`)."""


@dataclass(kw_only=True)
class ClusterProbes:
    """Rows JOB-11, RUN-1, RUN-5 and RUN-4.

    Attributes:
        trial: The trial.
        lines: Of both replicas, by replica.
    """

    trial: Trial
    lines: dict[str, list[str]] = field(default_factory=dict)

    def probes(self) -> Sequence[Probe]:
        """Return them; the first one has the job run to its end."""
        return (
            Probe(
                id="JOB-11",
                asked="a job of a chief and a server, with no workers between",
                supposed={"state": SUCCEEDED, "replicas": "workerpool0-0, workerpool2-0"},
                ask=self.run,
            ),
            Probe(
                id="RUN-1",
                asked="what each replica is told of its place",
                supposed={"chief": "number 0 of 2 addresses", "server": "number 0 of 2 addresses"},
                ask=self.read_places,
            ),
            Probe(
                id="RUN-5",
                asked="one replica connects to the other, at its address",
                supposed={"reached": True},
                ask=self.read_reached,
            ),
            Probe(
                id="RUN-4",
                asked="a chief ends before its server",
                supposed={"the server was ended with it": True},
                ask=self.read_outlived,
            ),
        )

    def run(self) -> Mapping[str, Fact]:
        """Create the job, wait for its end, and for what both have said by then."""
        jobs, cursor = self.trial.cloud.jobs, Cursor()
        made = jobs.create(self._job())

        found = wait_for_job(self.trial, made.name, TIMEOUT)

        def said() -> bool:
            for line in self.trial.cloud.logs.read_new(made.job_id, cursor):
                self.lines.setdefault(line.task, []).append(line.text)
            return len(self._places()) > 1

        self.trial.wait("lines of the cluster", said, LOGGED_WITHIN)
        own = [task for task, lines in self.lines.items() if any(line.startswith(PLACE) for line in lines)]
        return {"state": found.state, "replicas": ", ".join(sorted(own))}

    def read_places(self) -> Mapping[str, Fact]:
        """Read what each has said of its place."""
        found: dict[str, Fact] = {}
        for place in self._places():
            role = str(place["role"])
            addresses = sum(place["addresses"].values())
            found[ROLES.get(role, role)] = f"number {place['index']} of {addresses} addresses"
        return found

    def read_reached(self) -> Mapping[str, Fact]:
        """Read whether the server had an answer of the chief."""
        return {"reached": self._is_said(REACHED)}

    def read_outlived(self) -> Mapping[str, Fact]:
        """Read whether the server came to its own end."""
        return {"the server was ended with it": self._is_said(REACHED) and not self._is_said(OUTLIVED)}

    def _places(self) -> list[JsonObject]:
        texts = [text for lines in self.lines.values() for text in lines if text.startswith(PLACE)]
        return [read_object(text.removeprefix(PLACE), "a line of the cluster") for text in texts]

    def _is_said(self, line: str) -> bool:
        return any(text.startswith(line) for lines in self.lines.values() for text in lines)

    def _job(self) -> ProtoJson:
        pool = machine_that_runs(self.trial, "trial_cluster.py.j2")
        return job_request(self.trial, "cluster", [pool, {}, pool], TIMEOUT)
