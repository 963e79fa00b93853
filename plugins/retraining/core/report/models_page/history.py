"""What of a run and of a monitor's look is kept for the page: documents in, rows of the page's own document out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from retraining.core.documents import Drift, Evaluation, Ledger, LedgerResult, Rollback, Signal, Signals
from retraining.core.documents.overview import RunOutcome, ShownRollback, ShownRun, ShownSignal, WatchRow
from retraining.core.naming.storage import rollback_time
from retraining.core.promotion.rollbacks import version_id
from retraining.core.promotion.slices import value_of
from retraining.core.report.page import outcome
from retraining.core.report.run import Run
from retraining.core.report.timings import costs, run_seconds

KINDS = ("plan", "checks", "evaluation", "decision", "registration", "deployment", "timings")
"""Documents of a run that the page is made of."""
RUNS_KEPT = 60
ROLLBACKS_KEPT = 20
RECENT_WATCHES = 48
"""So many newest ledger rows are kept whole; of earlier days those that did something, and the last one."""
WATCHES_KEPT = 160
SIGNALS_KEPT = 40
TEXT_KEPT = 2000


def cut(text: str, length: int = TEXT_KEPT) -> str:
    """Return a text that is no longer than the document has room for."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shown_run(run: Run) -> ShownRun:
    """Return what is kept of a run."""
    plan, judged, timings = run.plan, run.evaluation, run.timings
    decided_by = plan.spec.evaluation.metric
    decision, registration = run.decision, run.registration
    prices = [task.estimated_usd for task in timings.tasks if costs(task)] if timings else []
    known = [usd for usd in prices if usd is not None]
    return ShownRun(
        run_key=plan.run_key,
        as_of=plan.as_of,
        run_uri=plan.run_uri,
        dag_id=cut(plan.dag_id),
        dag_run_id=cut(plan.dag_run_id),
        trigger=plan.trigger.kind,
        cause=cut(plan.trigger.cause) if plan.trigger.cause else None,
        reason=cut(plan.trigger.reason),
        mode=plan.mode,
        ended=timings is not None and (run.deployment is not None or _outcome(run) == "repeated"),
        outcome=_outcome(run),
        message=cut(outcome(run)),
        deployed=run.deployment is not None and run.deployment.deployed,
        version_id=registration.version_id if registration else None,
        version_name=registration.version_name if registration else None,
        rows=judged.rows if judged else None,
        score=value_of(judged.challenger.metrics, decided_by) if judged else None,
        champion_id=decision.champion.version_id if decision and decision.champion else None,
        champion_score=_champion_score(run, judged),
        difference=judged.difference if judged else None,
        usd=sum(known) if known else None,
        unpriced=len(known) < len(prices),
        seconds=run_seconds(timings) if timings else None,
        failure=run.failure if run.failure and not run.failure.retried else None,
    )


def _outcome(run: Run) -> RunOutcome:
    if run.decision:
        return run.decision.verdict
    if run.repetition:
        return "repeated"
    return (
        "stopped"
        if run.timings or (run.failure and not run.failure.retried) or (run.checks and not run.checks.passed)
        else "running"
    )


def _champion_score(run: Run, judged: Evaluation | None) -> float | None:
    champion = judged.champion if judged else None
    return value_of(champion.metrics, run.plan.spec.evaluation.metric) if champion else None


def shown_rollback(rollback: Rollback) -> ShownRollback:
    """Return what is kept of a rollback."""
    return ShownRollback(
        name=rollback.name,
        at=rollback_time(rollback.name),
        version_id=version_id(rollback.version_name),
        from_version_id=version_id(rollback.from_version_name),
        stopped=rollback.stopped,
        who=cut(rollback.trigger.reason),
        reason=cut(rollback.reason),
    )


def watch_row(key: str, row: Ledger, signals: Signals | None, drift: Drift | None = None) -> WatchRow:
    """Return what is kept of one look of the monitor.

    Args:
        key: Name of its folder.
        row: What it came to.
        signals: What it was decided by.
        drift: The same of an earlier release.
    """
    requests = signals.requests if signals else drift.rows if drift else None
    classifier = (row.facts.classifier,) if row.facts and row.facts.classifier else ()
    shown = [_shown_signal(signal) for signal in (*signals.signals, *classifier)] if signals else _drift_signals(drift)
    return WatchRow(
        key=key,
        results={result.ledger_id: cut(describe_result(result)) for result in row.facts.results} if row.facts else {},
        as_of=row.as_of,
        outcome=row.outcome,
        severity=row.severity,
        reason=row.reason,
        cause=cut(row.cause) if row.cause else None,
        message=cut(row.message),
        requests=requests,
        signals=tuple(sorted(shown, key=_place)[:SIGNALS_KEPT]),
        left_out=max(0, len(shown) - SIGNALS_KEPT),
        version_id=signals.champion.version_id if signals and signals.champion else None,
    )


def describe_result(result: LedgerResult) -> str:
    """Return what came of an order, in a few words: `promoted, version 5, gain +0.0123`."""
    parts = [result.state.replace("_", " ")]
    parts += [f"version {result.version_id}"] if result.version_id else []
    parts += [f"gain {result.gain:+z.4f}"] if result.gain is not None else []
    return ", ".join(parts)


def _shown_signal(signal: Signal) -> ShownSignal:
    values = signal.model_dump(include=set(ShownSignal.model_fields))
    return ShownSignal(**{**values, "subject": cut(signal.subject), "measure": cut(signal.measure)})


def _drift_signals(drift: Drift | None) -> list[ShownSignal]:
    """Return the features of a release that measured these alone, as signals."""
    return [
        ShownSignal(
            kind="skew",
            subject=cut(feature.name),
            state="exceeded" if feature.drifted else "ok",
            reason=None,
            measure=feature.distance,
            value=feature.value,
            threshold=feature.threshold,
            examples=drift.rows,
        )
        for feature in (drift.features if drift else ())
        if drift is not None
    ]


def _place(signal: ShownSignal) -> tuple[bool, bool, float]:
    """Sort what is exceeded to the front, then what tells of its input, then by how near to the threshold it is."""
    share = signal.value / signal.threshold if signal.value is not None and signal.threshold else 0.0
    return signal.state != "exceeded", signal.reason is None, -share


def newest_runs(runs: Iterable[ShownRun]) -> tuple[ShownRun, ...]:
    """Return the runs that are kept, newest first; of two with one key the one that comes first counts."""
    by_key: dict[str, ShownRun] = {}
    for run in runs:
        by_key.setdefault(run.run_key, run)
    return tuple(sorted(by_key.values(), key=lambda run: run.run_key, reverse=True)[:RUNS_KEPT])


def newest_watches(rows: Iterable[WatchRow]) -> tuple[WatchRow, ...]:
    """Return the ledger rows that are kept, newest first: all of the newest, and of earlier days what tells of them."""
    by_key: dict[str, WatchRow] = {}
    for row in rows:
        by_key.setdefault(row.key, row)
    ordered = sorted(by_key.values(), key=lambda row: (row.as_of, row.key), reverse=True)
    earlier = _one_or_more_a_day(ordered[RECENT_WATCHES:])
    kept = [*ordered[:RECENT_WATCHES], *earlier][:WATCHES_KEPT]
    if not kept:
        return ()
    results = {key: message for row in kept[::-1] for key, message in row.results.items()}
    keys = {row.key for row in kept}
    newest = kept[0].model_copy(update={"results": {key: message for key, message in results.items() if key in keys}})
    return (newest, *(row.model_copy(update={"results": {}}) if row.results else row for row in kept[1:]))


def _one_or_more_a_day(rows: Sequence[WatchRow]) -> list[WatchRow]:
    kept = []
    for _, day in groupby(rows, key=lambda row: row.as_of.date()):
        last, *others = day
        kept += [last, *(row for row in others if row.outcome != "none")]
    return kept
