"""A probe: one row of docs/assumptions.md, what is supposed in it as facts, and how the services are asked for them.

All that a trial makes has names of its own (`MODEL`, `FOLDER`, `TABLES`, `LABEL`, `BOARD`), which no model has: what
one left behind is found by them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from retraining.commands.shell import attempt
from retraining.commands.trial.record import Answer, Fact, Names
from retraining.core.errors import JobError
from retraining.hooks.ports import CloudPort
from retraining.hooks.trial_calls import TrialCalls

_T = TypeVar("_T")

MODEL = "retraining_trial"
"""The model that a trial registers and deploys; a model of this name is refused."""
LABEL = "retraining-trial"
"""Of its jobs; the value is the trial's."""
FOLDER = "retraining-trial"
"""In the bucket: no model's, for their names have no hyphen."""
TABLES = "retraining_trial_"
"""What the names of its tables begin with."""
BOARD = "retraining-trial"
"""What its TensorBoard is called."""
LOOK_S = 2
"""Between two looks at work that is waited for."""


@dataclass(kw_only=True)
class Trial:
    """One trial: where it asks, what its things are called, and what the probe under way has measured.

    Attributes:
        cloud: All services.
        calls: Those that only a trial makes.
        number: Its own, in names and labels.
        deadline: After which nothing is waited for.
        measured: Seconds and counts by what they are of, for the record alone: they are no facts.
    """

    cloud: CloudPort
    calls: TrialCalls
    number: str
    deadline: datetime
    measured: dict[str, float] = field(default_factory=dict)

    def uri(self, name: str) -> str:
        """Return an address of its folder."""
        return f"gs://{self.cloud.settings.bucket}/{FOLDER}/{self.number}/{name}"

    @property
    def model_uri(self) -> str:
        """Return where its job leaves the model."""
        return self.result_uri("model")

    def result_uri(self, name: str) -> str:
        """Return an address below the folder of jobs, where alone jobs may write."""
        return f"gs://{self.cloud.settings.results_bucket}/jobs/{MODEL}/{self.number}/{name}"

    def table(self, name: str) -> str:
        """Return a table of its own, as `project.dataset.table`."""
        settings = self.cloud.settings
        return f"{settings.project}.{settings.dataset}.{TABLES}{self.number}_{name}"

    def job_id(self, name: str) -> str:
        """Return an id of a job on BigQuery."""
        return f"{LABEL}-{self.number}-{name}"

    def wait(self, what: str, look: Callable[[], _T | None], at_most: timedelta) -> _T:
        """Look until there is something, and measure how long that takes.

        Args:
            what: Is waited for, for the record and the message.
            look: Return it, or None or False as long as it is not there.
            at_most: How long; never beyond the trial's deadline.

        Raises:
            JobError: It did not come.
        """
        began = time.monotonic()
        last = min(datetime.now(UTC) + at_most, self.deadline)
        while not (found := look()):
            if datetime.now(UTC) >= last:
                waited = f"nothing after {time.monotonic() - began:.0f} s"
                raise JobError(f"trial, {what}", waited, f"it within {at_most}", "Look at it in the console")
            time.sleep(LOOK_S)
        self.measured[what] = round(time.monotonic() - began, 1)
        return found

    def comes(self, what: str, look: Callable[[], object], at_most: timedelta) -> bool:
        """Look until there is something, as `wait` does; return whether it came, where that is the question."""
        try:
            self.wait(what, look, at_most)
        except JobError:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One row of docs/assumptions.md.

    Attributes:
        id: The row's.
        asked: What is asked, in a line.
        supposed: The facts that the row supposes.
        ask: Return the facts as the services show them, by the same names.
    """

    id: str
    asked: str
    supposed: Mapping[str, Fact]
    ask: Callable[[], Mapping[str, Fact]]


class Part(Protocol):
    """Probes that share what they make, in their order."""

    def probes(self) -> Sequence[Probe]:
        """Return them."""


def answer_all(parts: Sequence[Part], trial: Trial, names: Names) -> Iterator[Answer]:
    """Ask one probe after the other; one that fails stops none of the others."""
    for part in parts:
        for probe in part.probes():
            yield _answer(probe, trial, names)


def _answer(probe: Probe, trial: Trial, names: Names) -> Answer:
    began = time.monotonic()
    trial.measured = {}
    seen = attempt(probe.ask)
    found: dict[str, Fact] = {}
    problem = None
    if isinstance(seen, Exception):
        problem = str(names.hide(f"{type(seen).__name__}: {seen}"))
    else:
        found = {name: names.hide(fact) for name, fact in seen.items()}
    return Answer(
        id=probe.id,
        asked=probe.asked,
        supposed=dict(probe.supposed),
        found=found,
        holds=None if problem else found == dict(probe.supposed),
        problem=problem,
        measured=trial.measured,
        seconds=round(time.monotonic() - began, 1),
    )
