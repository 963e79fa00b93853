"""The decision: what was found, written down before anything follows from it."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.documents import Checks, Decision, EvaluateRequest, Evaluation, Plan, Report
from retraining.core.notification import notices
from retraining.core.notification.notices import Notice
from retraining.core.promotion import approvals, gates
from retraining.core.report.training import training_warnings
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.airflow.notification import run_of, tell


class DecideOperator(RunTask, CloudOperator):
    """Take the decision from the stored documents alone; taken once, it stands.

    Returns:
        `{verdict, words}`.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read three documents, write the decision."""
        record = self.record(cloud, context)
        plan, request, evaluation = (
            record.read_document(Plan),
            record.read_document(EvaluateRequest),
            record.read_document(Evaluation),
        )
        digests: dict[gates.InputName, str] = {
            "plan": record.document_digest(Plan),
            "evaluate_request": record.document_digest(EvaluateRequest),
            "evaluation": record.document_digest(Evaluation),
        }
        decision = record.find_document(Decision) or record.write_once(gates.decide(plan, request, evaluation, digests))
        report = record.find_document(Report)
        for warning in training_warnings(report) if report else ():
            self.log.warning("training: %s", warning)
        for gate in decision.gates:
            self.log.info("%s %s: %s", "passed" if gate.passed else "FAILED", gate.gate, gate.words)
        self.log.info(decision.words)

        def make() -> Notice | None:
            asks = approvals.asks(plan, decision, record.read_document(Checks))
            return notices.of_decision(plan, decision, run_of(context), asks=asks)

        tell(lambda: cloud, context, make, self.run_uri)
        return {"verdict": decision.verdict, "words": decision.words}
