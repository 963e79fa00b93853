"""Asking a person before a promoted version is deployed. Imported only by DAGs whose spec may want it.

In: the answer that Airflow itself resumes this task with: the option, and who chose it, by the login. Out:
`approval.json` in the run's record. XCom is only for people: whoever may write one, in the UI or in a task, is not who
was asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context

from retraining.core.documents import Approval, ApprovalAnswer, Checks, Decision, Evaluation, Plan
from retraining.core.errors import ConflictError
from retraining.core.naming import dags, vertex
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.notification import notices
from retraining.core.promotion import approvals
from retraining.core.promotion.deployments import reason_against
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.airflow.cloud_task import Connect, RunTask
from retraining.operators.airflow.links import shown_address
from retraining.operators.airflow.notification import TellNotice, run_of, settle
from retraining.operators.record.run_record import Record
from retraining.operators.report.page import show_page

APPROVE, REJECT = "Approve", "Reject"
# The standard provider's name for the time to answer within: before its release 1.13 `execution_timeout` stood for it.
WAIT = (
    "response_timeout"
    if "response_timeout" in inspect.signature(HITLOperator.__init__).parameters
    else "execution_timeout"
)


class RequestApprovalOperator(RunTask, HITLOperator):
    """Ask for approval, if the plan wants a person for this version and anything would be deployed.

    It answers itself otherwise: a task that is skipped would end the run as failed.

    Not the provider's `ApprovalOperator`: that one skips what follows, and a rejected run would have no
    `deployment.json` that says so.

    Args:
        answer_within: How long the task waits; no answer by then is a no.

    Returns:
        The approval, as `deployment.json` has it; for people.
    """

    template_fields = (*HITLOperator.template_fields, *RunTask.template_fields)

    def __init__(self, *, answer_within: timedelta, **kwargs: Any) -> None:
        super().__init__(**{"options": [APPROVE, REJECT], "defaults": [REJECT], WAIT: answer_within, **kwargs})
        self.answer_within = answer_within

    @fail_for_good
    def execute(self, context: Context) -> Any:
        """Answer it here, or ask and wait without a worker slot."""
        cloud = self.cloud()
        record = self.record(cloud, context)
        plan = record.read_document(Plan)
        champion = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
        decision = record.read_document(Decision)
        if reason := reason_against(plan, decision, champion):
            return self._given(cloud, record, context, approvals.in_vain(reason))
        warned = approvals.warnings(decision, record.read_document(Checks))
        if reason := approvals.reason_not_to_ask(plan, champion, warned):
            return self._given(cloud, record, context, approvals.not_asked(reason))
        # What an earlier try was answered counts no more from here on, also when this one is marked as a success.
        _put(cloud, record, _stored(record, context, None))
        until = cloud.clock.now() + self.answer_within
        page = self._show(lambda: cloud, context, f"{APPROVE} or {REJECT}, until {until:%Y-%m-%d %H:%M} UTC")
        self.body = approvals.question(plan, decision, record.find_document(Evaluation), warned, page)
        notice = notices.of_approval(plan, warned, run_of(context), self.task_id, self.answer_within)
        self.notifiers = [TellNotice(notice=notice, run_uri=self.run_uri, cloud=lambda: cloud)]
        return super().execute(context)

    @fail_for_good
    def execute_complete(self, context: Context, event: XCom) -> XCom:
        """Take the answer, if it is one to this try's question.

        Raises:
            ConflictError: Another try has asked since.
        """
        answer = super().execute_complete(context, event)
        cloud = self.cloud()
        record = self.record(cloud, context)
        user = answer.get("responded_by_user")
        person = (user or {}).get("name") if isinstance(user, Mapping) else None
        approved = answer["chosen_options"] == [APPROVE]
        approval = approvals.answer(approved=approved, person=person, time=answer.get("responded_at"))
        stored = _stored(record, context, approval)
        uri = record.uri(ApprovalAnswer)
        data, generation = cloud.artifacts.read_generation(uri)
        approvals.require_asked(ApprovalAnswer.parse(data, uri) if generation else None, stored, uri)
        if cloud.artifacts.write_if(uri, stored.to_bytes(), generation) is None:
            raise ConflictError(uri, "written meanwhile", "this try's question", "Answer the newest question")
        model = dags.find_model_of_dag(context["ti"].dag_id)
        self._show(self.cloud, context)
        settle(self.cloud, model, ObjectAddress.parse(self.run_uri).name, "approval")
        self.log.info(approval.words)
        return approval.model_dump(mode="json")

    def _show(self, connect: Connect, context: Context, asked: str = "") -> str:
        """Make the run's page as it is now; return its address, or nothing: the question is asked all the same."""
        page_uri = show_page(lambda: self.record(connect(), context), connect, context, asked)
        return shown_address(page_uri) if page_uri else ""

    def _given(self, cloud: CloudPort, record: Record, context: Context, approval: Approval) -> XCom:
        """Write down an answer that no person gives."""
        _put(cloud, record, _stored(record, context, approval))
        self.log.info(approval.words)
        return approval.model_dump(mode="json")


def _stored(record: Record, context: Context, approval: Approval | None) -> ApprovalAnswer:
    ti: Any = context["ti"]
    return approvals.stored_answer(
        record.read_document(Plan), dag_run=(ti.dag_id, ti.run_id), task_try=str(ti.id), approval=approval
    )


def _put(cloud: CloudPort, record: Record, stored: ApprovalAnswer) -> None:
    cloud.artifacts.overwrite(record.uri(ApprovalAnswer), stored.to_bytes(), "application/json")
