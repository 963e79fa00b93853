"""Whether a job was done before, by the result that its request names.

Comes in: the request of a job. Goes out: whether that result is there. It is written
last and once: a job whose result is there has nothing left to do.
"""

from __future__ import annotations

from typing import Any

from trainer.contract.documents import EvaluateRequest, ExportRequest, MultivariateRequest, ScoreRequest, TrainRequest
from trainer.contract.json_text import read_json
from trainer.contract.reading import digest
from trainer.errors import ContractError
from trainer.storage import Storage

REQUEST_DIGEST = "request_sha256"
"""Key of a trial's result: its own request's digest."""

JobRequest = ExportRequest | TrainRequest | ScoreRequest | EvaluateRequest | MultivariateRequest


def result_uri(request: JobRequest) -> str:
    """Return the address of what a job writes last."""
    match request:
        case ExportRequest():
            return request.manifest_uri
        case TrainRequest():
            return request.report_uri
        case ScoreRequest():
            return request.models[-1].scores_uri
        case EvaluateRequest():
            return request.evaluation_uri
        case MultivariateRequest():
            return request.multivariate_uri


def is_done(request: JobRequest, storage: Storage) -> bool:
    """Return whether the result of this very request is there: a run has one, and a trial's may be of other values."""
    if isinstance(request, TrainRequest) and request.trial_metric is not None:
        return trial_result(request, storage) is not None
    return storage.exists(result_uri(request))


def trial_result(request: TrainRequest, storage: Storage) -> dict[str, Any] | None:
    """Return the result that a trial of this very request left; None where there is none."""
    result = _read_result(request.report_uri, "a trial's result", storage)
    return result if result and result.get(REQUEST_DIGEST) == digest(request) else None


def require_own_result(request: JobRequest, request_digest: str, storage: Storage) -> None:
    """Refuse a result that is there and was made for another request: this job would end as if it had made it.

    Args:
        request: What this job is asked; one of an earlier release takes any result for its own.
        request_digest: SHA-256 of its bytes.
        storage: Where the result is.

    Raises:
        ContractError: It is another request's.
    """
    uri = result_uri(request)
    result = _read_result(uri, "a job's result", storage)
    if not request.digest_required or result is None or result.get("request_digest") == request_digest:
        return
    found = f"the result of another request: its request_digest is {str(result.get('request_digest'))[:80]}"
    raise ContractError(uri, found, f"{request_digest}, of this job's request, or no result", "Delete it, start again")


def _read_result(uri: str, what: str, storage: Storage) -> dict[str, Any] | None:
    content = storage.read_object(uri)
    if content is None:
        return None
    try:
        result = read_json(content)
    except ValueError as error:
        raise ContractError(uri, f"is not JSON ({error})", what, "Delete it") from error
    if not isinstance(result, dict):
        raise ContractError(uri, f"is a JSON {type(result).__name__}", what, "Delete it")
    return result
