"""Whether a person is asked before a version is deployed, and what the answer means."""

from __future__ import annotations

from datetime import datetime

from retraining.core.documents import (
    Approval,
    ApprovalAnswer,
    Checks,
    Decision,
    Evaluation,
    Plan,
    canonical_json,
    digest,
)
from retraining.core.errors import ConflictError
from retraining.core.promotion.gates import NOT_PROVEN
from retraining.core.promotion.own_gates import warnings_of
from retraining.core.promotion.serving import NOT_CHECKED
from retraining.core.promotion.versions import Version


def warnings(decision: Decision, checks: Checks) -> list[str]:
    """Return what a run went on with although it was found: of its data, and of its comparison."""
    unproven = [gate.message for gate in decision.gates if gate.passed and gate.found in (NOT_PROVEN, NOT_CHECKED)]
    return [*(finding.message for finding in checks.findings), *unproven, *warnings_of(decision.gates)]


def reason_not_to_ask(plan: Plan, champion: Version | None, warned: list[str]) -> str | None:
    """Return why no person is wanted for this version; None: one is.

    Args:
        plan: The run.
        champion: The version with that alias now.
        warned: What the run went on with.
    """
    mode = plan.spec.deployment.asks
    if mode == "first" and champion is not None:
        return f"deployment.approval is first, and version {champion.version_id} is champion"
    if mode == "on_warning" and not warned:
        return "deployment.approval is on_warning, and there is none"
    return "deployment.approval is never" if mode == "never" else None


def asks(plan: Plan, decision: Decision, checks: Checks) -> bool:
    """Say whether a person will be asked for a decision's version, as far as is known when it is taken."""
    if decision.verdict != "promote" or not plan.deploy or plan.mode != "live":
        return False
    mode = plan.spec.deployment.asks
    if mode == "first":
        return decision.champion is None
    return mode == "always" or (mode == "on_warning" and bool(warnings(decision, checks)))


def question(plan: Plan, decision: Decision, evaluation: Evaluation | None, warned: list[str], page: str) -> str:
    """Return what a person reads who is asked, in Markdown: what is approved, and where all of it stands.

    Args:
        plan: The run.
        decision: Its verdict.
        evaluation: What it rests on.
        warned: What the run went on with.
        page: Address of the run's page; empty: it could not be made.
    """
    champion = decision.champion
    replaced = f"version {champion.version_id}, the champion" if champion else "nothing: it is the first"
    parts = [decision.message, f"It would serve in the place of {replaced}."]
    if evaluation is not None:
        parts.append(f"Judged on {evaluation.rows:,} test examples as of {plan.as_of:%Y-%m-%d %H:%M} UTC.")
    parts += [f"Warning: {message}" for message in warned]
    if page:
        parts.append(f"[The run's page]({page}) has the metrics, slices, curves and checks.")
    return "\n\n".join(parts)


def question_digest(decision: Decision, warned: list[str]) -> str:
    """Return what tells a question from another: the SHA-256 of what a person decides on.

    Args:
        decision: Its verdict.
        warned: What the run went on with.
    """
    return digest(canonical_json([decision.digest(), warned]))


def not_asked(reason: str) -> Approval:
    """Return the approval that no person is wanted for."""
    return Approval(approved=True, asked=False, message=f"nobody was asked: {reason}")


def in_vain(reason: str) -> Approval:
    """Return the approval of a version that could not be deployed whatever a person says."""
    return Approval(approved=False, asked=False, message=f"nobody was asked, as nothing could be deployed. {reason}")


def answer(*, approved: bool, person: str | None, time: datetime | None) -> Approval:
    """Return a person's answer.

    Args:
        approved: Whether it was yes.
        person: Who gave it, as Airflow knows; None: nobody did in time, and that is a no whatever it says.
        time: When.
    """
    if not person:
        return Approval(approved=False, message="rejected without an answer in time")
    answered = time.replace(microsecond=0) if time else None
    verb = "approved" if approved else "rejected"
    return Approval(approved=approved, person=person, answered=answered, message=f"{verb} by {person}")


def stands(stored: ApprovalAnswer | None, question: ApprovalAnswer) -> bool:
    """Return whether a question is asked, or answered, already: by an earlier try of this very task, not cleared since.

    Args:
        stored: What the run's record has.
        question: As this try would ask it.
    """
    if stored is None or stored.question is None:
        return False
    return stored.model_copy(update={"approval": None, "task_try": question.task_try}) == question


def require_asked(stored: ApprovalAnswer | None, question: ApprovalAnswer, uri: str) -> ApprovalAnswer:
    """Return the question that is asked, if a try may answer it: it is the try's own, or an earlier try's that stands.

    Args:
        stored: What the run's record has.
        question: As this try would ask it now.
        uri: Of the document.

    Raises:
        ConflictError: A later try has asked since, about another decision, or nobody asked.
    """
    own = stored is not None and stored.task_try == question.task_try
    if (
        stored is None
        or stored.task_try > question.task_try
        or not (  # a later try's UUID (version 7) is greater
            own if stored.question is None else stands(stored, question)
        )
    ):
        found = "another try of the task asks, or about another decision"
        raise ConflictError(uri, found, "the question that is answered", "Answer the newest question")
    return stored


def approval_for(stored: ApprovalAnswer | None, dag_run: tuple[str, str]) -> Approval | None:
    """Return the answer that counts for a run of the DAG: the one that this run asked for; None: there is none."""
    return stored.approval if stored and (stored.dag_id, stored.dag_run_id) == dag_run else None


def reason_of_person(plan: Plan, approval: Approval | None) -> str | None:
    """Return why a deployment is forbidden, as a sentence; None when it is not.

    Args:
        plan: The run.
        approval: Of the task that asks; None: it gave none, or is not there.
    """
    if approval is None:
        return None if plan.spec.deployment.asks == "never" else "Nothing deployed: nobody approved."
    return None if approval.approved else f"Nothing deployed: {approval.message.rstrip('.')}."
