"""What a run may do with the champion: be compared with it, and begin with its weights.

In: the plan, the champion, the record of the run that made it. Out: why not, as a sentence; or what the trainer needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from retraining.core.data.leakage import Proof
from retraining.core.documents.document import format_time
from retraining.core.documents.evaluation import Champion
from retraining.core.documents.plan import Plan
from retraining.core.documents.training import InitialModel, Report
from retraining.core.spec.data import Data


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What a training's weights begin as.

    Attributes:
        initial: Whose; None: nobody's, they are drawn.
        skipped: Why not the champion's, although they are asked for.
    """

    initial: InitialModel | None = None
    skipped: str | None = None


RANDOM = Beginning()


@dataclass(frozen=True, kw_only=True)
class ChampionRun:
    """The run that made a champion.

    Attributes:
        plan: Its plan; None: it is gone.
        report: Of its training; None: it is gone.
        request_uri: Its train request.
        report_uri: That report.
        exist: Whether that request, the statistics and the stored model are there.
        is_own: Whether the model is of another framework.
        proof: That it has not seen this run's test examples.
    """

    plan: Plan | None
    report: Report | None
    request_uri: str
    report_uri: str
    exist: bool
    is_own: bool
    proof: Proof


def begin_with(plan: Plan, champion: Champion, run: ChampionRun) -> Beginning:
    """Return the champion's weights as a training's beginning, or why they cannot be it.

    Args:
        plan: Of this run.
        champion: Who serves now.
        run: That made it.
    """
    reason = _reason_to_begin_anew(plan, champion, run)
    if reason is not None or run.report is None:
        return Beginning(skipped=reason)
    return Beginning(
        initial=InitialModel(
            version_id=champion.version_id,
            run_key=champion.run_key,
            model_uri=champion.model_uri,
            model_digest=run.report.model_digest,
            request_uri=run.request_uri,
            report_uri=run.report_uri,
        )
    )


def reason_to_skip(
    plan: Plan,
    champion: Champion | None,
    trained_before: date | None,
    its_data: Data | None,
    *,
    called: str = "champion",
) -> str | None:
    """Return why a champion may have been trained on this run's test split; None: it was not.

    Args:
        plan: Of this run.
        champion: Who serves now; None: nobody.
        trained_before: First test day of the champion's own run; None: not known.
        its_data: Section `data` of that run's spec; None: not known.
        called: What it is in the sentence.
    """
    if champion is None:
        return None
    if champion.as_of >= plan.as_of:
        return (
            f"{called} version {champion.version_id} was trained as of {format_time(champion.as_of)}, not before this "
            f"run's {format_time(plan.as_of)}: it could have seen the {plan.spec.data.tested_name}"
        )
    now = plan.spec.data
    if its_data is not None and (its_data.split != now.split or its_data.test_percent < now.test_percent):
        changed = "split" if its_data.split != now.split else "test_percent"
        return (
            f"{called} version {champion.version_id} was trained with data.{changed}: {getattr(its_data, changed)}, "
            f"and this run has {getattr(now, changed)}: it has seen examples of this run's test split. Take the alias "
            "champion away from it: the floor alone judges then"
        )
    if trained_before is not None and trained_before > plan.window.test_start:
        return (
            f"{called} version {champion.version_id} was trained on days before {trained_before}, and this "
            f"run's test days begin on {plan.window.test_start}: it has seen some of them"
        )
    return None


def _other_validation(its_data: Data, now: Data) -> str:
    """Return the key by which a champion may have been trained on this run's validation rows; empty: it was not."""
    if (its_data.validation_by == "days") != (now.validation_by == "days"):
        return "validation_by"
    if its_data.key != now.key:
        return "key"
    return "validation_percent" if its_data.validation_percent < now.validation_percent else ""


def _told(data: Data, key: str) -> str:
    """Return a key's value as a run has it: a plan that says nothing of its validation split has one of rows."""
    return "rows" if getattr(data, key) == "auto" else str(getattr(data, key))


def _reason_to_begin_anew(plan: Plan, champion: Champion, run: ChampionRun) -> str | None:
    who = f"champion version {champion.version_id}"
    if run.plan is not None and (taken := run.plan.taken_from):
        return f"{who} was taken over from stage {taken.stage}, and what says what its weights mean is there"
    if run.is_own:
        return f"{who} is of another framework, and this one cannot read its weights"
    if run.plan is None or run.report is None or not run.exist:
        return f"of {who} the plan, the train request, the statistics, the report or the stored model is gone"
    if run.proof.missing:
        return f"nothing proves that {who} has not seen this run's {plan.spec.data.tested_name}: {run.proof.missing}"
    its_data, now = run.plan.spec.data, plan.spec.data
    if seen := reason_to_skip(plan, champion, run.plan.window.test_start, its_data):
        return seen
    changed = _other_validation(its_data, now)
    if changed:
        return (
            f"{who} was trained with data.{changed}: {_told(its_data, changed)}, and this run has "
            f"{_told(now, changed)}: it has seen examples that early stopping watches here"
        )
    return None
