"""Whether a training was done before, by what its request names as its report.

Comes in: a train request. Goes out: whether its report is there, or a trial's result.
"""

from __future__ import annotations

import json
from typing import Any

from trainer.contract.documents import TrainRequest
from trainer.contract.reading import digest
from trainer.storage import Storage

REQUEST_DIGEST = "request_sha256"
"""Key of a trial's result: its own request's digest."""


def is_recorded(request: TrainRequest, storage: Storage) -> bool:
    """Whether the report of this very request is there: a run has one, and a trial's may be of other values."""
    if request.trial_metric is None:
        return storage.exists(request.report_uri)
    return trial_result(request, storage) is not None


def trial_result(request: TrainRequest, storage: Storage) -> dict[str, Any] | None:
    """Give the result that a trial of this very request left; None where there is none."""
    content = storage.read(request.report_uri)
    result: dict[str, Any] = json.loads(content) if content else {}
    return result if result.get(REQUEST_DIGEST) == digest(request) else None
