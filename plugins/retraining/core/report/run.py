"""The documents of one run as the page reads them: parsed, with digests, and with a reason where one is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retraining.core import documents
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.untyped import JsonObject

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

    def has(self, kind: str) -> bool:
        """Tell whether the run wrote the document of a kind."""
        return getattr(self, kind) is not None

    def why_missing(self, kind: str) -> str:
        """Say in one sentence why there is no document of a kind, as far as the others tell."""
        if kind == "timings":
            return "The run left no record of its tasks' times."
        task = TASK_OF_KIND[kind]
        kinds = expected_kinds(self.plan)
        if self.checks and not self.checks.passed and kinds.index(kind) > kinds.index("checks"):
            return "This did not happen: the data did not pass its checks."
        if kind == "deployment":
            if self.plan.mode == "backfill":
                return "Nothing was deployed: this run is a backfill, which only records its version."
            if self.decision and self.decision.verdict != "promote":
                return "Nothing was deployed: the challenger was not promoted."
            if not self.plan.deploy:
                return "Nothing was deployed: the run was started with deploy switched off."
        stopped = next(TASK_OF_KIND[k] for k in kinds if not self.has(k))
        if stopped != task:
            return f"This did not happen: the run came no further than the task {stopped}."
        return f"The task {task} left no result; its log in Airflow says why (run {self.plan.dag_run_id})."


def expected_kinds(plan: documents.Plan) -> list[str]:
    """Return the kinds that a run writes when it comes to its end, in order; runs of earlier releases have no card."""
    return [kind for kind in TASK_OF_KIND if kind != "model_card" and (kind != "tuning" or plan.spec.tuning)]


def read_reported_run(raw: Mapping[str, Mapping[str, Any]]) -> Run:
    """Parse a run's documents.

    Args:
        raw: Stored JSON by kind; beside them, under `champion_plan`, the plan of the run that made the champion.

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
    return Run(**parsed, record=tuple(_stored(kind, raw, parsed["plan"], parsed["decision"]) for kind in kinds))


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
