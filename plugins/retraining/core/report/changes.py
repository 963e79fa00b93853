"""What is different: days of the window, and the run against the one that made the champion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from retraining.core import documents
from retraining.core.leaves import leaves
from retraining.core.report.run import Run

State = Literal["new", "changed", "reused", "empty", "out"]


@dataclass(frozen=True, kw_only=True)
class Day:
    """One day of the window: what was done with its span (`out`: the checks left it out), how many rows it has.

    `tested`: it belongs to the test split.
    """

    day: date
    state: State
    rows: int
    tested: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that is not as in the champion's run."""

    what: str
    before: str
    now: str


def days(run: Run) -> list[Day]:
    """Return every day of the window in order; days without an example too."""
    snapshot = run.snapshot
    spans = {span.span: span for span in snapshot.spans} if snapshot else {}
    out = _left_out(run)
    window = run.plan.window
    listed = []
    for offset in range((window.end - window.start).days):
        day = window.start + timedelta(days=offset)
        span = spans.get(day)
        listed.append(
            Day(
                day=day,
                state="out" if day in out else _state(span),
                rows=sum(part.rows for part in span.parts) if span else 0,
                tested=day >= window.test_start,
                reason=out.get(day) or (span.reason if span else "no example on this day"),
            )
        )
    return listed


def noteworthy(window: Sequence[Day]) -> list[Day]:
    """Return the days that a person should look at.

    Left out, changed after they were exported, or without an example.
    """
    return [day for day in window if day.state in ("changed", "empty", "out")]


def since_champion(run: Run) -> list[Change] | None:
    """Return what differs from the champion's run besides its time; None when that run's plan is not at hand."""
    return None if run.champion_plan is None else differences(run.champion_plan, run.plan)


def differences(before: documents.Plan, now: documents.Plan) -> list[Change]:
    """Return what differs between the plans of two runs besides their time: query, images, keys of the spec."""
    changes = []
    if before.query.sha256 != now.query.sha256:
        changes.append(Change(what=f"query {now.query.path}", before=before.query.sha256, now=now.query.sha256))
    asserted = before.assertions.keys() & now.assertions.keys()  # the spec's own keys say which came and went
    for name in sorted(asserted):
        old_query, new_query = before.assertions[name], now.assertions[name]
        if old_query.sha256 != new_query.sha256:
            changes.append(Change(what=f"assertion {name}", before=old_query.sha256, now=new_query.sha256))
    for what, old, new in (
        ("trainer image", before.trainer_image, now.trainer_image),
        ("serving image", before.serving_image, now.serving_image),
    ):
        if old != new:
            changes.append(Change(what=what, before=old, now=new))
    old_spec, new_spec = (dict(leaves(plan.spec.model_dump(mode="json"))) for plan in (before, now))
    for key in sorted(old_spec.keys() | new_spec.keys()):
        if old_spec.get(key) != new_spec.get(key):
            changes.append(Change(what=key, before=old_spec.get(key, "not set"), now=new_spec.get(key, "not set")))
    return changes


def _left_out(run: Run) -> dict[date, str]:
    """Return the days that the checks left out, with what they found."""
    if run.checks is None:
        return {}
    message = {
        day: "; ".join(item.message for item in run.checks.findings if item.span == day)
        for day in run.checks.quarantined
    }
    return {day: f"left out: {reason}" for day, reason in message.items()}


def _state(span: documents.SpanWork | None) -> State:
    if span is None:
        return "empty"
    if span.action == "reuse":
        return "reused"
    return "changed" if span.reason.startswith("changed") else "new"
