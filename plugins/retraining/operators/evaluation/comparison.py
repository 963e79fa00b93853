"""What a comparison needs before a job is paid for it: the stored models of both sides."""

from __future__ import annotations

from retraining.core.documents import EvaluateRequest, Evaluation, Plan
from retraining.core.naming import storage
from retraining.core.promotion.comparison import (
    champion_is_gone,
    missing_champion,
    models_of,
    require_challenger,
)
from retraining.hooks.ports import CloudPort
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
