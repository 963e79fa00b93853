"""Asking a person before a promoted version is deployed. Imported only by DAGs whose spec wants it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context

from retraining.core.documents import Decision, Plan
from retraining.core.naming import vertex
from retraining.core.promotion.deployments import answer_of_person, reason_against
from retraining.core.untyped import XCom
from retraining.operators.airflow.boundary import fail_for_good
from retraining.operators.airflow.cloud_task import RunTask

APPROVE, REJECT = "Approve", "Reject"
# The standard provider's name for the time to answer within: before its release 1.13 `execution_timeout` stood for it.
WAIT = (
    "response_timeout"
    if "response_timeout" in inspect.signature(HITLOperator.__init__).parameters
    else "execution_timeout"
)


class RequestApprovalOperator(RunTask, HITLOperator):
    """Ask for approval, unless nothing would be deployed anyway.

    Not the provider's `ApprovalOperator`: that one skips what follows, and a rejected run would have no
    `deployment.json` that says so.

    Args:
        answer_within: How long the task waits; no answer by then is a no.

    Returns:
        `{approved, words}`.
    """

    template_fields = (*HITLOperator.template_fields, *RunTask.template_fields)

    def __init__(self, *, answer_within: timedelta, **kwargs: Any) -> None:
        super().__init__(**{"options": [APPROVE, REJECT], "defaults": [REJECT], WAIT: answer_within, **kwargs})

    @fail_for_good
    def execute(self, context: Context) -> Any:
        """Ask, and wait without a worker slot."""
        cloud = self.cloud()
        record = self.record(cloud, context)
        plan = record.read_document(Plan)
        champion = cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
        if reason := reason_against(plan, record.read_document(Decision), champion):
            return {"approved": False, "words": reason}
        return super().execute(context)

    def execute_complete(self, context: Context, event: XCom) -> XCom:
        """Take the answer."""
        answer = super().execute_complete(context, event)
        user = answer.get("responded_by_user")
        person = (user or {}).get("name") if isinstance(user, Mapping) else None
        return answer_of_person(approved=answer["chosen_options"] == [APPROVE], person=person)
