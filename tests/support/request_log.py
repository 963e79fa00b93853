"""Rows of the requests query, and rows of a request log, for tests of the monitor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from retraining.core.monitoring import distributions
from retraining.core.naming.vertex import deployed_model_id

CHAMPION_KEY = "20131120t030000z-0123456789ab"
CHAMPION_ID = deployed_model_id(CHAMPION_KEY)
SCHEMA = (
    "endpoint:STRING deployed_model_id:STRING logging_time:TIMESTAMP request_id:NUMERIC "
    "request_payload:STRING:REPEATED response_payload:STRING:REPEATED"
)
UNSEEN = "unseen"


def counted(
    features: Mapping[str, Mapping[Any, int]],
    *,
    asked_in: str = "now",
    instances: int | None = None,
    largest: int = 1,
    is_large: bool = False,
    garbage: int = 0,
    answers: Mapping[str, Mapping[str | None, int]] | None = None,
    model: str = CHAMPION_ID,
) -> list[dict[str, Any]]:
    """Rows of the query: counts by feature and bucket, `unseen` for values that the baseline does not have, a hash.

    Requests are of one instance unless `largest` says otherwise; `instances` are as many as the first feature has.
    """
    if instances is None:
        first = next(iter([*features.values(), *(answers or {}).values()]), {})
        instances = sum(first.values()) + garbage
    common = {"asked_in": asked_in, "is_large": is_large, "largest": largest, "garbage": 0}
    whole = {"feature": "", "bucket": None, "unseen": False, "instances": instances, "deployed_model_id": model}
    rows = [common | whole | {"requests": -(-instances // largest), "garbage": garbage}]
    for owner, counts in (("", features), (model, answers or {})):
        for name, buckets in counts.items():
            for bucket, count in buckets.items():
                is_new = bucket in (UNSEEN, distributions.UNSEEN)
                place = None if is_new or bucket is None else str(bucket)
                unseen = is_new or isinstance(bucket, int)
                found = {"feature": name, "bucket": place, "unseen": unseen, "instances": count}
                rows.append(common | found | {"deployed_model_id": owner, "requests": count})
    return rows


def logged(
    at: datetime, instances: Sequence[Any], answers: Sequence[Any] | None = None, *, model: str = CHAMPION_ID
) -> dict[str, Any]:
    """A row of the request log: one request with its answers; text stays as it is."""
    said = answers if answers is not None else [0.1] * len(instances)
    return {
        "endpoint": "1",
        "deployed_model_id": model,
        "logging_time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "request_id": 1,
        "request_payload": [item if isinstance(item, str) else json.dumps(item) for item in instances],
        "response_payload": [item if isinstance(item, str) else json.dumps(item) for item in said],
    }
