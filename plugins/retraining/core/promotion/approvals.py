"""Whether a person is asked before a version is deployed, and what the answer means."""

from __future__ import annotations

from datetime import datetime

from retraining.core.documents import Approval, ApprovalAnswer, Checks, Decision, Evaluation, Plan
from retraining.core.errors import ConflictError
from retraining.core.promotion.gates import NOT_PROVEN
from retraining.core.promotion.serving import NOT_CHECKED
from retraining.core.promotion.versions import Version


def warnings(decision: Decision, checks: Checks) -> list[str]:
    """Return what a run went on with although it was found: of its data, and of its comparison."""
    unproven = [gate.words for gate in decision.gates if gate.passed and gate.found in (NOT_PROVEN, NOT_CHECKED)]
    return [*(finding.words for finding in checks.findings), *unproven]


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
    parts = [decision.words, f"It would serve in the place of {replaced}."]
    if evaluation is not None:
        parts.append(f"Judged on {evaluation.rows:,} test examples as of {plan.as_of:%Y-%m-%d %H:%M} UTC.")
    parts += [f"Warning: {words}" for words in warned]
    if page:
        parts.append(f"[The run's page]({page}) has the metrics, slices, curves and checks.")
    return "\n\n".join(parts)


def not_asked(reason: str) -> Approval:
    """Return the approval that no person is wanted for."""
    return Approval(approved=True, asked=False, words=f"nobody was asked: {reason}")


def in_vain(reason: str) -> Approval:
    """Return the approval of a version that could not be deployed whatever a person says."""
    return Approval(approved=False, asked=False, words=f"nobody was asked, as nothing could be deployed. {reason}")


def answer(*, approved: bool, person: str | None, time: datetime | None) -> Approval:
    """Return a person's answer.

    Args:
        approved: Whether it was yes.
        person: Who gave it, as Airflow knows; None: nobody did in time, and that is a no whatever it says.
        time: When.
    """
    if not person:
        return Approval(approved=False, words="rejected without an answer in time")
    answered = time.replace(microsecond=0) if time else None
    verb = "approved" if approved else "rejected"
    return Approval(approved=approved, person=person, answered=answered, words=f"{verb} by {person}")


def stored_answer(plan: Plan, *, dag_run: tuple[str, str], task_try: str, approval: Approval | None) -> ApprovalAnswer:
    """Return the document of an answer.

    Args:
        plan: The run.
        dag_run: Ids of the DAG and of its run, which asks.
        task_try: Airflow's id of the try of the task that asks.
        approval: None: a person is asked from now on, and what was answered before counts no more.
    """
    dag_id, dag_run_id = dag_run
    return ApprovalAnswer(
        model=plan.model,
        run_key=plan.run_key,
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        task_try=task_try,
        approval=approval,
    )


def require_asked(stored: ApprovalAnswer | None, answer: ApprovalAnswer, uri: str) -> None:
    """Refuse an answer to a question that another try has asked again since.

    Raises:
        ConflictError: It did, or nobody asked.
    """
    if stored is None or stored.model_copy(update={"approval": answer.approval}) != answer:
        raise ConflictError(
            uri, "another try of the task asks", "the one that is answered", "Answer that one's question"
        )


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
    return None if approval.approved else f"Nothing deployed: {approval.words.rstrip('.')}."
