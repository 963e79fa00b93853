"""The task `decide`: whether the signals are worth a retraining, by the policy, the ledger and what else is known.

What is known beside the signals: the champion's place, the pause, earlier orders and what came of them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.sdk import Asset, AssetAlias, BaseNotifier, Context
from pydantic import JsonValue

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
from retraining.core.documents.document import format_time
from retraining.core.errors import ConflictError, ContractError
from retraining.core.monitoring import multivariate, orders, policy
from retraining.core.naming import dags, storage, vertex
from retraining.core.naming.run_keys import RunKey, stamp
from retraining.core.notification import notices
from retraining.core.planning import pauses, windows
from retraining.core.untyped import XCom
from retraining.hooks.limits import limited
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.lineage import LineageMixin
from retraining.operators.airflow.notification import run_of, settle, tell
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.monitoring.ledger import find_lost, find_results, last_by_hand, store_rows
from retraining.operators.monitoring.watch import load_spec
from retraining.operators.record.interventions import find_pause
from retraining.operators.record.ownership import own_monitor
from retraining.operators.record.run_record import Record

TABLE_WITHIN_S = 600.0
"""For the ledger's table, of which nothing waits."""
MONITOR_URI = "{{ (ti.xcom_pull(task_ids='measure') or {}).get('monitor_uri', '') }}"


class DecideRetrainingOperator(LineageMixin, CloudOperator):
    """Decide whether a retraining is due, write the ledger row, and order it by an asset event.

    The event goes through an `AssetAlias`: an asset among the outlets would fire with every success. People are told
    when it is out.

    Args:
        model: Name of the spec.
        monitor_uri: Folder of this monitor run's documents.

    Returns:
        `{outcome, because, cause, words, champion, ledger_uri, ledger_id}`.
    """

    lineage_steps = "monitor"
    template_fields = ("monitor_uri",)

    def __init__(self, *, model: str, monitor_uri: str = MONITOR_URI, **kwargs: Any) -> None:
        afterwards = [*(kwargs.pop("on_success_callback", None) or ()), NotifyOfLedger()]
        outlets = [AssetAlias(dags.asset_name(model))]
        super().__init__(**{"outlets": outlets, **kwargs, "on_success_callback": afterwards})
        self.model = model
        self.monitor_uri = monitor_uri

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read earlier rows and the signals, write one row, to the table too; give the event if it orders one."""
        if not self.monitor_uri:  # it is asked whatever became of the task before
            way_out = "Look at the log of measure, then clear it: this task follows"
            raise ContractError("measure", "it ended without signals", "signals to decide by", way_out)
        record = self.lineage_record = own_monitor(cloud, context, self.monitor_uri)
        signals = record.read_document(Signals)
        rules = policy.policy_of(load_spec(self.model))
        rows = ledger_rows(cloud, self.model, rules, signals.as_of)
        stored = record.find_document(Ledger)
        row = stored or record.write_once(self._decide(cloud, record, context, rules, rows))
        self.log.info(row.message)
        stands = stored is None or self._stands(cloud, stored)
        asked_by = f"{context['dag_run'].run_id}|{context['ti'].max_tries}"
        self._bring_table_up(cloud, [*rows, row], row.as_of - orders.reach(rules), asked_by)
        ledger_uri = record.uri(Ledger)
        if row.retrain_as_of is not None and stands:
            extra: dict[str, JsonValue] = {
                "as_of": format_time(row.retrain_as_of),
                "reason": row.message,
                "ledger_uri": ledger_uri,
                "cause": row.cause,
                "tune": row.outcome == "tune",
            }
            asset = Asset(name=dags.asset_name(self.model), uri=dags.asset_uri(self.model))
            # Again for a cleared task: the retraining finds its own run key and makes nothing twice.
            context["outlet_events"][AssetAlias(dags.asset_name(self.model))].add(asset, extra=extra)
        values = {
            "outcome": row.outcome if stands else "none",
            "because": row.reason,
            "cause": row.cause,
            "words": row.message,
        }
        champion = row.facts.champion if row.facts else None
        values["champion"] = champion.version_id if champion else None
        return {**values, "ledger_uri": ledger_uri, "ledger_id": row.ledger_id}

    def _decide(
        self, cloud: CloudPort, record: Record, context: Context, rules: LedgerPolicy, rows: Sequence[Ledger]
    ) -> Ledger:
        """Return the row, once no other monitor run can order something by what it has not seen.

        Raises:
            ConflictError: Another one has ordered something since; the next try sees it.
        """
        signals = record.read_document(Signals)
        ledger_id = storage.ledger_id(record.folder_uri)
        uri = storage.last_order_uri(cloud.settings.bucket, self.model)
        data, generation = cloud.artifacts.read_generation(uri)
        last = Ledger.parse(data, uri) if generation else None
        if last is not None and last.ledger_id == ledger_id:
            self._order(cloud, last, generation)
            return last  # an earlier try came so far
        earlier_orders = orders.all_orders(rows, last)
        old = remembered_rows(cloud, rules, signals, earlier_orders)
        earlier = EarlierRows(rows=rows, remembered=old, since=signals.as_of - orders.reach(rules), last_order=last)
        given, rows = self._given_time(context), earlier.all_rows
        facts = gather_facts(cloud, context, record, earlier).model_copy(update={"retrain_as_of": given})
        row = policy.decide(signals, rules, facts, rows, ledger_id=ledger_id, signals_uri=record.uri(Signals))
        row = policy.retrain_as_of(row, given)
        row = row.model_copy(update={"dag_run_id": str(context["dag_run"].run_id)})
        if row.outcome in orders.ORDERS:
            row = row.model_copy(update={"earlier_orders": earlier_orders})
            self._order(cloud, row, generation)
        return row

    def _stands(self, cloud: CloudPort, row: Ledger) -> bool:
        """Return whether a row that was stored before still orders what it says: not once another ordered something.

        Raises:
            ConflictError: Another one does right now; the next try sees what.
        """
        if row.outcome not in orders.ORDERS:
            return True
        uri = storage.last_order_uri(cloud.settings.bucket, self.model)
        data, generation = cloud.artifacts.read_generation(uri)
        if generation and Ledger.parse(data, uri).ledger_id != row.ledger_id:
            self.log.warning(
                "another monitor run has ordered something since this row was stored: it orders nothing now"
            )
            return False
        self._order(cloud, row, generation)
        return True

    def _order(self, cloud: CloudPort, row: Ledger, generation: int) -> None:
        """Make a row the last order, if it is still as it was read; again for one that is, so that others see it stand.

        Raises:
            ConflictError: Another monitor run was faster.
        """
        uri = storage.last_order_uri(cloud.settings.bucket, self.model)
        if cloud.artifacts.write_if(uri, row.to_bytes(), generation) is None:
            found = "an order of another monitor run"
            raise ConflictError(uri, found, "none since it was read", "The next try decides by what it ordered")

    def _bring_table_up(self, cloud: CloudPort, rows: Sequence[Ledger], since: datetime, asked_by: str) -> None:
        """Bring the ledger's table up to the documents; where that fails, the next decision does it.

        An order rests on its document: no event waits for BigQuery.
        """
        try:
            with limited(TABLE_WITHIN_S):
                store_rows(cloud, rows, since, asked_by)
        except Exception as error:  # whatever it is of, the event must go out
            self.log.exception(
                "the table of the ledger lacks rows (%s): the next decision adds them", type(error).__name__
            )

    @staticmethod
    def _given_time(context: Context) -> datetime | None:
        where, given = "Param retrain_as_of", context["params"]["retrain_as_of"]
        if not given:
            return None
        return windows.require_past(windows.parse_time(given, where), context["dag_run"].start_date, where)


@dataclass(frozen=True, kw_only=True)
class EarlierRows:
    """What the ledger has before a decision.

    Attributes:
        rows: All since a time.
        remembered: Orders of before that time which still matter.
        since: That time.
        last_order: The row that ordered something last, whichever monitor run's it is but this one's.
    """

    rows: Sequence[Ledger]
    remembered: Sequence[Ledger]
    since: datetime
    last_order: Ledger | None

    @property
    def all_rows(self) -> list[Ledger]:
        """Both, oldest first."""
        return [*self.remembered, *self.rows]


def gather_facts(cloud: CloudPort, context: Context, record: Record, earlier: EarlierRows) -> LedgerFacts:
    """Return what is known when a monitor run decides.

    Args:
        cloud: The hooks.
        context: Of the task.
        record: Of the monitor run.
        earlier: Rows of the ledger.
    """
    rows, remembered = earlier.all_rows, tuple(str(row.ledger_id) for row in earlier.remembered)
    signals = record.read_document(Signals)
    model = signals.model
    pause = find_pause(cloud, model, context)
    rollout = RolloutState(cloud, model).read_rollout()
    previous = cloud.registry.find_by_alias(model, vertex.PREVIOUS)
    champion = signals.champion
    serves = rollout if rollout and champion and rollout.version_id == champion.version_id else None
    found = find_results(cloud, context, model, rows, remembered)
    lost = find_lost(cloud, context, rows, earlier.last_order, found)
    return LedgerFacts(
        champion=champion,
        champion_since=_serving_since(serves, champion.run_key, signals.as_of) if champion else None,
        previous_version=previous.version_id if previous else None,
        paused=pauses.explain_pause(pause) if pause else None,
        results=found,
        by_rollback=serves is not None and serves.rollback is not None,
        last_by_hand=_by_hand_since_last_order(cloud, signals, earlier, orders.last_order(rows, lost)),
        last_order=_ledger_order(earlier.last_order),
        lost_orders=lost,
        remembered=remembered,
        classifier=multivariate.judge_classifier(
            load_spec(model),
            record.find_document(Multivariate),
            asked=record.find_document(MultivariateRequest) is not None,
        ),
    )


def _by_hand_since_last_order(
    cloud: CloudPort, signals: Signals, earlier: EarlierRows, ordered: datetime | None
) -> datetime | None:
    """Return when a person last started a retraining after the last order; of long ago by what earlier rows knew."""
    if ordered is None:
        return None
    looked_before = max((row.as_of for row in earlier.rows), default=earlier.since)
    since = max(ordered, min(earlier.since, looked_before))
    found = last_by_hand(cloud, signals.model, since, signals.as_of)
    known = (row.facts.last_by_hand for row in earlier.rows if row.facts)
    return max((time for time in (found, *known) if time is not None and time > ordered), default=None)


def remembered_rows(
    cloud: CloudPort, rules: LedgerPolicy, signals: Signals, known: Sequence[LedgerOrder]
) -> list[Ledger]:
    """Read the rows of orders of long ago that still matter; one that is gone is forgotten."""
    ids = orders.orders_to_remember(known, rules, signals.as_of, signals.champion)
    uris = [storage.ledger_uri(cloud.settings.bucket, signals.model, ledger_id) for ledger_id in ids]
    return [Ledger.parse(data, uri) for uri, data in cloud.artifacts.read_some(uris).items()]


def ledger_rows(cloud: CloudPort, model: str, rules: LedgerPolicy, as_of: datetime) -> list[Ledger]:
    """Read earlier ledger rows: as far back as orders matter, and as many windows as the policy looks at."""
    folder, since, until = storage.monitors_uri(cloud.settings.bucket, model), as_of - orders.reach(rules), stamp(as_of)
    uris = cloud.artifacts.list_uris(folder, start=stamp(since), end=until, suffix="/ledger.json")
    if len(uris) < rules.windows_of:  # a monitor that seldom runs
        uris = cloud.artifacts.list_uris(folder, end=until, suffix="/ledger.json")[-rules.windows_of :]
    return [Ledger.parse(data) for data in cloud.artifacts.read_many(uris)]


def _serving_since(rollout: Rollout | None, run_key: str, as_of: datetime) -> datetime:
    """Return since when the champion has all traffic; where that is not known, or after `as_of`, its data's time."""
    ends = [step.end for step in rollout.steps if step.end] if rollout else []
    since = max(ends, default=rollout.asked) if rollout else None
    return since if since is not None and since <= as_of else RunKey.parse(run_key).as_of


def _ledger_order(row: Ledger | None) -> LedgerOrder | None:
    if row is None or row.ledger_id is None:
        return None
    return LedgerOrder(ledger_id=row.ledger_id, as_of=row.as_of, outcome=row.outcome)


LOGGER = logging.getLogger(__name__)


class NotifyOfLedger(BaseNotifier):
    """An `on_success_callback` of a task with a `monitor_uri`: tells of the ledger's row in that folder.

    A task's events go out with its success. A mail server that takes its time, or a process that dies while it does,
    holds no retraining up, and nobody reads of one that was not ordered yet.
    """

    def notify(self, context: Context) -> None:
        """Tell, or mark as over what was told."""
        task: Any = context["task"]
        try:
            cloud = task.cloud()
            record = own_monitor(cloud, context, task.monitor_uri)
            row, signals = record.read_document(Ledger), record.find_document(Signals)
        except Exception as error:  # whatever it is: the task's own work is done
            LOGGER.warning("nobody was told: %s", type(error).__name__, exc_info=True)
            return
        uri, measured = record.uri(Ledger), signals.signals if signals else ()
        tell(lambda: cloud, context, lambda: notices.of_ledger(row, run_of(context), uri, measured), record.folder_uri)
        if notices.is_over(row):
            settle(lambda: cloud, row.model, str(context["ti"].dag_id), "drift", "budget")
