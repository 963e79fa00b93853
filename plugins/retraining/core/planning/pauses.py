"""The pause of a model's retraining: what a person asked for, which of two counts, and whether one holds.

In: a form's text, stored documents, times. Out: a document, words.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from retraining.core.documents.plan import Pause
from retraining.core.errors import PlanError
from retraining.core.planning.windows import parse_time

WHERE = "Param pause_until"


def end_of_pause(text: str, asked: datetime) -> datetime:
    """Return when a pause ends: the midnight (UTC) that the given day begins with; the first runs of that day begin.

    Args:
        text: A day, or `7 days`: that many after the one of asking.
        asked: When the pause was asked for.

    Raises:
        PlanError: It is no day, or not after the day of asking.
    """
    if days := re.fullmatch(r"([1-9]\d{0,2}) days?", text.strip()):
        return datetime.combine(asked.date() + timedelta(days=int(days[1])), time(), UTC)
    until = parse_time(text, WHERE)
    if until <= asked:
        found, expected = f"{text}, which has begun", f"a day after {asked:%Y-%m-%d}"
        raise PlanError(WHERE, found, expected, "Trigger again with a later day; to = stay without a day ends a pause")
    return until


def replaces(asked: Pause, stored: Pause | None) -> bool:
    """Return whether a pause is to be stored: what was asked for last counts, whichever poke comes last."""
    return stored is None or (stored.asked, stored.dag_run_id) < (asked.asked, asked.dag_run_id)


def holds(pause: Pause | None, at: datetime) -> bool:
    """Return whether no retraining begins at a time."""
    return pause is not None and pause.until is not None and at < pause.until


def explain_pause(pause: Pause) -> str:
    """Return until when, by whom and why, in a sentence."""
    if pause.until is None:
        return f"retraining of {pause.model} is not paused."
    reason = f" because: {pause.reason.rstrip('.')}" if pause.reason else ""
    until = f"{pause.until:%Y-%m-%d %H:%M} UTC"
    return f"retraining of {pause.model} is paused until {until} {pause.trigger.reason}{reason}."


def way_out(pause: Pause) -> str:
    """Return how to retrain all the same, and how to end the pause."""
    return (
        "Trigger with Force to retrain all the same; to end the pause trigger the DAG rollback with "
        f"model = {pause.model}, to = stay and no pause_until."
    )
