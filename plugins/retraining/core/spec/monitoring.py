"""The section `monitoring` of a model's YAML: what is watched, how often, and when that is reason to retrain."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from retraining.core.spec.cron import Cron
from retraining.core.spec.section import ColumnName, Count, Section


class DriftLimits(Section):
    """Distance over which (strictly) a feature has drifted. 0.3 is Vertex AI Model Monitoring's default.

    `features` gives single features a threshold of their own. 1 never counts: right for what changes by itself
    within the window, such as the day of the week or the air pressure.
    """

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.3
    features: dict[ColumnName, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)


class PerformanceLimits(Section):
    """How much of its metric the champion may lose, between comparisons, before that is reason for a study."""

    max_drop: Annotated[float, Field(gt=0, le=10**12)] = 0.03


class Monitoring(Section):
    """What is watched, how often, and how soon another retraining may be ordered.

    `max_age_days` is refused in a file: nothing acts on it yet.
    """

    schedule: Cron | None = "0 * * * *"
    window_hours: Annotated[int, Field(ge=1, le=8760)] = 24
    min_requests: Count = 200
    drift: DriftLimits = Field(default_factory=DriftLimits)
    performance: PerformanceLimits = Field(default_factory=PerformanceLimits)
    max_age_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    cooldown_hours: Annotated[float, Field(ge=0, le=87_600)] = 24
