"""What a comparison of champion and challenger needs before a job is paid for it: the stored models of both."""

from __future__ import annotations

from collections.abc import Collection

from retraining.core.documents import Challenger, Champion, EvaluateRequest
from retraining.core.errors import ContractError
from retraining.core.naming.storage import model_file_uri


def models_of(request: EvaluateRequest) -> list[str]:
    """Return the addresses of the files that tell whether the models of both sides are there."""
    return [_file_uri(side) for side in (request.challenger, request.champion) if side]


def require_challenger(request: EvaluateRequest, existing: Collection[str]) -> None:
    """Refuse a comparison whose challenger is not on storage any more.

    Args:
        request: What the judge is asked.
        existing: Those of `models_of` that are there.

    Raises:
        ContractError: It is gone.
    """
    file_uri = _file_uri(request.challenger)
    if file_uri not in existing:
        raise ContractError(
            f"evaluate of run {request.run_key}",
            f"the challenger's model is gone: no {file_uri}",
            "the SavedModel that train stored",
            "Clear train and what follows it: without its model its result does not count, and it trains again",
        )


def missing_champion(request: EvaluateRequest, existing: Collection[str]) -> Champion | None:
    """Return the champion if its model is not on storage any more; None: it is there, or there is no champion."""
    champion = request.champion
    return champion if champion and _file_uri(champion) not in existing else None


def _file_uri(side: Challenger | Champion) -> str:
    return model_file_uri(side.model_uri, own=side.scores_uri is not None)


def reason_not_to_ask(
    best: Champion, *, planned: bool, stored: bool, own_image: str | None, images: Collection[str | None]
) -> str | None:
    """Return why the best champion of late cannot be asked; None: it can.

    Args:
        best: Which.
        planned: Whether the plan of its run is still there.
        stored: Whether its model is.
        own_image: Image that scores it, of a model of another framework; None: the judge does.
        images: That score the other sides: a further one is not started for it.
    """
    which = f"version {best.version_id} of run {best.run_key}"
    if not planned:
        return f"the plan of {which} is gone, which says what made it"
    if not stored:
        return f"the model of {which} is gone: no {best.model_uri}"
    if own_image is not None and own_image not in images:
        return f"{which} was made by another image, {own_image}"
    return None


def champion_is_gone(run_key: str, champion: Champion, dag_run_id: str | None, *, asked: bool) -> ContractError:
    """Return the refusal of a comparison whose champion is not on storage any more.

    Args:
        run_key: Of the run that compares.
        champion: Whose model is gone.
        dag_run_id: Of the run that made the champion; None: it is not known.
        asked: Whether the request is stored, so that only a new attempt asks another one.
    """
    its_run = f"DAG run {dag_run_id}" if dag_run_id else "its DAG run"
    again = "trigger again with Force" if asked else "clear evaluate"
    return ContractError(
        f"evaluate of run {run_key}",
        f"the model of the champion, version {champion.version_id} of run {champion.run_key}, is gone: "
        f"no {_file_uri(champion)}",
        "the SavedModel of whoever holds the alias champion",
        f"Clear train of {its_run}, without what follows: it stores the model again at this address; then clear "
        f"evaluate here. Or take the alias champion away from version {champion.version_id} and {again}: the floor "
        "alone judges then. docs/operations.md, A model is gone",
    )
