"""What people are told of the monitor's decision: once Airflow has the task's success, and with it the event."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import BaseNotifier, Context

from retraining.core.documents import Ledger, Signals
from retraining.core.notification import notices
from retraining.operators.airflow.notification import run_of, settle, tell
from retraining.operators.record.ownership import own_monitor

LOGGER = logging.getLogger(__name__)


class TellLedger(BaseNotifier):
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
