"""The operators that have something done on Vertex AI, and end what nobody waits for any more.

Ours instead of the provider's `CreateCustomJobOperator`: that one makes a second paid job after a worker's death or one
failed poll, leaves the job running when the task is cleared, and shows none of its lines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from airflow.sdk import BaseSensorOperator, Context, PokeReturnValue

from retraining.core.data import leakage
from retraining.core.documents import Checks, EvaluateRequest, Manifest, Plan, Snapshot, Tuning
from retraining.core.jobs import requests
from retraining.core.jobs.requests import Order
from retraining.core.naming import dags, storage, vertex
from retraining.core.promotion import gates
from retraining.hooks.cloud import Cloud
from retraining.hooks.vertex_jobs import Job, JobType
from retraining.operators.claimed_jobs import cancel_all
from retraining.operators.duel import require_models
from retraining.operators.edge import fail_for_good, sleep_over_outages
from retraining.operators.job_identity import job_identity
from retraining.operators.leases import spans_are_there
from retraining.operators.links import JobLink, JobLogsLink, job_address, job_logs_address, push_link
from retraining.operators.ownership import own_run
from retraining.operators.reconcile import JobOrder, Reconciler
from retraining.operators.record import RUN_URI, Record
from retraining.operators.rollout_end import settle_run

LOGGER = logging.getLogger(__name__)
SETTLE_TIMEOUT_S = 2 * 3600.0  # machines come within minutes, or never
OrderSource = Callable[[Cloud, Record], Order]


def order_export(cloud: Cloud, record: Record) -> Order:
    """The export of the run's missing spans, without the days that the checks leave out."""
    return requests.export_order(
        record.read(Plan),
        record.read(Snapshot),
        cloud.settings.service_account,
        quarantined=record.read(Checks).quarantined,
    )


def order_training(cloud: Cloud, record: Record) -> Order:
    """The training of the challenger, with the hyperparameters that `tune` settled on."""
    return requests.train_order(record.read(Plan), record.find(Tuning), cloud.settings.service_account)


def order_evaluation(cloud: Cloud, record: Record) -> Order:
    """The duel. Whom the challenger meets is asked once: later wakes go by the stored request."""
    plan = record.read(Plan)
    champion, trained_before, proof = None, None, leakage.Proof()
    if record.find(EvaluateRequest) is None:
        version = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
        if version is not None:
            champion = gates.champion_of(
                version.version_name, version.version_id, version.artifact_uri, version.run_key
            )
            made = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
            its_plan = made.find(Plan)
            trained_before = its_plan.window.test_start if its_plan else None
            proof = leakage.proof(made.find(Manifest), made.uri(Manifest), record.read(Snapshot))
            if proof.missing:
                LOGGER.warning("nothing proves that the champion has not seen this test data: %s", proof.missing)
    order = requests.evaluate_order(
        plan,
        champion,
        cloud.settings.service_account,
        champion_trained_before=trained_before,
        proof=proof,
    )
    require_models(cloud, record, record.find(EvaluateRequest) or cast("EvaluateRequest", order.request))
    return order


class VertexJobOperator(BaseSensorOperator):
    """Have a job done exactly once, and show its lines in the task's log.

    Holds a worker slot only while it looks. A retry, a crash or a restarted scheduler finds the same job again; a
    cleared task ends its old job and makes a new one, unless the result is stored.

    There is no `on_kill`: a task's process is also stopped when its heartbeats fail, when a restarted scheduler resets
    it, or when its worker is shut down, and then the next try wants the job. `cancel_jobs` ends the jobs of a failed
    run, a cleared task's next wake those of its older generations, `maintain` the rest.

    Args:
        order: Makes the order from the run's record: `order_export`, `order_training`, `order_evaluation`.
        custom_job: A whole `CustomJob` in proto-JSON instead, templated.
        run_uri: Folder of the run's record.

    Returns:
        `{uri, sha256, job, seconds, spot_seconds}` of the result: the last two over all jobs that the task needed. All
        three are None when another run had left it. Of a `custom_job` `{job, state, seconds}`.
    """

    template_fields = ("run_uri", "custom_job")
    operator_extra_links = (JobLink(), JobLogsLink())
    ui_color = "#d7e8f7"

    def __init__(
        self,
        *,
        order: OrderSource | None = None,
        custom_job: dict[str, Any] | None = None,
        run_uri: str = RUN_URI,
        **kwargs: Any,  # noqa: ANN401 - BaseSensorOperator's
    ) -> None:
        super().__init__(**{"mode": "reschedule", **kwargs})
        if (order is None) == (custom_job is None):
            raise ValueError(f"{self.task_id}: expected order or custom_job, and not both")
        self.order = order
        self.custom_job = custom_job
        self.run_uri = run_uri if order else ""
        self._cloud: Cloud | None = None

    @fail_for_good
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - what poke gives
        """One wake."""
        self._cloud = Cloud()
        self.poke_interval = self._cloud.settings.wake_interval_s
        return super().execute(context)

    @sleep_over_outages
    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Find, create, look: see `reconcile`."""
        cloud = self._cloud = self._cloud or Cloud()
        order = self._job_order(cloud, context)
        settings = cloud.settings

        def on_job(job: Job) -> None:
            push_link(self, context, JobLink, job_address(settings.project, settings.region, job.job_id))
            push_link(self, context, JobLogsLink, job_logs_address(settings.project, job.job_id))

        result = Reconciler(cloud, order, job_identity(context, order.custom_job), on_job).run()
        return False if result is None else PokeReturnValue(True, result)

    def _job_order(self, cloud: Cloud, context: Context) -> JobOrder:
        if self.order is None:
            return JobOrder(custom_job=self.custom_job or {})
        record = own_run(cloud, context, self.run_uri)
        wanted = self.order(cloud, record)
        return JobOrder(
            custom_job=wanted.custom_job,
            request=wanted.request,
            request_uri=wanted.request_uri,
            result_uri=wanted.result_uri,
            result_kind=wanted.result_kind,
            artifact_uri=wanted.artifact_uri,
            before_create=partial(spans_are_there, cloud, record, wanted.request, context),
        )


class CancelJobsOperator(BaseSensorOperator):
    """Cancel what this DAG run left running: jobs whose task was failed or cleared while it slept, and a deployment.

    A deployment that was not done is taken back: its machines cost as much without traffic. That may take as long as
    they need to come, so it waits as `deploy` does, without a worker slot; so too for the job of a create without an
    answer.

    Args:
        tuning: Whether the run may have left a tuning job too.

    Returns:
        Names of the jobs that its last wake cancelled.
    """

    def __init__(self, *, tuning: bool = False, **kwargs: Any) -> None:  # noqa: ANN401 - BaseSensorOperator's
        super().__init__(**{"mode": "reschedule", "timeout": SETTLE_TIMEOUT_S, **kwargs})
        self.tuning = tuning

    @fail_for_good
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - what poke gives
        """One wake."""
        self.poke_interval = Cloud().settings.wake_interval_s
        return super().execute(context)

    @sleep_over_outages
    def poke(self, context: Context) -> PokeReturnValue:
        """Cancel what is found; then settle."""
        ti, cloud = context["ti"], Cloud()
        label = vertex.dag_run_label(ti.dag_id, ti.run_id)
        types = tuple(JobType) if self.tuning else (JobType.CUSTOM,)
        left, certain = cancel_all(cloud, label, types)
        settled = settle_run(cloud, dags.model_of_dag(ti.dag_id), label)
        return PokeReturnValue(settled and certain, left)
