"""What every watcher of a monitor run is given, what it gives back, and what its questions to BigQuery may read.

A watcher is a function from `Watch` to `Seen`: it asks the cloud, asks core, and writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from retraining.core.data.sql import Query
from retraining.core.documents import Evaluation, Plan, Signal, Statistics
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.naming import bigquery, storage
from retraining.core.promotion.versions import Version
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import spec_path
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort, WarehousePort
from retraining.hooks.warehouse import Answer
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.record.own_requests import asked_by_monitor, own_requests
from retraining.operators.record.run_record import Record


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What the champion's run left: what it was trained on, and what it answered on its test days.

    `taken_as_of` is of the training in another stage, where the run took its version over from there.
    """

    statistics: Statistics
    statistics_uri: str
    evaluation: Evaluation | None
    taken_as_of: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Watch:
    """One monitor run: of which model, until when, and what serves.

    `spec` names the columns that the champion was trained on. `log_table` has the endpoint's requests, or the rows of
    scorings where the model has no endpoint; it is None until one was logged.
    `asked_by` tells a wanted repetition of a question from a retry. `record` is the monitor run's.
    """

    cloud: CloudPort
    record: Record
    spec: ModelSpec
    as_of: datetime
    asked_by: str
    endpoint: Endpoint | None
    champion: Version | None
    baseline: Baseline | None
    log_table: str | None

    def job_id(self, question: str = "") -> str:
        """Return the id of this run's question to BigQuery; each has its own."""
        asked_by = f"{self.asked_by}|{question}" if question else self.asked_by
        return bigquery.monitor_job_id(self.cloud.settings.environment, self.spec.name, self.as_of, asked_by)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a watcher saw, the instances in the window's log if it counted them, and what BigQuery read for it."""

    signals: tuple[Signal, ...]
    requests: int = 0
    bytes_read: int = 0


def begin_watch(
    cloud: CloudPort, record: Record, spec: ModelSpec, champion: Version | None, as_of: datetime, asked_by: str
) -> Watch:
    """Return what a monitor run looks at, as the cloud stands now."""
    settings = cloud.settings
    place = settings.project, settings.dataset, spec.name
    table = bigquery.request_log_table(*place) if spec.deployment.endpoint else bigquery.scoring_log_table(*place)
    baseline = None
    if champion is not None:
        run = Record(cloud.artifacts, storage.run_uri(settings.bucket, spec.name, champion.run_key))
        plan = run.find_document(Plan)
        taken = plan.taken_from if plan else None
        baseline = Baseline(
            statistics=run.read_document(Statistics),
            statistics_uri=run.uri(Statistics),
            evaluation=run.find_document(Evaluation),
            taken_as_of=taken.as_of if taken else None,
        )
        if spec.patterns:  # which columns they named when the champion was trained
            spec = spec.model_copy(update={"entries": run.read_document(Plan).spec.entries})
    return Watch(
        cloud=cloud,
        record=record,
        spec=spec,
        as_of=as_of,
        asked_by=asked_by,
        endpoint=cloud.endpoints.get(spec.name),
        champion=champion,
        baseline=baseline,
        # The endpoint makes the table with the first request it logs, a model without one with its first scoring.
        log_table=table if cloud.warehouse.table_schema(table) is not None else None,
    )


def load_spec(model: str) -> ModelSpec:
    """Read the spec of a model from the include folder.

    Raises:
        SpecError: The file is wrong.
    """
    return files.load_spec(spec_path(include_path(), model))


def unasked_for(watch: Watch, start: datetime, end: datetime) -> tuple[SmokeRequest, ...]:
    """Return what no application asked in some time: the requests of smoke tests, and the monitor's own."""
    rollout = RolloutState(watch.cloud, watch.spec.name).read_rollout()
    own = own_requests(watch.cloud.artifacts, watch.cloud.settings.bucket, watch.spec.name, start, end)
    return (*(rollout.smoke_requests if rollout else ()), *own)


def sent_by_monitor(watch: Watch, start: datetime, end: datetime) -> int:
    """Return how many requests monitor runs were to send in some time."""
    asked = asked_by_monitor(watch.cloud.artifacts, watch.cloud.settings.bucket, watch.spec.name, start, end)
    return sum(each.predictions // each.asked.instances for each in asked)


LOGGER = logging.getLogger(__name__)
GIGABYTE = 10**9
MIN_BYTES = 10**7
"""BigQuery bills no less, and refuses a limit below it."""


@dataclass(frozen=True)
class ByteLimit:
    """So many gigabytes, by the spec's field of this name."""

    gigabytes: float
    field: str = "monitoring.max_gigabytes"

    def reason_to_refuse(self, warehouse: WarehousePort, queries: Mapping[str, Query]) -> str | None:
        """Return why queries, by what they are, may not run: together they would read too much; None: they may."""
        bytes_read = sum(warehouse.dry_run(query, where).bytes_processed for where, query in queries.items())
        found = (
            f"BigQuery would read {bytes_read / GIGABYTE:.3f} GB, at most {self.gigabytes:g} may be read ({self.field})"
        )
        LOGGER.info("%s: %s", ", ".join(queries), found)
        return found if bytes_read > self.gigabytes * GIGABYTE else None

    def run(self, warehouse: WarehousePort, query: Query, job_id: str, where: str) -> Answer:
        """Run one of them, or join the job of this id; BigQuery itself refuses more."""
        max_bytes = max(round(self.gigabytes * GIGABYTE), MIN_BYTES)
        return warehouse.run_query(query, job_id, where, max_bytes)
