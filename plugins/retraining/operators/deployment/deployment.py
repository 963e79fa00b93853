"""Bringing a promoted version to the endpoint, or writing down why not."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseSensorOperator, Context, PokeReturnValue

from retraining.core.documents import Decision, Deployment, Plan, Registration, Report
from retraining.core.naming import console, vertex
from retraining.core.promotion import rollouts
from retraining.core.promotion.deployments import nothing_deployed, reason_against, reason_of_person
from retraining.hooks.cloud import Cloud
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.airflow.links import EndpointLink, push_link
from retraining.operators.deployment.rollout import RolloutSteps
from retraining.operators.deployment.rollout_end import end_recorded, settle
from retraining.operators.deployment.rollout_state import OvertakenError, RolloutState
from retraining.operators.jobs.identity import job_identity
from retraining.operators.record.ownership import own_run
from retraining.operators.record.run_record import RUN_URI, Record


class DeployModelOperator(BaseSensorOperator):
    """Deploy the run's version if it was promoted: machines first, then traffic, then the alias `champion`.

    Ours instead of the provider's `DeployModelOperator`: that one holds a worker slot for the 10 to 30 minutes of a
    real deployment, and a retry deploys a second time.

    Args:
        approval_task_id: Task whose XCom says whether a person approved; None: nobody is asked.
        run_uri: Folder of the run's record.

    Returns:
        `{deployed, words}`.
    """

    template_fields = ("run_uri",)
    operator_extra_links = (EndpointLink(),)
    ui_color = "#d7e8f7"

    def __init__(
        self,
        *,
        approval_task_id: str | None = None,
        run_uri: str = RUN_URI,
        **kwargs: Any,  # noqa: ANN401 - BaseSensorOperator's
    ) -> None:
        super().__init__(**{"mode": "reschedule", **kwargs})
        self.approval_task_id = approval_task_id
        self.run_uri = run_uri

    @fail_for_good
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - what poke gives
        """One wake."""
        self.poke_interval = Cloud().settings.wake_interval_s
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue | bool:
        """Take the recorded deployment, or write down why there is none, or go on with it."""
        cloud = Cloud()
        record = own_run(cloud, context, self.run_uri)
        plan = record.read(Plan)
        state = RolloutState(cloud, plan.model)
        try:
            done = record.find(Deployment) or self._go_on(context, cloud, record, state)
        except OvertakenError as error:
            self.log.warning("%s", error)
            done = None
        if done is None:
            return False
        if done.deployed:
            end_recorded(state, plan.run_key)
        if done.endpoint_name:
            push_link(self, context, EndpointLink, console.endpoint_address(done.endpoint_name))
        self.log.info(done.words)
        return PokeReturnValue(True, {"deployed": done.deployed, "words": done.words})

    def _go_on(self, context: Context, cloud: Cloud, record: Record, state: RolloutState) -> Deployment | None:
        """The deployment as far as it comes now; None: the next wake goes on."""
        plan, decision = record.read(Plan), record.read(Decision)
        rollout = state.read()  # before the champion: whoever changes that writes here first
        if decision.verdict == "promote" and rollouts.is_another_runs(rollout, plan.run_key):
            self.log.warning("another run left its deployment open: it is settled first")
            settle(cloud, state)
            return None
        champion = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
        denied = self._reason_of_person(context)
        if not rollouts.is_open(rollout) and (reason := denied or reason_against(plan, decision, champion)):
            return record.write_once(nothing_deployed(plan, reason))
        steps = RolloutSteps(cloud, plan, record.read(Registration), record.read(Report), state)
        made = steps.run(champion, job_identity(context, plan.run_key).dag_run)
        return None if made is None else record.write_once(made)

    def _reason_of_person(self, context: Context) -> str | None:
        if self.approval_task_id is None:
            return None
        return reason_of_person(context["ti"].xcom_pull(task_ids=self.approval_task_id))
