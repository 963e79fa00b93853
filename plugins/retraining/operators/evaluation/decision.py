"""The decision: what was found, written down before anything follows from it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.core.documents import Decision, EvaluateRequest, Evaluation, Plan
from retraining.core.promotion import gates
from retraining.hooks.cloud import Cloud
from retraining.operators.airflow.boundary import fail_for_good, timed
from retraining.operators.record.ownership import own_run
from retraining.operators.record.run_record import RUN_URI


class DecideOperator(BaseOperator):
    """Take the decision from the stored documents alone; taken once, it stands.

    Args:
        run_uri: Folder of the run's record.

    Returns:
        `{verdict, words}`.
    """

    template_fields = ("run_uri",)

    def __init__(self, *, run_uri: str = RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(**kwargs)
        self.run_uri = run_uri

    @timed
    @fail_for_good
    def execute(self, context: Context) -> dict[str, Any]:
        """Three documents in, one out."""
        record = own_run(Cloud(), context, self.run_uri)
        plan, request, evaluation = record.read(Plan), record.read(EvaluateRequest), record.read(Evaluation)
        digests: dict[gates.InputName, str] = {
            "plan": record.digest(Plan),
            "evaluate_request": record.digest(EvaluateRequest),
            "evaluation": record.digest(Evaluation),
        }
        decision = record.find(Decision) or record.write_once(gates.decide(plan, request, evaluation, digests))
        for gate in decision.gates:
            self.log.info("%s %s: %s", "passed" if gate.passed else "FAILED", gate.gate, gate.words)
        self.log.info(decision.words)
        return {"verdict": decision.verdict, "words": decision.words}
