"""What one finished run made, read from the run's stored documents.

Comes in: the run's documents by kind (as they lie on storage), task times. Goes out: lines of text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from demo.progress import Failure

Document = Mapping[str, Any]


SHOWN_METRICS = ("accuracy", "auc", "brier", "calibration_error", "log_loss", "pr_auc")
"""Of those that the run's page has."""


def data_lines(documents: Mapping[str, Document]) -> list[str]:
    """Return rows, spans and shards of the run's data set, and what of it was exported now."""
    manifest = documents["manifest"]
    splits = manifest["splits"]
    shards = sum(len(split["files"]) for split in splits.values())
    exported = sum(span["action"] == "export" for span in manifest["spans"])
    rows = ", ".join(f"{name} {split['rows']:,}" for name, split in splits.items())
    total = sum(split["rows"] for split in splits.values())
    window = documents["plan"]["window"]
    return [
        f"data       {total:,} rows ({rows})",
        (
            f"           {len(manifest['spans'])} spans from {window['start']} to before {window['end']}: "
            f"{exported} exported now, {len(manifest['spans']) - exported} reused; {shards} shards"
        ),
    ]


def model_lines(documents: Mapping[str, Document]) -> list[str]:
    """Return the test metrics beside the champion's and the base rate's, the decision, and the registered version."""
    evaluation, decision = documents["evaluation"], documents["decision"]
    champion = evaluation.get("champion")
    lines = ["test       metric              challenger   champion"]
    measured = evaluation["challenger"]["metrics"]
    for name in SHOWN_METRICS:
        value = measured[name]
        other = f"{champion['metrics'][name]:.4f}" if champion else "-"
        lines.append(f"           {name:<18}  {value:10.4f}   {other:>8}")
    lines.append(f"           log_loss of always predicting the base rate: {evaluation['baseline']['log_loss']:.4f}")
    lines.append(f"decision   {decision['words']}")
    registration, deployment = documents.get("registration"), documents.get("deployment")
    if registration:
        lines.append(f"version    {registration['version_name']}")
    if deployment:
        lines += ramp_lines(deployment.get("steps") or [])
        lines.append(f"deployed   {deployment['words']}")
    return lines


def ramp_lines(steps: Sequence[Document]) -> list[str]:
    """Return the steps of a ramp: each share with its start, and its gates once they are judged."""
    lines = []
    for step in steps:
        lines.append(f"ramp       {step['percent']} % of the traffic from {step['start'][11:19]} UTC")
        for gate in step.get("gates") or []:
            outcome = {True: "passed", False: "failed", None: "not judged"}[gate["passed"]]
            lines.append(f"           {outcome:<10}  {gate['name']:<8}  {gate['words']}")
    return lines


def answer_lines(instance: Document, answer: Document) -> list[str]:
    """Return one online request and what the endpoint answered."""
    probability, version = answer["predictions"][0], answer["modelVersionId"]
    return [
        f"online     {json.dumps(instance)}",
        f"           -> late with probability {probability:.4f}, says version {version}",
    ]


def next_lines(airflow_url: str) -> list[str]:
    """Return where a person looks while everything stays up, and what there is to do."""
    return [
        f"pages      {airflow_url}/retraining/models: each model, its runs, and how they ended",
        "next       in another terminal: eval \"$(make -s demo-env)\", then make retraining DO='why flight_delays';",
        "           docs/tutorial.md goes on with a table of your own",
    ]


def failed_lines(failures: Sequence[Failure]) -> list[str]:
    """Return the failed tasks and their messages."""
    lines = []
    for failure in failures:
        first, *others = failure.message or ("it left no message",)
        lines += [f"failed     {failure.task_id}: {first}", *(f"           {line}" for line in others)]
    return lines or ["failed     the run, and none of its tasks: see the log of the scheduler"]
