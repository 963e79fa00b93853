"""Which splits of a run a comparison reads. Imports nothing of TensorFlow: files are fetched while that is imported."""

from __future__ import annotations

from trainer.contract.documents import EvaluateRequest

FROZEN, VALIDATION = "golden", "validation"


def needs_validation(request: EvaluateRequest) -> bool:
    """Return whether a threshold is chosen on the validation split."""
    return request.threshold is not None and request.threshold.rule != "number"


def splits_of(request: EvaluateRequest) -> set[str]:
    """Return the names of all splits that are read."""
    asked = {request.split: True, FROZEN: request.golden, VALIDATION: needs_validation(request)}
    return {name for name, there in asked.items() if there}
