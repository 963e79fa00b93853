"""Months of 2013 in fast motion: customers, labels that come later, a monitor that looks, retrainings that follow.

Comes in: a running system on a bundle with the scenario's spec. Goes out: what each step came to, told as it comes.
The replay gives the monitor its time (Param `as_of`), and the request log the time of its rows; a ramp takes its
minutes for real.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from demo.customers import Customers, beside
from demo.dag_run import DAG_ID, MODEL
from demo.year_scenario import DRIFT, OUTAGE, SILENCE, Event, Scenario
from demo.year_tables import Tables
from demo.year_traffic import Told, Traffic, measure_auc
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import Outcome, read_outcome, run_dag, wait_for_dag
from retraining_laptop.progress import follow_run
from retraining_laptop.summary import ramp_lines

MONITOR_ID = f"monitor__{MODEL}"
RUN_TIMEOUT_S = 1800.0
_ORDERED_WITHIN_S = 120.0
_LOOK_TIMEOUT_S = 300.0
_CUSTOMERS_ASK = 200


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """What came of a retraining that the monitor ordered."""

    version_id: str | None
    promoted: bool
    words: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Step:
    """Some days, and what the monitor made of them.

    Attributes:
        as_of: When the monitor looked.
        events: What was wrong, by the scenario.
        version_id: Of the champion that was asked.
        answers: How many it gave.
        auc: Of the answers, once the labels were known; None: there were none of both classes.
        skew: The feature that is furthest over its threshold, or nearest below: distance and threshold.
        states: Named states of the monitor's signals.
        outcome: Of the ledger's row, as `because`, `cause` and `words`.
        retrained: What the order came to; None: there was none.
    """

    as_of: datetime
    events: tuple[Event, ...]
    version_id: str
    answers: int
    auc: float | None
    skew: tuple[str, float, float] | None
    states: tuple[str, ...]
    outcome: str
    because: str
    cause: str | None
    words: str
    retrained: Retrained | None


@dataclass(kw_only=True)
class Year:
    """The replay.

    Args:
        api: Of the system.
        scenario: What happens.
        months: How long.
        project: Of tables and bucket.
        say: Takes one line of progress at a time.
    """

    api: AirflowApi
    scenario: Scenario
    months: int
    project: str
    say: Callable[[str], None]
    steps: list[Step] = field(default_factory=list)
    first: Outcome | None = None

    def play(self) -> None:
        """Train the first model, then take step after step."""
        tables = Tables(self.project, self.scenario)
        tables.prepare()
        self.first = run_dag(
            self.api,
            DAG_ID,
            self.scenario.start.isoformat(),
            project=self.project,
            say=self.say,
            timeout_s=RUN_TIMEOUT_S,
            repeat=False,
        )
        if self.first.state != "success" or not self.first.documents["deployment"]["deployed"]:
            return
        plan = self.first.documents["plan"]
        traffic = Traffic(
            tables.read_flights(self.months * self.scenario.days_per_month),
            [feature["name"] for feature in plan["spec"]["features"]],
            plan["spec"]["data"]["key"],
            self.scenario.instances_per_request,
        )
        wait_for_dag(self.api, MONITOR_ID)
        self.api.unpause(MONITOR_ID)
        for day in self.scenario.steps(self.months):
            step = self._take_step(day, tables, traffic)
            self.steps.append(step)
            self.say(step_line(step))

    def _take_step(self, day: int, tables: Tables, traffic: Traffic) -> Step:
        scenario, deployment = self.scenario, self._deployment()
        start, as_of = scenario.at(day), scenario.at(day + scenario.step_days)
        answers = self._ask(day, traffic, deployment["endpoint_name"])
        tables.wait_logged(deployment["log_table"], start, as_of, len(answers))
        tables.arrive(as_of)
        known = {run["dag_run_id"] for run in self.api.runs(DAG_ID)}
        row, signals = self._look(as_of)
        instances = traffic.sample(start, as_of, _CUSTOMERS_ASK)
        ordered = row["outcome"] == "retrain"
        told = [item for request in answers for item in request]
        return Step(
            as_of=as_of,
            events=tuple(scenario.events_in(day)),
            version_id=str(deployment["version_name"]).rpartition("@")[2],
            answers=len(told),
            auc=measure_auc(told),
            skew=_skew(signals),
            states=tuple(dict.fromkeys(item["because"] for item in signals["signals"] if item["because"])),
            outcome=row["outcome"],
            because=row["because"],
            cause=row.get("cause"),
            words=row["words"],
            retrained=self._retrain(known, instances, deployment["endpoint_name"]) if ordered else None,
        )

    def _ask(self, day: int, traffic: Traffic, endpoint_name: str) -> list[list[Told]]:
        """Let customers ask about a step's flights, day by day."""
        answers: list[list[Told]] = []
        for each in range(day, day + self.scenario.step_days):
            events = [event for event in self.scenario.events if event.holds(each)]
            if any(event.kind == SILENCE for event in events):
                continue
            without = [event.column for event in events if event.kind == OUTAGE and event.column]
            answers += traffic.ask(endpoint_name, self.scenario.at(each), self.scenario.at(each + 1), without)
        return answers

    def _look(self, as_of: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let the monitor look; return its row of the ledger and its signals.

        Raises:
            RuntimeError: Its run failed.
        """
        run_id = self.api.trigger(MONITOR_ID, conf={"as_of": as_of.isoformat()})
        state, _ = follow_run(self.api, MONITOR_ID, run_id, say=_nobody, timeout_s=_LOOK_TIMEOUT_S)
        if state != "success":
            raise RuntimeError(f"{MONITOR_ID} {run_id} of {as_of}: {state}")
        folder = self.api.xcom(MONITOR_ID, run_id, "measure")["monitor_uri"]
        return self._read(f"{folder}/ledger.json"), self._read(f"{folder}/signals.json")

    def _retrain(self, known: set[str], instances: list[dict[str, Any]], endpoint_name: str) -> Retrained:
        """Follow the run that the monitor ordered, while customers ask, until its version serves or not."""
        deadline = time.monotonic() + _ORDERED_WITHIN_S
        while not (new := [run["dag_run_id"] for run in self.api.runs(DAG_ID) if run["dag_run_id"] not in known]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{DAG_ID}: no run {_ORDERED_WITHIN_S:.0f} s after the order")
            time.sleep(1)
        self.say(f"retrain    {new[0]}")
        customers = Customers(endpoint_name=endpoint_name, instances=instances)
        rollout_uri, told = f"gs://{self._documents['plan']['bucket']}/{MODEL}/rollout.json", list[str]()
        before = self._read(rollout_uri)["run_key"]

        def tell_steps() -> None:
            rollout = self._read(rollout_uri)
            lines = ramp_lines(rollout.get("steps") or []) if rollout["run_key"] != before else []
            for line in lines[len(told) :]:
                self.say(line)
            told.extend(lines[len(told) :])

        with customers.asking(), beside(tell_steps, 2.0):
            follow_run(self.api, DAG_ID, new[0], say=self.say, timeout_s=RUN_TIMEOUT_S)
        outcome = read_outcome(self.api, DAG_ID, new[0], self.project)
        found = outcome.documents
        version = found.get("registration", {}).get("version_name")
        return Retrained(
            version_id=version.rpartition("@")[2] if version else None,
            promoted=bool(found.get("deployment", {}).get("deployed")),
            words=found["deployment"]["words"] if "deployment" in found else str(outcome.failures),
            seconds=outcome.seconds,
        )

    def _deployment(self) -> dict[str, Any]:
        """Return the first model's deployment, with the version that is champion now."""
        found = dict(self._documents["deployment"])
        promoted = [step.retrained.version_id for step in self.steps if step.retrained and step.retrained.promoted]
        if promoted:
            found["version_name"] = f"{found['version_name'].rpartition('@')[0]}@{promoted[-1]}"
        return found

    @property
    def _documents(self) -> dict[str, dict[str, Any]]:
        """The first run's documents.

        Raises:
            RuntimeError: It has not run.
        """
        if self.first is None:
            raise RuntimeError("Year.play() was not called")
        return self.first.documents

    def _read(self, uri: str) -> dict[str, Any]:
        from google.cloud import storage  # after the local cloud's variables are set

        bucket, _, path = uri.removeprefix("gs://").partition("/")
        return dict(json.loads(storage.Client(project=self.project).bucket(bucket).blob(path).download_as_bytes()))


def step_line(step: Step) -> str:
    """Return one line about a step."""
    auc = "   -  " if step.auc is None else f"{step.auc:.3f} "
    skew = f"{step.skew[0]} {step.skew[1]:.2f}" if step.skew else "-"
    wrong = f"  [{', '.join(event.kind for event in step.events)}]" if step.events else ""
    states = f"  {', '.join(step.states)}" if step.states else ""
    head = f"{step.as_of:%Y-%m-%d} {step.answers:>6,} answers by version {step.version_id}  auc {auc} skew {skew}"
    line = f"{head}  -> {step.outcome} ({step.because}){states}{wrong}"
    if step.retrained:
        line += f"\n           {step.retrained.words} ({step.retrained.seconds:.0f} s)"
    return line


def year_lines(year: Year) -> list[str]:
    """Return what the replay came to."""
    before, during, after = scores(year)
    orders = [step for step in year.steps if step.retrained]
    promoted = sum(step.retrained.promoted for step in orders if step.retrained)
    lines = [f"monitor    {len(year.steps)} runs; retrainings ordered: {len(orders)}, promoted: {promoted}"]
    lines += [f"ordered    {step.as_of:%Y-%m-%d} by {step.cause}: {step.words}" for step in orders]
    named = [("before the drift", before), ("until retrained" if promoted else "since", during), ("after", after)]
    told = ", ".join(f"{value:.3f} {name}" for name, value in named if value is not None)
    return [*lines, f"auc        {told}"]


def scores(year: Year) -> tuple[float | None, float | None, float | None]:
    """Return the mean AUC before the drift, from then until a retrained version served, and after."""
    drifted = [any(event.kind == DRIFT for event in step.events) for step in year.steps]
    promoted = [
        drift and bool(step.retrained and step.retrained.promoted)
        for drift, step in zip(drifted, year.steps, strict=True)
    ]
    served = promoted.index(True) + 1 if True in promoted else len(year.steps)
    begin = drifted.index(True) if True in drifted else len(year.steps)
    return tuple(_mean(part) for part in (year.steps[:begin], year.steps[begin:served], year.steps[served:]))  # type: ignore[return-value]


def _mean(steps: list[Step]) -> float | None:
    known = [step.auc for step in steps if step.auc is not None]
    return sum(known) / len(known) if known else None


def _skew(signals: dict[str, Any]) -> tuple[str, float, float] | None:
    """Return the feature that counts and is furthest from the training data, measured by its threshold."""
    there = [
        (item["subject"], item["value"], item["threshold"])
        for item in signals["signals"]
        if item["kind"] == "skew" and item["value"] is not None and item["threshold"] and item["threshold"] < 1
    ]
    return max(there, key=lambda item: item[1] / item[2]) if there else None


def _nobody(line: str) -> None:
    """Hear nothing."""
