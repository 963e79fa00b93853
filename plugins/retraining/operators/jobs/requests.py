"""The requests of the run's jobs, from its record: export, training, evaluation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

from retraining.core.data import leakage
from retraining.core.documents import (
    Checks,
    EvaluateRequest,
    Evaluation,
    Initial,
    Manifest,
    Plan,
    Report,
    Snapshot,
    Statistics,
    TakenFrom,
    TrainRequest,
    Tuning,
)
from retraining.core.jobs import champions, requests
from retraining.core.jobs.adoption import require_taken_document, require_taken_files
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import storage, vertex
from retraining.core.promotion import gates
from retraining.core.promotion.best import best_of_late
from retraining.core.promotion.comparison import reason_not_to_ask
from retraining.core.promotion.versions import Version, find_met_by_backfill
from retraining.hooks.ports import CloudPort
from retraining.operators.evaluation.decision import require_models
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
JobRequestSource = Callable[[CloudPort, Record], JobRequest]


def request_export(cloud: CloudPort, record: Record) -> JobRequest:
    """Request the export of the run's missing spans, without the days that the checks leave out."""
    return requests.export_job(
        record.read_document(Plan),
        record.read_document(Snapshot),
        cloud.settings.service_account,
        quarantined=record.read_document(Checks).quarantined,
    )


def request_training(cloud: CloudPort, record: Record) -> JobRequest:
    """Request the training of the challenger, with the hyperparameters that `tune` settled on, by the run's recipe."""
    plan = record.read_document(Plan)
    return requests.training_job(
        plan,
        record.find_document(Tuning),
        cloud.settings.service_account,
        statistics=record.find_document(Statistics),
        beginning=_beginning(cloud, record, plan) if plan.spec.training.initial == "champion" else champions.RANDOM,
    )


def _beginning(cloud: CloudPort, record: Record, plan: Plan) -> champions.Beginning:
    """Say whether the training begins with the champion's weights. Asked once: later pokes go by the stored request."""
    if asked := record.find_document(TrainRequest):
        return champions.Beginning(initial=asked.initial, skipped=asked.initial_skipped)
    version = _find_met(cloud, plan)
    if version is None:
        return champions.Beginning(skipped="no version is champion yet")
    its_record = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
    report, request_uri = its_record.find_document(Report), its_record.uri(TrainRequest)
    needed = [request_uri, its_record.uri(Statistics), storage.model_file_uri(version.model_uri, own=False)]
    champion = gates.champion_of(version.version_name, version.version_id, version.model_uri, version.run_key, report)
    beginning = champions.begin_with(
        plan,
        champion,
        champions.ChampionRun(
            plan=its_record.find_document(Plan),
            report=report,
            request_uri=request_uri,
            report_uri=its_record.uri(Report),
            exist=len(cloud.artifacts.existing(needed)) == len(needed),
            is_own=version.labels.get(vertex.MODELS_LABEL) == vertex.OWN,
            proof=_proof(record, its_record),
        ),
    )
    if beginning.skipped:
        LOGGER.warning("the training begins anew: %s", beginning.skipped)
    return beginning


def _find_met(cloud: CloudPort, plan: Plan) -> Version | None:
    """Return the champion; of a backfill, who would have been it at its time."""
    if plan.mode == "live":
        return cloud.registry.find_by_alias(plan.model, vertex.CHAMPION)
    return find_met_by_backfill(plan, cloud.registry.list_versions(plan.model))


def _proof(record: Record, its_record: Record) -> leakage.Proof:
    """Return what is known of the training examples of another run beside this one's test examples."""
    its_plan = its_record.find_document(Plan)
    if its_plan is not None and its_plan.taken_from is not None:
        return _proof_from_afar(record, its_record, its_plan.taken_from)
    return leakage.proof(its_record.find_document(Manifest), its_record.uri(Manifest), record.read_document(Snapshot))


def _proof_from_afar(record: Record, its_record: Record, taken: TakenFrom) -> leakage.Proof:
    """Return the same of a version that was taken over: its run's own manifest is of what judged it."""
    kept = its_record.taken_from()
    trained_on = kept.find_document(Manifest)
    if trained_on is None:
        missing = f"{kept.uri(Manifest)} is gone, which says what the champion was trained on"
        return leakage.Proof(missing=missing, known=False)
    return leakage.proof_from_afar(trained_on, taken.stage, record.read_document(Snapshot))


def _initial(cloud: CloudPort, record: Record, plan: Plan) -> Initial | None:
    """Return whose weights the challenger began with, and which of its shards could hold this run's test examples."""
    if plan.taken_from is not None:
        return None if record.find_document(EvaluateRequest) else _taken(cloud, record, plan.taken_from)
    request = record.find_document(TrainRequest)
    if request is None or request.initial is None:
        return None
    begun = request.initial
    its_record = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, begun.run_key))
    files = _proof(record, its_record).files
    return Initial(version_id=begun.version_id, run_key=begun.run_key, prove_unseen=files)


def _taken(cloud: CloudPort, record: Record, taken: TakenFrom) -> Initial:
    """Return which shards of the stage that trained a version could hold this run's test examples.

    Raises:
        ContractError: The manifest that was kept is not the one that the plan was made by, or a shard is gone.
    """
    uri = record.taken_from().uri(Manifest)
    data = cloud.artifacts.read_object(uri)
    require_taken_document(taken, Manifest, uri, data)
    files = leakage.proof(Manifest.parse(data or b"", uri), uri, record.read_document(Snapshot)).files
    require_taken_files(taken, [file.uri for file in files], cloud.artifacts.existing([file.uri for file in files]))
    LOGGER.info("%d shards of run %s are searched for this run's test examples", len(files), taken.name)
    version_id = vertex.version_id_of(taken.version_name) or taken.version_name
    return Initial(version_id=version_id, run_key=taken.run_key, prove_unseen=files)


def request_evaluation(cloud: CloudPort, record: Record) -> JobRequest:
    """Request the comparison. Whom the challenger meets is asked once: later pokes go by the stored request."""
    plan = record.read_document(Plan)
    version, champion, its_plan, proof, best = None, None, None, leakage.Proof(), requests.NO_OTHER
    if record.find_document(EvaluateRequest) is None:
        version = _find_met(cloud, plan)
        if version is not None:
            champion_record = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, version.run_key))
            champion = gates.champion_of(
                version.version_name,
                version.version_id,
                version.model_uri,
                version.run_key,
                champion_record.find_document(Report),
            )
            its_plan = champion_record.find_document(Plan)
            proof = _proof(record, champion_record)
            best = _find_best(cloud, plan, champion_record)
            if proof.missing:
                LOGGER.warning("nothing proves that the champion has not seen this test data: %s", proof.missing)
    job_request = requests.evaluation_job(
        plan,
        champion,
        cloud.settings.service_account,
        champion_trained_before=its_plan.window.test_start if its_plan else None,
        champion_data=its_plan.spec.data if its_plan else None,
        champion_is_own=version is not None and version.labels.get(vertex.MODELS_LABEL) == vertex.OWN,
        proof=proof,
        report=record.find_document(Report),
    )
    job_request = requests.beside_best(plan, job_request, best)
    job_request = requests.proven_beside(job_request, _initial(cloud, record, plan))
    require_models(cloud, record, record.find_document(EvaluateRequest) or cast("EvaluateRequest", job_request.request))
    return job_request


def _find_best(cloud: CloudPort, plan: Plan, champion_record: Record) -> requests.Best:
    """Return the best champion of late by the record of the run that made the champion, and whether it can be asked."""
    request, evaluation = champion_record.find_document(EvaluateRequest), champion_record.find_document(Evaluation)
    model = best_of_late(request, evaluation)
    if model is None:
        return requests.NO_OTHER
    its_plan = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, model.run_key)).find_document(Plan)
    champion_plan = champion_record.find_document(Plan)
    image, *others = (
        each.spec.training.runtime.scoring_image if each else None for each in (its_plan, plan, champion_plan)
    )
    file_uri = storage.model_file_uri(model.model_uri, own=image is not None)
    stored = cloud.artifacts.exists(file_uri)
    skipped = reason_not_to_ask(model, planned=its_plan is not None, stored=stored, own_image=image, images=others)
    if skipped:
        LOGGER.warning("the best champion of late is not asked: %s", skipped)
    return requests.Best(model=model, plan=its_plan, image=image, skipped=skipped)
