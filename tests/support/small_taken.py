"""The small model's version of another stage, as a plan says of it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from retraining.core.documents import TakenFrom
from tests.support.small_model import AS_OF

KEY = "20131119t030000z-0123456789ab"


def taken_from(**changes: Any) -> TakenFrom:
    """It was trained a day before; `changes` replace values."""
    values: dict[str, Any] = {
        "stage": "staging",
        "run_uri": f"gs://staging/late/runs/{KEY}",
        "run_key": KEY,
        "version_name": "projects/p/locations/r/models/late@7",
        "as_of": AS_OF - timedelta(days=1),
        "window": {"start": date(2013, 11, 1), "end": date(2013, 11, 18), "test_start": date(2013, 11, 15)},
        "model_uri": f"gs://staging/jobs/late/runs/{KEY}/training/model",
        "model_digest": "a" * 64,
        "hyperparameters": {"learning_rate": 0.01},
        "tuned": False,
        "documents": {"plan": "c" * 64},
    }
    return TakenFrom.model_validate(values | changes)
