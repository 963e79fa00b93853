"""Stored documents → facts: what of the newest run, of the monitor's looks and of ways back the tests ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from retraining.core.documents import Checks, Decision, Deployment, Evaluation, Plan, Registration, Timings, Tuning
from retraining.core.documents.evaluation import Difference, FeatureImportance
from retraining.core.documents.overview import ModelOverview, WatchRow
from retraining.core.documents.readiness import AskedModel, OlderModel, RunFacts
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.report.readiness.facts import Facts, LiveScore, Look
from retraining.core.signal_kinds import SIGNAL_KINDS, SignalKind
from retraining.core.spec.model import ModelSpec

SECONDS_OF_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """Documents of a run with an evaluation; None: it left none of a kind."""

    plan: Plan
    evaluation: Evaluation
    checks: Checks | None = None
    decision: Decision | None = None
    registration: Registration | None = None
    deployment: Deployment | None = None
    timings: Timings | None = None
    tuning: Tuning | None = None


def facts_of(
    spec: ModelSpec, day: date, recipients: int, run: RunFacts | None, overview: ModelOverview | None
) -> Facts:
    """Return what is stored of a model.

    Args:
        spec: The model.
        day: On which it is scored, UTC.
        recipients: People and channels that are told of it.
        run: The newest live run with an evaluation; None: there is none.
        overview: Its history, as the Models page has it; None: there is none.
    """
    return Facts(
        day=day,
        recipients=recipients,
        run=run,
        looks=looks_of(overview.watches) if overview else {},
        live=live_scores(overview, spec.evaluation.metric) if overview else (),
        rollback=_way_back(overview) if overview else "",
    )


def facts_of_run(run: StoredRun) -> RunFacts:
    """Return what a run left."""
    evaluation, lines = run.evaluation, run.evaluation.reference
    measured = evaluation.importance.features if evaluation.importance else ()
    judged = [each for each in measured if each.challenger is not None]
    return RunFacts(
        run_key=run.plan.run_key,
        registered=run.registration is not None,
        ended=run.deployment is not None,
        seconds=run.timings.elapsed_seconds if run.timings else None,
        findings=tuple(sorted({finding.check for finding in run.checks.findings})) if run.checks else (),
        features_measured=len(judged),
        harmful=tuple(each.feature for each in judged if _does_harm(each)),
        lines={line.name: _is_loss(line.difference) for line in lines if line.difference is not None},
        lines_not_judged="; ".join(dict.fromkeys(line.not_judged for line in lines if line.not_judged)),
        slices=len(evaluation.challenger.slices),
        older=_older(run),
        asked=_asked(run),
        worst=len(evaluation.worst),
        shows_values=any(example.values for example in evaluation.worst),
        trials=len(run.tuning.trials) if run.tuning else 0,
    )


def looks_of(watches: Sequence[WatchRow]) -> dict[SignalKind, Look]:
    """Return the newest look in which each kind was held against a limit.

    Args:
        watches: Newest first.
    """
    looks: dict[SignalKind, Look] = {}
    for row in watches:
        judged = [
            signal.kind for signal in row.signals if signal.state != "not_judged" and signal.threshold is not None
        ]
        for kind in SIGNAL_KINDS:
            if kind in judged:
                looks.setdefault(kind, Look(as_of=row.as_of, signals=judged.count(kind)))
    return looks


def live_scores(overview: ModelOverview, metric: str) -> tuple[LiveScore, ...]:
    """Return the versions that have a score on their test days and one of their live answers, oldest first."""
    live: dict[str, float] = {}
    for row in overview.watches:
        for signal in row.signals:
            if (signal.kind, signal.subject, signal.measure) == (
                "performance",
                "",
                metric,
            ) and signal.value is not None:
                live.setdefault(row.version_id or "", signal.value)
    return tuple(
        LiveScore(version_id=run.version_id, tested=run.score, live=live[run.version_id])
        for run in reversed(overview.runs)
        if run.version_id and run.score is not None and run.version_id in live
    )


def _does_harm(each: FeatureImportance) -> bool:
    """Whether the loss surely falls when the values come from other rows."""
    return each.challenger is not None and each.challenger.high < 0


def _is_loss(difference: Difference) -> bool:
    """Whether the challenger surely loses."""
    return difference.high < 0 if difference.metric in HIGHER_IS_BETTER else difference.low > 0


def _older(run: StoredRun) -> OlderModel | None:
    """Return the champion beside the challenger, where its data are older."""
    difference, champion = run.evaluation.difference, run.decision.champion if run.decision else None
    if difference is None or champion is None or champion.as_of >= run.plan.as_of:
        return None
    return OlderModel(
        days=(run.plan.as_of - champion.as_of).total_seconds() / SECONDS_OF_DAY,
        metric=difference.metric,
        mean=difference.mean,
        low=difference.low,
        high=difference.high,
    )


def _asked(run: StoredRun) -> AskedModel | None:
    serving = run.evaluation.serving
    if serving is None:
        return None
    gates = run.decision.gates if run.decision else ()
    failed = [gate.message for gate in gates if gate.gate == "serving" and not gate.passed]
    problems = [serving.skipped, serving.problem, *serving.signature, *serving.unanswered, *failed]
    return AskedModel(
        rows=serving.single.rows if serving.single else 0,
        strange=serving.inputs,
        problem="; ".join(problem for problem in problems if problem),
    )


def _way_back(overview: ModelOverview) -> str:
    last = overview.rollbacks[0] if overview.rollbacks else None
    return f"to version {last.version_id} on {last.at:%Y-%m-%d}, {last.who}" if last and not last.stopped else ""
