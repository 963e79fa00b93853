"""What the policy is told beside the signals: the champion's place, the pause, earlier orders and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from airflow.sdk import Context

from retraining.core.documents import (
    Ledger,
    LedgerFacts,
    LedgerOrder,
    LedgerPolicy,
    Multivariate,
    MultivariateRequest,
    Rollout,
    Signals,
)
from retraining.core.monitoring import multivariate, policy
from retraining.core.naming import storage, vertex
from retraining.core.naming.run_keys import RunKey, stamp
from retraining.core.planning import pauses
from retraining.hooks.ports import CloudPort
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.monitoring.order_results import find_lost, find_results, last_by_hand
from retraining.operators.monitoring.signal_measurement import load_spec
from retraining.operators.record.pauses import find_pause
from retraining.operators.record.run_record import Record


def gather_facts(
    cloud: CloudPort,
    context: Context,
    record: Record,
    rows: Sequence[Ledger],
    last_order: Ledger | None,
) -> LedgerFacts:
    """Return what is known when a monitor run decides.

    Args:
        cloud: The hooks.
        context: Of the task.
        record: Of the monitor run.
        rows: Earlier rows of the ledger.
        last_order: The row that ordered something last, whichever monitor run's it is but this one's.
    """
    signals = record.read_document(Signals)
    model = signals.model
    pause = find_pause(cloud, model, context)
    rollout = RolloutState(cloud, model).read_rollout()
    previous = cloud.registry.find_by_alias(model, vertex.PREVIOUS)
    champion = signals.champion
    serves = rollout if rollout and champion and rollout.version_id == champion.version_id else None
    found = find_results(cloud, context, model, rows)
    lost = find_lost(cloud, context, rows, last_order, found)
    since = policy.last_order(rows, lost)
    return LedgerFacts(
        champion=champion,
        champion_since=_since(serves, champion.run_key, signals.as_of) if champion else None,
        previous_version=previous.version_id if previous else None,
        paused=pauses.explain_pause(pause) if pause else None,
        results=found,
        by_rollback=serves is not None and serves.rollback is not None,
        last_by_hand=last_by_hand(cloud, model, since, signals.as_of) if since else None,
        last_order=_order(last_order),
        lost_orders=lost,
        classifier=multivariate.judge_classifier(
            load_spec(model),
            record.find_document(Multivariate),
            asked=record.find_document(MultivariateRequest) is not None,
        ),
    )


def ledger_rows(cloud: CloudPort, model: str, rules: LedgerPolicy, as_of: datetime) -> list[Ledger]:
    """Read earlier ledger rows: as far back as orders matter, and as many windows as the policy looks at."""
    folder, since, until = storage.monitors_uri(cloud.settings.bucket, model), as_of - policy.reach(rules), stamp(as_of)
    uris = cloud.artifacts.list_uris(folder, start=stamp(since), end=until, suffix="/ledger.json")
    if len(uris) < rules.windows_of:  # a monitor that seldom runs
        uris = cloud.artifacts.list_uris(folder, end=until, suffix="/ledger.json")[-rules.windows_of :]
    return [Ledger.parse(data) for data in cloud.artifacts.read_many(uris)]


def _since(rollout: Rollout | None, run_key: str, as_of: datetime) -> datetime:
    """Return since when the champion has all traffic; where that is not known, or after `as_of`, its data's time."""
    ends = [step.end for step in rollout.steps if step.end] if rollout else []
    since = max(ends, default=rollout.asked) if rollout else None
    return since if since is not None and since <= as_of else RunKey.parse(run_key).as_of


def _order(row: Ledger | None) -> LedgerOrder | None:
    if row is None or row.ledger_id is None:
        return None
    return LedgerOrder(ledger_id=row.ledger_id, as_of=row.as_of, outcome=row.outcome)
