"""What a duel needs before a job is paid for it: the stored models of both sides."""

from __future__ import annotations

from retraining.core.documents import Champion, EvaluateRequest, Evaluation, Plan
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.hooks.cloud import Cloud
from retraining.operators.record.run_record import Record


def require_models(cloud: Cloud, record: Record, request: EvaluateRequest) -> None:
    """Refuse a duel whose challenger or champion is not on storage any more. One that is decided needs neither.

    Raises:
        ContractError: A SavedModel is gone; with the run that made it, and what to do.
    """
    if record.find(Evaluation) is not None and record.find(EvaluateRequest) is not None:
        return
    challenger = storage.model_file_uri(request.challenger.model_uri)
    if not cloud.artifacts.exists(challenger):
        raise ContractError(
            f"evaluate of run {request.run_key}",
            f"the challenger's model is gone: no {challenger}",
            "the SavedModel that train stored",
            "Clear train and what follows it: without its model its result does not count, and it trains again",
        )
    champion = request.champion
    if champion is None or cloud.artifacts.exists(storage.model_file_uri(champion.model_uri)):
        return
    raise ContractError(
        f"evaluate of run {request.run_key}",
        f"the model of the champion, version {champion.version_id} of run {champion.run_key}, is gone: "
        f"no {storage.model_file_uri(champion.model_uri)}",
        "the SavedModel of whoever holds the alias champion",
        _way_out(cloud, request, champion, asked=record.find(EvaluateRequest) is not None),
    )


def _way_out(cloud: Cloud, request: EvaluateRequest, champion: Champion, *, asked: bool) -> str:
    folder = storage.run_uri(cloud.settings.bucket, request.model, champion.run_key)
    plan = Record(cloud.artifacts, folder).find(Plan)
    its_run = f"DAG run {plan.dag_run_id}" if plan else "its DAG run"
    again = "trigger again with Force" if asked else "clear evaluate"
    return (
        f"Clear train of {its_run}, without what follows: it stores the model again at this address; then clear "
        f"evaluate here. Or take the alias champion away from version {champion.version_id} and {again}: the floor "
        "alone judges then. docs/operations.md, A model is gone"
    )
