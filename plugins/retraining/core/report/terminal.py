"""Runs in lines for a terminal: a list of them, why the last one ended as it did, two side by side, one before it runs.

In: runs, parsed; the monitor's last ledger row. Out: text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from retraining.core.documents import Checks, Evaluation, Failure, Ledger, Plan, Snapshot, Statistics
from retraining.core.documents.checks import SplitStatistics
from retraining.core.metrics import Quality
from retraining.core.naming import storage
from retraining.core.promotion import ramp
from retraining.core.report.changes import differences
from retraining.core.report.failures import heading, next_step, parts_of
from retraining.core.report.page import outcome
from retraining.core.report.quality import quality_warnings
from retraining.core.report.run import Run
from retraining.core.report.started import explain_trigger, further_causes
from retraining.core.report.training import describe_beginning, training_warnings

LISTED_KINDS = ("plan", "checks", "evaluation", "decision", "registration")
"""What a list and a comparison are made of; why a run ended as it did is told from all."""


def list_runs(runs: Iterable[Run]) -> list[str]:
    """Return a table of runs: key, mode, who started it, verdict, metric with the champion's, version."""
    rows = [("run", "mode", "started by", "verdict", "metric", "champion's", "version")]
    for run in runs:
        metric = run.plan.spec.evaluation.metric
        ours, theirs = _both(run.evaluation, metric)
        rows.append(
            (
                run.plan.run_key,
                run.plan.mode,
                run.plan.trigger.cause or run.plan.trigger.kind,
                verdict(run),
                f"{metric} {ours}",
                theirs,
                run.registration.version_id if run.registration else "-",
            )
        )
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, each column as wide as its widest value."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def explain_run(run: Run) -> Iterator[str]:
    """Yield why a run was started, what it found, and why it did or did not change the champion."""
    plan = run.plan
    yield f"run {plan.run_key} of {plan.model}, as of {plan.as_of:%Y-%m-%d %H:%M:%S} UTC ({plan.mode})"
    yield f"started   {explain_trigger(plan.trigger).removeprefix('Started ')}"
    for event, message in further_causes(plan.trigger):
        yield f"          and by {message}, at {event.at:%Y-%m-%d %H:%M} UTC: {event.reason}"
    for finding in run.checks.findings if run.checks else ():
        yield f"data      {finding.severity}: {finding.message}"
    yield from _warnings(run)
    for gate in run.decision.gates if run.decision else ():
        yield f"{'warned' if gate.warns else 'passed' if gate.passed else 'FAILED':<9} {gate.gate}: {gate.message}"
    yield from _failed(run.failure)
    if run.decision or not run.failure:
        yield f"outcome   {outcome(run)}"
    if run.deployment:
        yield f"endpoint  {run.deployment.message}"
        if approval := run.deployment.approval:
            yield f"approval  {approval.message}"
        for step in run.deployment.steps:
            yield f"ramp      {step.percent} %: {ramp.outcomes(step)}"
    elif run.decision and not run.failure:
        yield f"endpoint  {run.why_missing('deployment')}"
    yield f"documents {plan.run_uri}"


def explain_no_plan(failure: Failure) -> Iterator[str]:
    """Yield why the newest run of a model came to no plan, and so to no documents."""
    yield f"run {failure.dag_run_id} of {failure.model} came to no plan"
    yield from _failed(failure)
    if failure.folder_uri:
        yield f"  {'page':<8}{storage.report_page_uri(failure.folder_uri)}"


def _warnings(run: Run) -> Iterator[str]:
    """Yield what the weights began as, and what speaks against the training and the comparison."""
    if beginning := describe_beginning(run.train_request, run.report):
        yield f"training  {beginning}"
    for warning in training_warnings(run.report, run.plan.spec.training.model) if run.report else ():
        yield f"training  warn: {warning}"
    for warning in quality_warnings(run.evaluation) if run.evaluation else ():
        yield f"quality   warn: {warning}"


def _failed(failure: Failure | None) -> Iterator[str]:
    """Yield the message of the task that failed, in its four parts, as its page has them."""
    if failure is None:
        return
    again = "; it is tried again" if failure.retried else ""
    yield f"failed    {heading(failure)}, try {failure.attempt}, {failure.failed_at:%Y-%m-%d %H:%M} UTC{again}"
    for name, text in parts_of(failure):
        first, *more = text.splitlines() or [""]
        yield f"  {name:<8}{first}"
        yield from (f"{'':<10}{line}" for line in more)
    if step := next_step(failure):
        yield f"  {'then':<8}{step}"
    if failure.log:
        yield f"  {'log':<8}{failure.log}"


def explain_monitor(row: Ledger | None) -> str:
    """Return what the monitor decided last, and why."""
    if row is None:
        return "monitor   no decision yet"
    return f"monitor   {row.outcome} at {row.as_of:%Y-%m-%d %H:%M} UTC ({row.reason}): {row.message}"


def compare_runs(before: Run, now: Run) -> list[str]:
    """Return two runs side by side: data, what differs in query, images and spec, every metric, the verdict."""
    rows: list[tuple[str, ...]] = [("", before.plan.run_key, now.plan.run_key)]
    rows.append(("window", _window(before), _window(now)))
    rows += [(each.what, _short(each.before), _short(each.now)) for each in differences(before.plan, now.plan)]
    metrics = [_metrics(run.evaluation) for run in (before, now)]
    for name in dict.fromkeys(name for found in metrics for name in found):
        rows.append((name, *(_number(found.get(name)) for found in metrics)))
    rows.append(("test rows", *(str(run.evaluation.rows) if run.evaluation else "-" for run in (before, now))))
    rows.append(("verdict", verdict(before), verdict(now)))
    return table(rows)


def verdict(run: Run) -> str:
    """Return how a run ended, in a word or two."""
    if run.decision:
        return run.decision.verdict
    if run.repetition:
        return "nothing new"
    return "bad data" if run.checks and not run.checks.passed else "not decided"


def _both(evaluation: Evaluation | None, metric: str) -> tuple[str, str]:
    if evaluation is None:
        return "-", "-"
    theirs = evaluation.champion.metrics if evaluation.champion else None
    return _number(_metric(evaluation.challenger.metrics, metric)), _number(_metric(theirs, metric))


def _metric(quality: Quality | None, metric: str) -> float | None:
    return getattr(quality, metric, None)


def _metrics(evaluation: Evaluation | None) -> dict[str, float | None]:
    return evaluation.challenger.metrics.model_dump() if evaluation else {}


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _window(run: Run) -> str:
    if run.plan.spec.data.split != "time":
        return f"all examples, {run.plan.spec.data.test_percent} % by hash to test"
    window = run.plan.window
    return f"{window.start} to {window.end}, test from {window.test_start}"


def _short(value: str) -> str:
    return value if len(value) <= 40 else f"{value[:39]}…"


def describe_preview(plan: Plan, taken: Snapshot, counted: Statistics, judged: Checks) -> Iterator[str]:
    """Yield lines: the window, rows by split, what would be exported, findings, the verdict."""
    window = plan.window
    yield f"{plan.model} as of {plan.as_of:%Y-%m-%d %H:%M:%S} UTC: a preview, nothing is trained and nothing is kept"
    if plan.stage:
        yield f"stage     {plan.stage}"
    if plan.spec.data.split == "time":
        yield f"window    {window.start} to {window.end} (exclusive), test days from {window.test_start}"
    for name, split in counted.splits.items():
        yield f"{name:<9} {split.rows:,} rows{_label(split)}"
    new = [span for span in taken.spans if span.action == "export"]
    rows = sum(part.rows for span in new for part in span.parts)
    parts = "days" if plan.spec.data.split == "time" else "parts (trained on, tested)"
    others = "; earlier runs exported the others" if len(new) < len(taken.spans) else ""
    yield f"export    {rows:,} rows of {len(new)} of {len(taken.spans)} {parts}{others}"
    if taken.left_out and (taken.left_out.future or taken.left_out.undated):
        yield f"left out  {taken.left_out.future:,} rows of the time to come, {taken.left_out.undated:,} without a time"
    for day in judged.quarantined:
        yield f"left out  {day}: quarantined"
    for finding in judged.findings:
        yield f"{finding.severity:<9} {finding.check}: {finding.message}"
    yield f"data      {'fit to train on' if judged.passed else 'NOT fit to train on: a run would end here'}"


def _label(split: SplitStatistics) -> str:
    """Return what the labels of a split are like."""
    label = split.label
    if label.counts is not None:
        listed = ", ".join(f"{place}: {count:,}" for place, count in enumerate(label.counts[:10]))
        return f", by class {listed}{', …' if len(label.counts) > 10 else ''}"
    return "" if label.mean is None else f", mean label {label.mean:.4g}"
