"""Limits of distances: an explicit one of the file, or one by how far the champion's days are from each other.

In: the spec, what the champion's run says of a feature or of its answers, and a distance with what chance makes of it
at this window's size. Out: the limit, whether the distance is over it, and a sentence on where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents.checks import UsualDistance
from retraining.core.documents.monitoring import CalibratedLimit
from retraining.core.spec.model import ModelSpec

LEAST_DAYS = 14
"""Of the training split, with as many rows as a window must have: two of each weekday."""
LEAST_HOURS = 24
"""Of a window: what days are usually apart says nothing of mornings and evenings."""
SMALLEST = {"jensen_shannon": 0.02, "l_infinity": 0.05}
"""Beyond what is usual; a smaller change is of no interest. A normal that moves by half a deviation is 0.044 away."""
WITHOUT_DAYS = 0.1
"""In the place of what is usual and what is of interest, where no usual distance is known."""
DEFAULT = 0.3
"""With statistics or an evaluation of an earlier release: the default of Vertex AI Model Monitoring."""
EARLIER = "earlier"
"""In the subject of prediction drift from earlier answers, after the label."""
_DAYS = {"training_days": "training days", "test_days": "test days"}
OF_FILE = "of the file"
OF_EARLIER_RELEASE = "the default until the next retraining: the champion's run does not say how far days are apart"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What a distance is held to, and `source`, where that comes from.

    With `usual`, the lower end of the distance's interval must be over that, too.
    """

    value: float
    source: str
    usual: float | None = None

    def is_exceeded(self, value: float, low: float | None) -> bool:
        """Return whether a distance is strictly over the limit, and its interval over what is usual."""
        is_unusual = self.usual is None or (low is not None and low > self.usual)
        return value > self.value and is_unusual


@dataclass(frozen=True, kw_only=True)
class Distances:
    """What is held to a limit: `measure` of features or answers, from the champion's days or between two windows.

    Each of two windows is as far from the champion's days, so that they are twice as far from each other.
    """

    measure: str
    of_answers: bool = False
    of_windows: bool = False


def explicit_limit(spec: ModelSpec, subject: str) -> float | None:
    """Return the file's own threshold of a feature or label; None: it has none."""
    limits = spec.monitoring.drift
    return limits.features.get(subject, limits.threshold)


def limit_of(spec: ModelSpec, subject: str, calibrated: CalibratedLimit | None) -> Limit:
    """Return the limit of a signal.

    Args:
        spec: The model.
        subject: The feature or label.
        calibrated: Its limit where the file gives none; None: the default holds.
    """
    if (given := explicit_limit(spec, subject)) is not None:
        return Limit(value=given, source=OF_FILE)
    if calibrated is None:
        return Limit(value=DEFAULT, source=OF_EARLIER_RELEASE)
    return Limit(value=calibrated.value, source=_source(spec, calibrated), usual=calibrated.usual)


def calibrate(
    spec: ModelSpec, distances: Distances, usual: UsualDistance | None, chance: float
) -> CalibratedLimit | None:
    """Return a limit by how far days are apart; None: the champion's run is of an earlier release, and knows nothing.

    Args:
        spec: The model.
        distances: Whose limit it is.
        usual: How far the training days of a feature, or the test days of answers, are apart.
        chance: What sampling alone makes of no distance, at the sizes that are compared.
    """
    if usual is None:
        return None
    days, chance = usual.days, round(chance, 6)
    if spec.monitoring.window_hours < LEAST_HOURS:
        return CalibratedLimit(source="short_window", days=days, usual=0.0, least=WITHOUT_DAYS, chance=chance)
    if days < LEAST_DAYS:
        return CalibratedLimit(source="few_days", days=days, usual=0.0, least=WITHOUT_DAYS, chance=chance)
    return CalibratedLimit(
        source="test_days" if distances.of_answers else "training_days",
        days=days,
        usual=round(min(1.0, (2 if distances.of_windows else 1) * usual.distance), 6),
        least=SMALLEST[distances.measure],
        chance=chance,
    )


def _source(spec: ModelSpec, limit: CalibratedLimit) -> str:
    parts = f"{limit.least:g} of interest and {limit.chance:.3f} of chance"
    if limit.source in _DAYS:
        return f"the sum of {limit.usual:.3f} usual by {limit.days} {_DAYS[limit.source]}, {parts}"
    if limit.source == "short_window":
        return f"the sum of {parts}: a window of {spec.monitoring.window_hours} hours is shorter than a day"
    days = f"{limit.days} days of the champion's run with {spec.monitoring.min_requests} rows"
    return f"the sum of {parts}: {days} are fewer than the {LEAST_DAYS} that say what is usual"
