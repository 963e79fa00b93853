"""Two studies of Vizier: one with a parameter that not every trial has and a trial that fails, one that stops trials.

Each trial is one of the cheapest machines that the trainer's image fits, for a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from retraining.commands.trial.jobs import TIMEOUT, job_request, machine_that_runs, wait_for_job
from retraining.commands.trial.probes import Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.documents.document import read_object
from retraining.core.jobs.job import SUCCEEDED, Job
from retraining.core.spec.tuning import Condition, Tuning, TuningParameter
from retraining.core.tuning.requests import study_spec
from retraining.core.untyped import ProtoJson

TRIALS = 6
PARALLEL = {"space": 3, "stopping": 2}
"""At a time, by study: of the second one the bad trials come when the others have ended."""
FAILING = 2
PATIENCE = timedelta(minutes=4)
"""For which a bad trial goes on that nobody stops."""
TRIAL_TIMEOUT = timedelta(minutes=8)
"""Of a trial: the most that it is paid for."""
KIND, DEPTH, PLACE = "kind", "depth", "place"
DEEP = "deep"
SPACE = (
    TuningParameter(name=KIND, kind="categorical", values=("plain", DEEP)),
    TuningParameter(name=DEPTH, kind="integer", min=1, max=4, when=Condition(parameter=KIND, values=(DEEP,))),
)
PLACES = (TuningParameter(name=PLACE, kind="discrete", values=tuple(map(float, range(TRIALS)))),)
BAD = 2
"""Trials of the second study that are bad, by the program: whose place is 4 or 5."""


@dataclass(kw_only=True)
class TuningProbes:
    """Rows TUNE-….

    Attributes:
        trial: The trial.
        searched: The first study, after its end.
        reported: Trials of the first study, as the job has them after its end, by number.
        given: What each was given, as its program says, by number.
    """

    trial: Trial
    searched: Job | None = None
    reported: dict[int, ProtoJson] = field(default_factory=dict)
    given: dict[int, dict[str, str]] = field(default_factory=dict)

    def probes(self) -> Sequence[Probe]:
        """Return them; the first and the last one run a study each."""
        return (
            Probe(
                id="TUNE-1",
                asked=f"a study of {TRIALS} trials, read after its end",
                supposed={"numbers": "1 2 3 4 5 6", "trials whose parameters are not those of their flags": 0},
                ask=self.search,
            ),
            Probe(
                id="TUNE-2",
                asked="one of them fails",
                supposed={"the job": SUCCEEDED, "the others": f"{TRIALS - 1} SUCCEEDED", "its value": None},
                ask=self.read_failed,
            ),
            Probe(
                id="TUNE-4",
                asked="a parameter that belongs to one value of another",
                supposed={"trials without it that should have it": 0, "trials that have it for nothing": 0},
                ask=self.read_children,
            ),
            Probe(
                id="TUNE-5",
                asked="a metric that was best before its last step",
                supposed={"the value that counts": "0.75"},
                ask=self.read_values,
            ),
            Probe(
                id="TUNE-3",
                asked=f"a study of {TRIALS} trials of which {BAD} lag far behind",
                supposed={"the job": SUCCEEDED, "told by a signal": BAD, "came to their own end": 0},
                ask=self.stop_early,
            ),
        )

    def search(self) -> Mapping[str, Fact]:
        """Run the first study, and read what each trial had."""
        self.searched = self._run("space", SPACE, FAILING)
        self.reported = {int(each["id"]): each for each in self.trial.cloud.jobs.trials(self.searched.name)}
        self.given = {number: self._flags_of(number) for number in self.reported}
        other = [number for number, trial in self.reported.items() if _values_of(trial) != self.given[number]]
        return {
            "numbers": " ".join(map(str, sorted(self.reported))),
            "trials whose parameters are not those of their flags": len(other),
        }

    def read_failed(self) -> Mapping[str, Fact]:
        """Read the states of the first study and its trials."""
        if self.searched is None:
            raise LookupError("the study has not ended")
        states = Counter(str(trial["state"]) for number, trial in self.reported.items() if number != FAILING)
        value = _value_of(self.reported[FAILING])
        return {
            "the job": self.searched.state,
            "the others": ", ".join(f"{count} {state}" for state, count in sorted(states.items())),
            "its value": None if value is None else f"{value:g}",
        }

    def read_children(self) -> Mapping[str, Fact]:
        """Read which trials were given the second parameter."""
        deep = {number for number, values in self.given.items() if values.get(KIND) == DEEP}
        having = {number for number, values in self.given.items() if DEPTH in values}
        self.trial.measured["trials that should have it"] = len(deep)
        if not 0 < len(deep) < len(self.given):
            raise LookupError(f"{len(deep)} of {len(self.given)} trials should have it: nothing to tell by; try again")
        return {
            "trials without it that should have it": len(deep - having),
            "trials that have it for nothing": len(having - deep),
        }

    def read_values(self) -> Mapping[str, Fact]:
        """Read the final measurements of the trials that ended well."""
        values = {_value_of(trial) for number, trial in self.reported.items() if number != FAILING}
        return {"the value that counts": ", ".join(sorted(f"{value:g}" for value in values if value is not None))}

    def stop_early(self) -> Mapping[str, Fact]:
        """Run the second study, and count what its bad trials left."""
        job = self._run("stopping", PLACES, 0)
        names = [uri.rpartition("/")[2] for uri in self.trial.cloud.artifacts.list_uris(self._folder_uri("stopping"))]
        left = Counter(name.partition("-")[0] for name in names)
        return {
            "the job": job.state,
            "told by a signal": left["signal"],
            "came to their own end": left["outlived"],
        }

    def _run(self, name: str, space: Sequence[TuningParameter], failing: int) -> Job:
        spec = Tuning(
            metric="score",
            goal="maximize",
            algorithm="grid" if failing == 0 else "random",
            early_stopping="median" if failing == 0 else "none",
            parameters=tuple(space),
        )
        arguments = [self._folder_uri(name), str(failing), f"{PATIENCE.total_seconds():.0f}"]
        pool = machine_that_runs(self.trial, "trial_study.py.j2", arguments)
        one = job_request(self.trial, f"study-{name}", [pool], TRIAL_TIMEOUT)
        made = self.trial.cloud.jobs.create(
            {
                "display_name": one["display_name"],
                "study_spec": study_spec(spec, space),
                "max_trial_count": TRIALS,
                "parallel_trial_count": PARALLEL[name],
                "max_failed_trial_count": 2,
                "trial_job_spec": one["job_spec"],
                "labels": one["labels"],
            }
        )
        rounds = -(-TRIALS // PARALLEL[name])
        return wait_for_job(self.trial, made.name, rounds * TIMEOUT)

    def _folder_uri(self, name: str) -> str:
        """Return where the trials of a study leave what they say."""
        return f"{self.trial.model_uri}/{name}"

    def _flags_of(self, number: int) -> dict[str, str]:
        uri = f"{self._folder_uri('space')}/given-{number}"
        text = self.trial.cloud.artifacts.read_object(uri)
        if text is None:
            raise LookupError(f"trial {number} has not said what it was given")
        return {name: _plain(value) for name, value in read_object(text, uri).items()}


def _values_of(trial: ProtoJson) -> dict[str, str]:
    return {str(item["parameter_id"]): _plain(item["value"]) for item in trial.get("parameters", ())}


def _value_of(trial: ProtoJson) -> float | None:
    """Return what counts of a trial; None: it has no value."""
    metrics = trial.get("final_measurement", {}).get("metrics", ())
    return float(metrics[0].get("value", 0.0)) if metrics else None


def _plain(value: object) -> str:
    """Return a value so that 2, 2.0 and the text of either are the same."""
    text = str(value)
    try:
        return f"{float(text):g}"
    except ValueError:
        return text
