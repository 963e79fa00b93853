"""Monitor runs without a cloud: signals, facts and policies of tests, and a loop of runs that sees its own rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from retraining.core import documents as d
from retraining.core.documents.monitoring import Signal, Signals
from retraining.core.monitoring import policy
from retraining.core.monitoring.replay import Recorded, decide_again
from tests.support.small_model import AS_OF, make_spec

CHAMPION = d.DriftChampion(version_id="1", run_key="20131101t030000z-0123456789ab")
SECOND = d.DriftChampion(version_id="2", run_key="20131119t030000z-0123456789ab")
AT_ONCE = {"windows": {"exceeded": 1, "of": 1}, "max_retrainings_per_week": None}


def rules(
    *,
    cooldown_hours: float = 24,
    actions: dict[str, Any] | None = None,
    training: d.TrainingDays | None = None,
    **values: Any,
) -> d.LedgerPolicy:
    """Return a policy: that of a file without the section, with some keys; without `training` no order waits."""
    found = policy.policy_of(make_spec(monitoring={"cooldown_hours": cooldown_hours, "policy": values}))
    return found.model_copy(update={"actions": {**found.actions, **(actions or {})}, "training": training})


def signal(
    cause: str = "skew:carrier", value: float = 0.4, state: Any = "exceeded", because: Any = None, **values: Any
) -> Signal:
    """Return a signal by its cause."""
    kind, _, subject = cause.partition(":")
    told: dict[str, Any] = {
        "kind": kind,
        "subject": subject,
        "state": state,
        "because": because,
        "measure": "l_infinity",
        "value": value,
        "threshold": 0.3,
        "examples": 500,
        "words": f"{subject or kind} is at {value:g} (over 0.3).",
    }
    return Signal(**(told | values))


def signals(*found: Signal, hours: float = 0, champion: Any = CHAMPION, requests: int = 500) -> Signals:
    """Return what a monitor run saw, some hours after the tests' time."""
    return Signals(
        model="late",
        as_of=AS_OF + timedelta(hours=hours),
        window_hours=24,
        champion=champion,
        endpoint_name="e",
        log_table="p.d.t",
        requests=requests,
        bytes_read=0,
        signals=found,
    )


def facts(**values: Any) -> d.LedgerFacts:
    """Return what is known beside the signals."""
    told: dict[str, Any] = {
        "champion": CHAMPION,
        "champion_since": None,
        "previous_version": None,
        "paused": None,
        "results": (),
    }
    return d.LedgerFacts(**(told | values))


def ledger_id(hours: float) -> str:
    """Return the id of the row of a monitor run."""
    return f"at-{hours:g}"


def result(hours: float, state: Any, champion: d.DriftChampion | None = None) -> d.LedgerResult:
    """Return what came of the order of a monitor run."""
    return d.LedgerResult(
        ledger_id=ledger_id(hours),
        ordered_at=AS_OF + timedelta(hours=hours),
        cause="skew:carrier",
        dag_run_id="x",
        run_key=champion.run_key if champion else None,
        state=state,
        version_id=champion.version_id if champion else None,
        gain=None,
    )


def decide(
    seen: Signals, ledger_rows: Iterable[d.Ledger] = (), rule: d.LedgerPolicy | None = None, **known: Any
) -> d.Ledger:
    """Return the row of a monitor run, which is stored, read and decided again on the way."""
    hours = (seen.as_of - AS_OF) / timedelta(hours=1)
    told = facts(**({"champion": seen.champion} | known))
    rows = tuple(ledger_rows)
    row = policy.decide(seen, rule or rules(), told, rows, ledger_id=ledger_id(hours))
    stored = d.Ledger.parse(row.to_bytes())
    assert decide_again(Recorded(signals=seen, row=stored), rows) == stored == row
    return row
