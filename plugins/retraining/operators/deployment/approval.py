"""Asking a person before a promoted version is deployed. Imported only by DAGs whose spec may want it.

In: the answer that Airflow itself resumes this task with: the option, and who chose it, by the login. Out:
`approval.json` in the run's record. XCom is only for people: whoever may write one, in the UI or in a task, is not who
was asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NoReturn, cast

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.sdk import BaseNotifier, Context

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
        asks = _question(record, context)
        last, generation = _last(cloud, record)
        if last is not None and approvals.stands(last, asks):
            if last.approval is not None:
                return self._taken(context, last.approval)
            _put_over(cloud, record, asks, generation)
            self._wait_on(context, cloud.clock.now() + self.answer_within)
        # What was answered before counts no more from here on, also when this try is marked as a success.
        generation = _put_over(cloud, record, _stored(record, context), generation)
        until = cloud.clock.now() + self.answer_within
        page = self._show(lambda: cloud, context, f"{APPROVE} or {REJECT}, until {until:%Y-%m-%d %H:%M} UTC")
        self.body = approvals.question(plan, decision, record.find_document(Evaluation), warned, page)
        notice = notices.of_approval(plan, warned, run_of(context), self.task_id, self.answer_within)
        notify = TellNotice(notice=notice, run_uri=self.run_uri, cloud=lambda: cloud)
        # Airflow calls them when it holds the question, and no earlier answer.
        self.notifiers = [_Held(lambda: _put_over(cloud, record, asks, generation)), notify]
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
        last, generation = _last(cloud, record)
        asked = approvals.require_asked(last, _question(record, context), record.uri(ApprovalAnswer))
        _put_over(cloud, record, asked.model_copy(update={"approval": approval}), generation)
        return self._taken(context, approval)

    def _wait_on(self, context: Context, until: datetime) -> NoReturn:
        """Wait for the answer to an earlier try's question, or take it: to ask again would delete it in Airflow."""
        self.log.info("An earlier try has asked; its question stands, and so does an answer to it")
        trigger = HITLTrigger(
            ti_id=context["ti"].id,
            options=self.options,
            defaults=self.defaults,
            params=self.serialized_params,
            multiple=self.multiple,
            timeout_datetime=until,
        )
        # Airflow itself ends it where no triggerer runs.
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.answer_within + timedelta(minutes=5))

    def _taken(self, context: Context, approval: Approval) -> XCom:
        """Show an answer that is written down."""
        model = dags.find_model_of_dag(context["ti"].dag_id)
        self._show(self.cloud, context)
        settle(self.cloud, model, ObjectAddress.parse(self.run_uri).name, "approval")
        self.log.info(approval.message)
        return approval.model_dump(mode="json")

    def _show(self, connect: Connect, context: Context, asked: str = "") -> str:
        """Make the run's page as it is now; return its address, or nothing: the question is asked all the same."""
        page_uri = show_page(lambda: self.record(connect(), context), connect, context, asked)
        return shown_address(page_uri) if page_uri else ""

    def _given(self, cloud: CloudPort, record: Record, context: Context, approval: Approval) -> XCom:
        """Write down an answer that no person gives."""
        stored = _stored(record, context, approval)
        cloud.artifacts.overwrite(record.uri(ApprovalAnswer), stored.to_bytes(), "application/json")
        self.log.info(approval.message)
        return approval.model_dump(mode="json")


class _Held(BaseNotifier):
    """Writes down that Airflow holds the question.

    Args:
        write: Does it.
    """

    def __init__(self, write: Callable[[], object]) -> None:
        super().__init__()
        self._write = write

    def notify(self, context: Context) -> None:
        """Write."""
        del context
        self._write()


def _stored(record: Record, context: Context, approval: Approval | None = None) -> ApprovalAnswer:
    """Return what this try has to write down; no approval: nobody has answered."""
    plan, ti = record.read_document(Plan), cast("Any", context["ti"])
    return ApprovalAnswer(
        model=plan.model,
        run_key=plan.run_key,
        dag_id=ti.dag_id,
        dag_run_id=ti.run_id,
        task_try=str(ti.id),
        approval=approval,
        generation=ti.max_tries,
    )


def _question(record: Record, context: Context) -> ApprovalAnswer:
    """Return the same with the question as it is asked now."""
    decision, checks = record.read_document(Decision), record.read_document(Checks)
    question = approvals.question_digest(decision, approvals.warnings(decision, checks))
    return _stored(record, context).model_copy(update={"question": question})


def _last(cloud: CloudPort, record: Record) -> tuple[ApprovalAnswer | None, int]:
    """Return the last question, or its answer, and the object's generation."""
    uri = record.uri(ApprovalAnswer)
    data, generation = cloud.artifacts.read_generation(uri)
    return (ApprovalAnswer.parse(data, uri) if generation else None), generation


def _put_over(cloud: CloudPort, record: Record, stored: ApprovalAnswer, generation: int) -> int:
    """Write over what was read, of this generation; return the new one.

    Raises:
        ConflictError: It is there no more.
    """
    uri = record.uri(ApprovalAnswer)
    written = cloud.artifacts.write_if(uri, stored.to_bytes(), generation)
    if written is None:
        raise ConflictError(uri, "written meanwhile", "this try's question", "Answer the newest question")
    return written
