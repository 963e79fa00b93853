"""What a task that waits for a job costs: slot seconds for each hour that a job works.

In: the seconds that one look holds a worker slot, as a night measured them. Out: the slot seconds by the product's own
schedule of looks (`retraining.core.jobs.waits`), for jobs that last as long as Vertex AI's do and the local cloud's do
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from retraining.core.jobs import waits

WATCH_S = 10
"""The setting RETRAINING_WATCH_S by default."""
WAKE_INTERVAL_S = 60
"""The setting RETRAINING_WAKE_INTERVAL_S by default."""
JOB_MINUTES = (10, 60)


@dataclass(frozen=True, kw_only=True)
class WatchCost:
    """What watching one job costs.

    Attributes:
        job_minutes: From the job's creation to its end.
        looks: How often a task came into a slot after the first time, in which it made the job.
        slot_s: Seconds in a slot, those of the first time only as far as the job is watched.
        slot_s_per_job_hour: The same for an hour of such jobs.
        seen_late_s: From the job's end to the look that saw it.
    """

    job_minutes: int
    looks: int
    slot_s: float
    slot_s_per_job_hour: float
    seen_late_s: float


def cost_of_watching(job_minutes: int, look_s: float) -> WatchCost:
    """Return what watching a job costs by the product's schedule.

    Args:
        job_minutes: How long the job lasts.
        look_s: Seconds that a look holds a slot, beside those that it watches.
    """
    lasts_s, looks, slot_s = job_minutes * 60.0, 0, 0.0
    age_s = _watched_until(0.0, lasts_s)
    slot_s += age_s
    while age_s < lasts_s:
        age_s += waits.sleep_for(timedelta(seconds=age_s), WAKE_INTERVAL_S) + look_s
        looks += 1
        until_s = _watched_until(age_s, lasts_s)
        slot_s += look_s + until_s - age_s
        age_s = until_s
    return WatchCost(
        job_minutes=job_minutes,
        looks=looks,
        slot_s=slot_s,
        slot_s_per_job_hour=slot_s * 60 / job_minutes,
        seen_late_s=age_s - lasts_s,
    )


def _watched_until(age_s: float, lasts_s: float) -> float:
    """Return a job's age at the end of a look that began at an age: once it has ended, nobody watches it."""
    if age_s >= lasts_s:
        return age_s
    return min(lasts_s, age_s + waits.watch_for(timedelta(seconds=age_s), WATCH_S))
