"""What every task does around its own work; a subclass fills one method.

| base | a subclass fills | what is around it |
|---|---|---|
| `CloudOperator` | `act` | the cloud is made; what must not be retried fails for good; the duration goes to XCom |
| `CloudSensor` | `look` | the same, at each poke, without a worker slot between two of them; no duration |
| `RunTask`, beside one of them | | the argument `run_uri`, `record`, and what of it goes to OpenLineage |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow.sdk import BaseOperator, BaseSensorOperator, Context, PokeReturnValue

from retraining.core.naming.vertex import caller_names
from retraining.core.placement import Caller
from retraining.hooks.cloud import Cloud
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.airflow.lineage import LineageMixin
from retraining.operators.record.ownership import own_run
from retraining.operators.record.run_record import RUN_URI, Record

SECONDS_KEY = "seconds"
Connect = Callable[[], CloudPort]


class CloudTask(BaseOperator):
    """A task that asks the cloud, when it runs and not before.

    Args:
        cloud: Makes what the task asks: a class, or a function at the top of a module, so that the DAG can be stored.
            Never called while a DAG is parsed. By default the cloud of the settings and the Airflow connection.
        labels: Of the model's file: what the task makes gets them, and its statements on BigQuery.
    """

    def __init__(self, *, cloud: Connect = Cloud, labels: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cloud = cloud
        self.labels = dict(labels or {})

    def connect(self, context: Context) -> CloudPort:
        """Return the cloud, which knows who asks."""
        cloud = self.cloud()
        cloud.caller = Caller(labels=self.labels, names=caller_names(context["ti"].dag_id, self.task_id))
        return cloud


class CloudOperator(CloudTask):
    """A task that does its work in one go."""

    @fail_for_good
    def execute(self, context: Context) -> Any:
        """Do the work; leave its duration in XCom, for the report."""
        started = time.monotonic()
        result = self.act(self.connect(context), context)
        context["ti"].xcom_push(key=SECONDS_KEY, value=round(time.monotonic() - started, 3))
        return result

    def act(self, cloud: CloudPort, context: Context) -> Any:
        """Read the record, ask the cloud, ask the core, write one document; return a small JSON value for XCom.

        It may be killed at any point and is called again then: what an earlier try wrote stands. A `RetrainingError`
        fails the task for good, but for `JobError` and `ConflictError`, which a retry may mend.
        """
        raise NotImplementedError


class CloudSensor(CloudTask, BaseSensorOperator):
    """A task that waits for something outside; holds a worker slot only while it looks."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"mode": "reschedule", **kwargs})

    @fail_for_good
    def execute(self, context: Context) -> Any:
        """Look once, and again after the setting's interval: a poke is a call of this, in mode `reschedule`."""
        self._poked = self.connect(context)
        self.poke_interval = self._poked.settings.wake_interval_s
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Look, with the cloud of this poke."""
        return self.look(self._poked, context)

    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Bring what is waited for one step on; return False to be called again, or the value for XCom.

        Each call may be in another process, on another machine, after a kill: what is known is on storage. Decorated
        with `sleep_over_outages`, a call that meets an outage counts as one that found nothing new.
        """
        raise NotImplementedError


class RunTask(LineageMixin, CloudTask):
    """A task that works in a run's folder of documents.

    Args:
        run_uri: That folder.
    """

    template_fields: Sequence[str] = ("run_uri",)

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run_uri = run_uri

    def record(self, cloud: CloudPort, context: Context) -> Record:
        """Return the run's documents.

        Raises:
            ContractError: The folder is another's, or its plan names other places or images than the settings.
        """
        self.lineage_record = self.open_record(cloud, context)
        return self.lineage_record

    def open_record(self, cloud: CloudPort, context: Context) -> Record:
        """Look whose folder it is; for a folder of another kind a subclass looks."""
        return own_run(cloud, context, self.run_uri)
