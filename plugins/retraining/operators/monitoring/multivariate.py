"""The task `multivariate`: a classifier tries to tell requests from training examples, when that is asked for."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.catalog.cost import batch_estimate, load_prices
from retraining.core.data.sql import Query
from retraining.core.documents import MultivariateRequest, Plan, Signals, Snapshot
from retraining.core.jobs.requests import JobRequest
from retraining.core.monitoring import multivariate
from retraining.core.naming import storage
from retraining.core.naming.run_keys import stamp
from retraining.core.settings import include_path
from retraining.core.spec.model import ModelSpec
from retraining.hooks.airflow_exceptions import AirflowSkipException
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import sleep_over_outages
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.monitoring.decision import MONITOR_URI
from retraining.operators.monitoring.watch import ByteLimit, load_spec
from retraining.operators.record.own_requests import own_requests
from retraining.operators.record.ownership import own_monitor
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)


class MeasureMultivariateOperator(VertexJobOperator):
    """Sample requests and training examples, and have a classifier trained exactly once; skipped when nobody asks.

    Args:
        model: Name of the spec.

    Returns:
        `{uri, sha256, job, seconds, spot_seconds}` of the document `multivariate`.
    """

    lineage_steps = "monitor"

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**{"job_request": request_multivariate, "run_uri": MONITOR_URI, **kwargs})
        self.model = model

    def open_record(self, cloud: CloudPort, context: Context) -> Record:
        """Look whose monitor run it is."""
        return own_monitor(cloud, context, self.run_uri)

    @sleep_over_outages
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Find, create, look, unless there is a reason not to.

        Raises:
            AirflowSkipException: There is; nothing was paid.
        """
        record = self.record(cloud, context)
        if record.find_document(MultivariateRequest) is None:
            spec, signals = _spec(cloud, self.model, record), record.read_document(Signals)
            asked = bool(context["params"]["multivariate"])
            lately = asked_lately(cloud, spec, record, signals.as_of)
            if reason := multivariate.reason_to_skip(spec, signals, asked=asked, lately=lately):
                raise AirflowSkipException(f"No classifier is trained: {reason}.")
        return super().look(cloud, context)

    def may_create(self, cloud: CloudPort, record: Record, job_request: JobRequest, context: Context) -> bool:
        """Say what it costs, and make the table that the job reads.

        Raises:
            AirflowSkipException: It would read more than `monitoring.max_gigabytes`.
            DataError: The champion's training examples are gone.
        """
        del job_request
        signals, plan = record.read_document(Signals), _champion_plan(cloud, record)
        query = _sample_query(cloud, record, plan)
        prices = load_prices(include_path())
        estimated = batch_estimate(multivariate.machines(), prices, plan.region) if prices else None
        price = f"{min(estimated.per_hour.values()):.2f} USD an hour" if estimated else "a price that is not known"
        LOGGER.info("It takes a machine of %s for some minutes", price)
        limit = ByteLimit(plan.spec.monitoring.max_gigabytes)
        if reason := limit.reason_to_refuse(cloud.warehouse, {"multivariate": query}):
            raise AirflowSkipException(f"No classifier is trained: {reason}.")
        ti: Any = context["ti"]
        asked_by = f"{ti.run_id}|{ti.max_tries}"
        environment = cloud.settings.environment
        job_id = multivariate.query_job_id(environment, plan.model, signals.as_of, asked_by)
        limit.run(cloud.warehouse, query, job_id, "multivariate")
        return True


def request_multivariate(cloud: CloudPort, record: Record) -> JobRequest:
    """Request the classifier of a monitor run."""
    return multivariate.job_request(_champion_plan(cloud, record), record.folder_uri, cloud.settings)


def asked_lately(cloud: CloudPort, spec: ModelSpec, record: Record, as_of: datetime) -> bool:
    """Return whether an earlier monitor run asked for a classifier less than `every_days` ago, whatever came of it."""
    every = spec.monitoring.multivariate.every_days
    if every is None:
        return False
    folder = storage.monitors_uri(cloud.settings.bucket, spec.name)
    start = stamp(as_of - timedelta(days=every) + timedelta(seconds=1))
    suffix = f"/{MultivariateRequest.kind_name()}.json"
    return any(uri < record.folder_uri for uri in cloud.artifacts.list_uris(folder, start=start, suffix=suffix))


def _sample_query(cloud: CloudPort, record: Record, plan: Plan) -> Query:
    signals = record.read_document(Signals)
    snapshot = Record(cloud.artifacts, plan.run_uri).read_document(Snapshot)
    rollout = RolloutState(cloud, plan.model).read_rollout()
    start = signals.as_of - timedelta(hours=signals.window_hours)
    own = own_requests(cloud.artifacts, cloud.settings.bucket, plan.model, start, signals.as_of)
    return multivariate.render_sample_sql(
        plan,
        snapshot,
        signals,
        multivariate.sample_table(plan, record.folder_uri),
        (*(rollout.smoke_requests if rollout else ()), *own),
        with_run_table=cloud.warehouse.table_schema(snapshot.table) is not None,
    )


def _champion_plan(cloud: CloudPort, record: Record) -> Plan:
    """Return the plan of the champion's run, with the spec's monitoring and account as they are now."""
    signals = record.read_document(Signals)
    if signals.champion is None:
        raise AirflowSkipException("No classifier is trained: there is no champion.")
    folder = storage.run_uri(cloud.settings.bucket, signals.model, signals.champion.run_key)
    plan = Record(cloud.artifacts, folder).read_document(Plan)
    now = load_spec(signals.model)
    changed = {"monitoring": now.monitoring, "service_account": now.service_account}
    return plan.model_copy(update={"spec": plan.spec.model_copy(update=changed)})


def _spec(cloud: CloudPort, model: str, record: Record) -> ModelSpec:
    """Return the champion's spec where there is one, else the file's."""
    if record.read_document(Signals).champion is None:
        return load_spec(model)
    return _champion_plan(cloud, record).spec
