"""The documents of one run as the page reads them: parsed, with digests, and with a reason where one is missing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from retraining.core import documents
from retraining.core.errors import ContractError, RetrainingError
from retraining.core.naming import storage
from retraining.core.untyped import JsonObject

LOGGER = logging.getLogger(__name__)

# In the order in which a run writes them, with the task that does.
TASK_OF_KIND = {
    "plan": "plan",
    "snapshot": "snapshot",
    "statistics": "check_data",
    "checks": "check_data",
    "manifest": "export",
    "tuning": "tune",
    "train_request": "train",
    "report": "train",
    "evaluate_request": "evaluate",
    "evaluation": "evaluate",
    "decision": "decide",
    "registration": "register",
    "model_card": "register",
    "deployment": "deploy",
    "timings": "report",
}
CHAMPION_PLAN = "champion_plan"
TASKS = tuple(dict.fromkeys([*list(TASK_OF_KIND.values())[:-2], "approve", "deploy"]))
"""Tasks that leave something, in a run's order; `approve` leaves its answer to `deploy`."""
WAITS_FOR = {
    "snapshot": "BigQuery",
    "check_data": "BigQuery",
    "export": "its job on Vertex AI",
    "tune": "the trials of its study",
    "train": "its job on Vertex AI",
    "evaluate": "its job on Vertex AI",
    "deploy": "the endpoint",
}


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A document's place in the run's record: its task, address and SHA-256 (None: it is not there).

    `decided_on` tells whether the decision was taken from just these bytes; None when it was not an input of it.
    """

    kind: str
    task: str
    uri: str
    sha256: str | None
    decided_on: bool | None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run left behind. Only the plan is always there."""

    plan: documents.Plan
    snapshot: documents.Snapshot | None
    statistics: documents.Statistics | None
    checks: documents.Checks | None
    manifest: documents.Manifest | None
    tuning: documents.Tuning | None
    train_request: documents.TrainRequest | None
    report: documents.Report | None
    evaluate_request: documents.EvaluateRequest | None
    evaluation: documents.Evaluation | None
    decision: documents.Decision | None
    registration: documents.Registration | None
    model_card: documents.ModelCard | None
    deployment: documents.Deployment | None
    timings: documents.Timings | None
    champion_plan: documents.Plan | None
    record: tuple[Stored, ...]
    failures: tuple[documents.Failure, ...] = ()
    there: frozenset[str] = frozenset()
    """Kinds whose documents are there and were not read."""
    asked: str = ""
    """What a person may answer until when, where the run waits for it."""

    def has(self, kind: str) -> bool:
        """Return whether the run wrote the document of a kind."""
        return getattr(self, kind) is not None or kind in self.there

    @property
    def repetition(self) -> documents.Repetition | None:
        """Return the run that this one would repeat, where that ended it; None: something is new, or it was cleared."""
        return self.checks.repeats if self.checks and not self.has("manifest") else None

    @property
    def failure(self) -> documents.Failure | None:
        """Return the message of the first task that failed, and that the run has not come past; None: there is none."""
        latest = {each.task: each for each in sorted(self.failures, key=lambda each: (each.failed_at, each.attempt))}
        return next((latest[task] for task in TASKS if task in latest and self._stands(latest[task])), None)

    @property
    def next_task(self) -> str | None:
        """Return the first task without its result; None: the run came to its end, or its checks ended it."""
        if self.has("deployment") or self.repetition or (self.checks and not self.checks.passed):
            return None
        return next((TASK_OF_KIND[kind] for kind in expected_kinds(self.plan) if not self.has(kind)), None)

    @property
    def progress(self) -> str:
        """Say in one sentence how far a run came that did not come to its end."""
        task = self.next_task
        if self.asked:
            return f"The run waits for a person's answer: {self.asked}. No answer is a no."
        if task is None:
            return ""
        if failure := self.failure:
            message = message_of(failure)
            again = f" It is tried again after try {failure.attempt}." if failure.retried else ""
            return f"The task {failure.task} failed.{again} {message}"
        waits = f" and waits for {WAITS_FOR[task]}" if task in WAITS_FOR else ""
        return (
            f"The run is at the task {task}{waits}. Where Airflow shows no such task at work, its log says why (run "
            f"{self.plan.dag_run_id})."
        )

    def _stands(self, failure: documents.Failure) -> bool:
        """Say whether a failure is not mended: its task left no result since, or it failed with one, and no other."""
        place = TASKS.index(failure.task)
        done = [kind for kind, task in TASK_OF_KIND.items() if task in TASKS and self.has(kind)]
        if any(TASKS.index(TASK_OF_KIND[kind]) > place for kind in done):
            return False
        own = [kind for kind in expected_kinds(self.plan) if TASK_OF_KIND[kind] == failure.task]
        return not failure.retried or not all(self.has(kind) for kind in own or ["deployment"])

    def _why_not_deployed(self) -> str:
        """Return why nothing is deployed, as far as it is known before the end of the deployment."""
        if self.plan.mode == "backfill":
            return "Nothing was deployed: this run is a backfill, which only records its version."
        if self.decision and self.decision.verdict != "promote":
            return "Nothing was deployed: the challenger was not promoted."
        if not self.plan.deploy:
            return "Nothing was deployed: the run was started with deploy switched off."
        if self.asked:
            return "Nothing is deployed yet: a person is asked."
        if self.failure and self.failure.task != "deploy":
            return "The run did not come to its deployment: nothing that serves has changed."
        return ""

    def why_missing(self, kind: str) -> str:
        """Say in one sentence why there is no document of a kind, as far as the others tell."""
        if kind == "timings":
            return "The run left no record of its tasks' times."
        task = TASK_OF_KIND[kind]
        kinds = expected_kinds(self.plan)
        if self.repetition and kinds.index(kind) > kinds.index("checks"):
            return self.repetition.message
        if self.checks and not self.checks.passed and kinds.index(kind) > kinds.index("checks"):
            return "The data did not pass its checks."
        if kind == "deployment" and (reason := self._why_not_deployed()):
            return reason
        if self.failure:
            return f"The task {self.failure.task} failed: its message stands at the top."
        stopped = next(TASK_OF_KIND[k] for k in kinds if not self.has(k))
        if stopped != task:
            return f"The run is at the task {stopped}, or came no further."
        return f"The task {task} has left no result; its log in Airflow says more (run {self.plan.dag_run_id})."


def expected_kinds(plan: documents.Plan) -> list[str]:
    """Return the kinds that a run writes when it comes to its end, in order.

    Runs of earlier releases have no card, and one that takes a version over asks no training.
    """
    left_out = {"model_card"}
    if not plan.spec.tuning:
        left_out.add("tuning")
    if plan.taken_from:
        left_out.add("train_request")
    return [kind for kind in TASK_OF_KIND if kind not in left_out]


def message_of(failure: documents.Failure) -> str:
    """Return the four parts as one line, as the task's log has them."""
    return str(RetrainingError(failure.where, failure.found, failure.expected, failure.way_out))


def read_failures(stored: Mapping[str, bytes]) -> tuple[documents.Failure, ...]:
    """Parse the messages of failed tries, by address; one that cannot be read is left out with a warning."""
    found = []
    for uri, data in stored.items():
        try:
            found.append(documents.Failure.parse(data, uri))
        except ContractError as error:
            LOGGER.warning("not shown: %s", error)
    return tuple(found)


def read_reported_run(
    raw: Mapping[str, Mapping[str, Any]],
    failures: tuple[documents.Failure, ...] = (),
    asked: str = "",
    there: Iterable[str] = (),
) -> Run:
    """Parse a run's documents.

    Args:
        raw: Stored JSON by kind; beside them, under `champion_plan`, the plan of the run that made the champion.
        failures: What its failed tries left.
        asked: What a person may answer until when, where the run waits for it.
        there: Kinds of further documents that are there.

    Raises:
        ContractError: There is no plan, a kind is not part of a run, or a document does not obey its contract.
    """
    if "plan" not in raw:
        raise ContractError("report", f"documents {', '.join(sorted(raw)) or 'none'}", "a plan among them")
    if unknown := sorted(set(raw) - set(TASK_OF_KIND) - {CHAMPION_PLAN}):
        raise ContractError("report", f"documents {', '.join(unknown)}", f"some of {', '.join(TASK_OF_KIND)}")
    parsed: JsonObject = dict.fromkeys((*TASK_OF_KIND, CHAMPION_PLAN))
    for name, values in raw.items():
        kind = "plan" if name == CHAMPION_PLAN else name
        parsed[name] = documents.KINDS[kind].parse(json.dumps(values), f"{name}.json")
    kinds = [kind for kind in TASK_OF_KIND if kind in raw or kind in expected_kinds(parsed["plan"])]
    record = tuple(_stored(kind, raw, parsed["plan"], parsed["decision"]) for kind in kinds)
    return Run(**parsed, record=record, failures=failures, asked=asked, there=frozenset(there))


def _stored(
    kind: str, raw: Mapping[str, Mapping[str, Any]], plan: documents.Plan, decision: documents.Decision | None
) -> Stored:
    sha256 = documents.digest(_stored_bytes(raw[kind])) if kind in raw else None
    inputs = {str(name): value for name, value in decision.inputs.items()} if decision else {}
    return Stored(
        kind=kind,
        task=TASK_OF_KIND[kind],
        uri=storage.document_uri(plan.run_uri, kind),
        sha256=sha256,
        decided_on=inputs[kind] == sha256 if kind in inputs and sha256 else None,
    )


def _stored_bytes(values: Mapping[str, Any]) -> bytes:
    """Return the bytes on storage, which both sides write in this one form.

    A model's own numbers could be spelt anew.
    """
    return (json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
