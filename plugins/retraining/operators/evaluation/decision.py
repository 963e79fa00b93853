"""The decision: what was found, written down before anything follows from it."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.documents import Checks, Decision, EvaluateRequest, Evaluation, Plan, Report
from retraining.core.naming import storage
from retraining.core.notification import notices
from retraining.core.notification.notices import Notice
from retraining.core.promotion import approvals, gates
from retraining.core.promotion.comparison import champion_is_gone, missing_champion, models_of, require_challenger
from retraining.core.promotion.own_gates import judge_own_gates
from retraining.core.report.quality import quality_warnings
from retraining.core.report.training import training_warnings
from retraining.core.settings import include_path
from retraining.core.spec.own_gates import load_gates
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.airflow.notification import run_of, tell
from retraining.operators.record.run_record import Record


def require_models(cloud: CloudPort, record: Record, request: EvaluateRequest) -> None:
    """Refuse a comparison whose challenger or champion is not on storage any more. One that is decided needs neither.

    Raises:
        ContractError: A SavedModel is gone; with the run that made it, and what to do.
    """
    if record.find_document(Evaluation) is not None and record.find_document(EvaluateRequest) is not None:
        return
    existing = cloud.artifacts.existing(models_of(request))
    require_challenger(request, existing)
    champion = missing_champion(request, existing)
    if champion is not None:
        folder = storage.run_uri(cloud.settings.bucket, request.model, champion.run_key)
        plan = Record(cloud.artifacts, folder).find_document(Plan)
        asked = record.find_document(EvaluateRequest) is not None
        raise champion_is_gone(request.run_key, champion, plan.dag_run_id if plan else None, asked=asked)


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
        decision = record.find_document(Decision)
        if decision is None:
            functions = load_gates(plan.spec, include_path()) if plan.spec.evaluation.gates else {}
            own = judge_own_gates(plan, evaluation, functions)
            decision = record.write_once(gates.decide(plan, request, evaluation, digests, own))
        report = record.find_document(Report)
        for warning in training_warnings(report, plan.spec.training.model) if report else ():
            self.log.warning("training: %s", warning)
        for warning in quality_warnings(evaluation):
            self.log.warning("evaluation: %s", warning)
        for gate in decision.gates:
            outcome = "WARNED" if gate.warns else "passed" if gate.passed else "FAILED"
            self.log.info("%s %s: %s", outcome, gate.gate, gate.message)
        self.log.info(decision.message)

        def make() -> Notice | None:
            asks = approvals.asks(plan, decision, record.read_document(Checks))
            return notices.of_decision(plan, decision, run_of(context), asks=asks)

        tell(lambda: cloud, context, make, self.run_uri)
        return {"verdict": decision.verdict, "words": decision.message}
