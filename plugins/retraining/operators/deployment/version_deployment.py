"""Bringing a promoted version to the endpoint, or writing down why not."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context, PokeReturnValue

from retraining.core.documents import Approval, ApprovalAnswer, Decision, Deployment, Plan, Registration, Report
from retraining.core.naming import dags, pages, vertex
from retraining.core.notification import notices
from retraining.core.promotion import approvals, ramp, rollouts
from retraining.core.promotion.deployments import nothing_deployed, reason_against
from retraining.hooks.ports import CloudPort
from retraining.hooks.session import is_outage
from retraining.operators.airflow.boundary import sleep_over
from retraining.operators.airflow.cloud_task import CloudSensor, RunTask
from retraining.operators.airflow.links import EndpointLink, RollBackLink, dag_address, push_link
from retraining.operators.airflow.notification import run_of, tell
from retraining.operators.deployment.registration import write_card
from retraining.operators.deployment.rollout import RolloutSteps
from retraining.operators.deployment.rollout_end import end_recorded, settle_another
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState
from retraining.operators.jobs.identity import job_identity
from retraining.operators.record.interventions import gone_back_since
from retraining.operators.record.run_record import Record
from retraining.operators.report.page import show_page


class DeployModelOperator(RunTask, CloudSensor):
    """Deploy the run's version if it was promoted: machines first, then traffic, then the alias `champion`.

    Ours instead of the provider's `DeployModelOperator`: that one holds a worker slot for the 10 to 30 minutes of a
    real deployment, and a retry deploys a second time.

    Args:
        approval_task_id: Task that leaves `approval.json`; None: nobody is asked. Its XCom is for people, and never
            believed: whoever may write one could approve by it.

    Returns:
        `{deployed, words}`.
    """

    operator_extra_links = (EndpointLink(), RollBackLink())
    ui_color = "#d7e8f7"

    def __init__(self, *, approval_task_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.approval_task_id = approval_task_id

    @sleep_over(is_outage)
    def look(self, cloud: CloudPort, context: Context) -> PokeReturnValue | bool:
        """Take the recorded deployment, or write down why there is none, or go on with it."""
        state = RolloutState(cloud, dags.model_of_dag(context["ti"].dag_id))
        # Before all else: once its run has been torn down, what this process read here allows nothing any more.
        state.read_rollout()
        record = self.record(cloud, context)
        plan = record.read_document(Plan)
        try:
            done = record.find_document(Deployment) or self._go_on(context, cloud, record, state)
        except OvertakenError as error:
            self.log.warning("%s", error)
            done = None
        if done is None or (done.deployed and done.previous_version_name):
            push_link(self, context, RollBackLink, dag_address(dags.rollback_dag_id(state.model)))
        if done is None:
            if state.found is not None and ramp.open_step(state.found.steps):
                self.poke_interval = max(self.poke_interval, ramp.LOOK_EVERY_S)
            return False
        if done.deployed:
            end_recorded(state, plan.run_key)
        if registration := record.find_document(Registration):
            write_card(cloud, record, registration)
        if done.endpoint_name:
            push_link(self, context, EndpointLink, pages.endpoint_address(done.endpoint_name))
        self.log.info(done.message)
        tell(lambda: cloud, context, lambda: notices.of_deployment(plan, done, run_of(context)), self.run_uri)
        return PokeReturnValue(True, {"deployed": done.deployed, "words": done.message})

    def _go_on(self, context: Context, cloud: CloudPort, record: Record, state: RolloutState) -> Deployment | None:
        """Bring the deployment as far as it comes now, and write down how it ended; None: the next poke goes on."""
        approval = self._approval(context, record)
        ended = self._advance(context, cloud, record, state, approval)
        return record.write_once(ended.model_copy(update={"approval": approval})) if ended else None

    def _advance(
        self, context: Context, cloud: CloudPort, record: Record, state: RolloutState, approval: Approval | None
    ) -> Deployment | None:
        plan, decision = record.read_document(Plan), record.read_document(Decision)
        rollout = state.found  # read before the champion: whoever changes that writes there first
        if decision.verdict == "promote" and rollouts.is_another_runs(rollout, plan.run_key):
            settle_another(cloud, state)
            return None
        if rollout is not None and rollouts.is_refused(rollout, plan.run_key):
            return nothing_deployed(plan, rollout.reason, rollout.steps, rollout.staging)
        champion = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
        reason = reason_against(plan, decision, champion) or approvals.reason_of_person(plan, approval)
        if registration := record.find_document(Registration):
            reason = rollouts.reason_of_rollback(rollout, registration, champion) or reason
        if reason and not rollouts.is_open(rollout):
            return nothing_deployed(plan, reason)
        if not rollouts.is_open(rollout) and (warning := gone_back_since(cloud, plan.model, context)):
            self.log.warning(warning)
            show_page(lambda: record, lambda: cloud, context)
        steps = RolloutSteps(cloud, plan, record.read_document(Registration), record.read_document(Report), state)
        return steps.advance_rollout(champion, job_identity(context, plan.run_key).dag_run)

    def _approval(self, context: Context, record: Record) -> Approval | None:
        ti: Any = context["ti"]
        stored = record.find_document(ApprovalAnswer) if self.approval_task_id else None
        return approvals.approval_for(stored, (ti.dag_id, ti.run_id))
