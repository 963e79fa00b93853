"""Asking a person before a promoted version is deployed. Imported only by DAGs whose spec wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context

from retraining.core.documents import Decision, Plan
from retraining.hooks.cloud import Cloud
from retraining.operators.deployment import reason_against
from retraining.operators.edge import fail_for_good
from retraining.operators.record import RUN_URI, Record

APPROVE, REJECT = "Approve", "Reject"


class RequestApprovalOperator(HITLOperator):
    """Ask for approval, unless nothing would be deployed anyway.

    Not the provider's `ApprovalOperator`: that one skips what follows, and a rejected run would have no
    `deployment.json` that says so.

    Args:
        run_uri: Folder of the run's record.

    Returns:
        `{approved, words}`.
    """

    template_fields = (*HITLOperator.template_fields, "run_uri")

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - HITLOperator's
        super().__init__(**{"options": [APPROVE, REJECT], "defaults": [REJECT], **kwargs})
        self.run_uri = run_uri

    @fail_for_good
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - HITLOperator parks or defers the task
        """Ask, and wait without a worker slot."""
        record = Record(Cloud().artifacts, self.run_uri)
        if words := reason_against(record.read(Plan), record.read(Decision), None):
            return {"approved": False, "words": words}
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Take the answer."""
        answer = super().execute_complete(context, event)
        approved = answer["chosen_options"] == [APPROVE]
        user = answer.get("responded_by_user")
        person = (user or {}).get("name") if isinstance(user, Mapping) else None
        verb = "approved" if approved else "rejected"
        return {"approved": approved, "words": f"{verb} by {person}" if person else f"{verb} without an answer in time"}
