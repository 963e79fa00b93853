"""What one finished run made, read from the run's stored documents.

Comes in: the run's documents by kind (as they lie on storage), task times. Goes out: lines of text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from retraining_laptop.progress import Failure

Document = Mapping[str, Any]


SHOWN_METRICS = ("accuracy", "auc", "brier", "calibration_error", "log_loss", "pr_auc", "mae", "rmse", "r2")
"""Of those that the run's page has; each label has some of them, and the one that decides is always shown."""


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
    decides = documents["plan"]["spec"]["evaluation"]["metric"]
    names = [name for name in SHOWN_METRICS if measured.get(name) is not None]
    for name in names if decides in names else [decides, *names]:
        other = f"{champion['metrics'][name]:.4f}" if champion else "-"
        lines.append(f"           {name:<18}  {measured[name]:10.4f}   {other:>8}")
    baseline = evaluation.get("baseline")
    if baseline:
        lines.append(f"           log_loss of always predicting the base rate: {baseline['log_loss']:.4f}")
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


def answer_lines(instance: Document, answer: Document, words: str) -> list[str]:
    """Return one online request and what the endpoint answered.

    Args:
        instance: The request.
        answer: Of the endpoint, as it came over REST.
        words: What the prediction means, with `{}` for it.
    """
    return [
        f"online     {json.dumps(instance)}",
        f"           -> {words.format(shown(answer['predictions'][0]))}, says version {answer['modelVersionId']}",
    ]


def shown(prediction: object) -> str:
    """Return a prediction as a person reads it."""
    return f"{prediction:.4f}" if isinstance(prediction, float) else json.dumps(prediction)


def failed_lines(failures: Sequence[Failure]) -> list[str]:
    """Return the failed tasks and their messages."""
    lines = []
    for failure in failures:
        first, *others = failure.message or ("it left no message",)
        lines += [f"failed     {failure.task_id}: {first}", *(f"           {line}" for line in others)]
    return lines or ["failed     the run, and none of its tasks: see the log of the scheduler"]
