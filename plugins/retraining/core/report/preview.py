"""What a run would train on, in lines for a terminal: before it runs, and before anything is paid but the queries."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.documents import Checks, Plan, Snapshot, Statistics
from retraining.core.documents.checks import SplitStatistics


def describe_preview(plan: Plan, taken: Snapshot, counted: Statistics, judged: Checks) -> Iterator[str]:
    """Yield lines: the window, rows by split, what would be exported, findings, the verdict."""
    window = plan.window
    yield f"{plan.model} as of {plan.as_of:%Y-%m-%d %H:%M:%S} UTC: a preview, nothing is trained and nothing is kept"
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
        yield f"{finding.severity:<9} {finding.check}: {finding.words}"
    yield f"data      {'fit to train on' if judged.passed else 'NOT fit to train on: a run would end here'}"


def _label(split: SplitStatistics) -> str:
    """Return what the labels of a split are like."""
    label = split.label
    if label.counts is not None:
        listed = ", ".join(f"{place}: {count:,}" for place, count in enumerate(label.counts[:10]))
        return f", by class {listed}{', …' if len(label.counts) > 10 else ''}"
    return "" if label.mean is None else f", mean label {label.mean:.4g}"
