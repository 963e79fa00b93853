"""The card of a version, from the documents of the run that made it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from retraining.core.documents import Checks, Decision, Deployment, Evaluation, Manifest, Plan, Registration, Report
from retraining.core.documents.model_card import CardData, CardTraining, ModelCard
from retraining.core.promotion.approvals import warnings


def model_card(
    plan: Plan,
    checks: Checks,
    manifest: Manifest,
    report: Report,
    evaluation: Evaluation,
    decision: Decision,
    registration: Registration,
    deployment: Deployment | None,
) -> ModelCard:
    """Return the card of a run's version; `deployment` is None until it has ended."""
    scores = evaluation.challenger
    return ModelCard(
        model=plan.model,
        run_key=plan.run_key,
        version_name=registration.version_name,
        as_of=plan.as_of,
        purpose=plan.spec.description,
        owner=plan.spec.owner,
        licence=plan.spec.licence,
        data=CardData(
            table=manifest.table,
            query=plan.query.path,
            window=plan.window,
            rows={name: manifest.splits[name].rows for name in ("train", "validation", "test")},
            quarantined=manifest.quarantined,
            assertions={item.name: item.rows for item in checks.assertions},
        ),
        training=_training(plan, report),
        metrics=scores.metrics,
        differences=evaluation.differences,
        slices=scores.slices,
        slice_differences=evaluation.slice_differences,
        importance=evaluation.importance,
        verdict=decision.verdict,
        message=decision.message,
        spec_sha256=plan.spec_sha256,
        approval=deployment.approval if deployment else None,
        promoted_from=plan.taken_from.name if plan.taken_from else None,
        caveats=tuple(_caveats(plan, checks, manifest, evaluation, decision)),
    )


def _training(plan: Plan, report: Report) -> CardTraining:
    return CardTraining(
        architecture=plan.spec.training.model,
        hyperparameters=report.hyperparameters,
        seed=plan.spec.training.seed,
        epochs=report.epochs_run,
        best_epoch=report.best_epoch,
        parameters=report.parameters,
        framework=report.framework,
        image=plan.spec.training.runtime.image or plan.trainer_image,
    )


def _caveats(
    plan: Plan, checks: Checks, manifest: Manifest, evaluation: Evaluation, decision: Decision
) -> Iterator[str]:
    taken = plan.taken_from
    window, as_of = (taken.window, taken.as_of) if taken else (plan.window, plan.as_of)
    if taken:
        yield f"It was trained by run {taken.run_key} in stage {taken.stage}; the data named here judged it"
    if plan.spec.data.split == "time":
        last = window.end - timedelta(days=1)
        yield f"It has seen examples of {window.start} to {last} alone, as of {as_of:%Y-%m-%d}"
    else:
        yield f"It has seen the examples alone that its query gave on {as_of:%Y-%m-%d}, which have no time"
    if manifest.quarantined:
        yield f"Days that the checks left out: {', '.join(map(str, manifest.quarantined))}"
    yield from warnings(decision, checks)
    if evaluation.champion_skipped:
        yield f"It was compared with no champion: {evaluation.champion_skipped}"
    yield from (f"Gate {gate.gate} failed: {gate.message}" for gate in decision.gates if not gate.passed)
