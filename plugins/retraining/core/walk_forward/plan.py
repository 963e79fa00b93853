"""Which dates and days a walk-forward takes, what it may cost, and the plans of its runs; refused before it is paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from retraining.core.documents.plan import Estimate, Plan, Window
from retraining.core.documents.walk_forward import MOST_VERSIONS, WalkForwardPlan
from retraining.core.errors import PlanError
from retraining.core.naming import storage
from retraining.core.naming.run_keys import RunKey
from retraining.core.settings import Settings
from retraining.core.spec.data import Data
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import YamlValues

EVERY, DATES = 7, 13
"""What a form that says nothing takes: a quarter of a year, week by week."""
HORIZONS = (1, 7, 14, 28)
LEAST_DATES = 2
MOST_DAYS = 400
"""That are scored: a year, and the time after its last date."""
AT_ONCE = 4
SEARCH = "tuning.search"


@dataclass(frozen=True, kw_only=True)
class AskedWalk:
    """What a form asks for.

    Attributes:
        first: As of which day the first version is trained; None: so that there are 13 dates.
        last: The last one; None: the newest that has days for all horizons after it.
        every: Days between two.
        horizons: Ages in days up to which versions are summed up.
    """

    first: date | None = None
    last: date | None = None
    every: int = EVERY
    horizons: tuple[int, ...] = HORIZONS


@dataclass(frozen=True, kw_only=True)
class Days:
    """The dates of versions, and the days that are scored: `[dates[0], until)`."""

    dates: tuple[date, ...]
    until: date


def require_walkable(spec: ModelSpec) -> None:
    """Refuse a model that no walk-forward can be made of.

    Raises:
        PlanError: Its examples have no time, its tables cannot be read as they were, or its own image scores it.
    """
    where = f"{spec.name}, walk-forward"
    if spec.data.split == "hash":
        raise PlanError(where, "data.split: hash", "examples with a time: a version is scored on days after its own")
    if spec.data.time_travel:
        raise PlanError(
            where,
            "data.time_travel",
            "a query that tells by the rows' own times what was known @as_of",
            "Take FOR SYSTEM_TIME out of the query and data.time_travel out of the spec",
        )
    if spec.training.runtime.scoring_image is not None:
        raise PlanError(
            where,
            f"a model that its own image scores ({spec.training.runtime.scoring_image})",
            "a SavedModel, which the evaluation job can ask",
            "Compare its backfills in their evaluations instead",
        )


def read_day(text: str | None, name: str) -> date | None:
    """Return a day of the form; None: it is empty.

    Raises:
        PlanError: It is no day.
    """
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise PlanError(f"Param {name}", repr(text), "a day such as 2013-11-20", "Correct it") from error


def known_until(data: Data, today: date, ended: tuple[date, date] | None) -> date:
    """Return the first day whose labels are not known yet.

    Args:
        data: Of the spec.
        today: Of the DAG run.
        ended: First and last day of data that ended; None: it goes on.
    """
    known = today - timedelta(days=data.label_lag_days)
    return known if ended is None else min(known, ended[1] + timedelta(days=1))


def choose_days(asked: AskedWalk, spec: ModelSpec, today: date, ended: tuple[date, date] | None) -> Days:
    """Return dates and days.

    Args:
        asked: By the form.
        spec: The model.
        today: Of the DAG run.
        ended: First and last day of data that ended; None: it goes on.

    Raises:
        PlanError: They are not to be had: in the future, before the data, too many, too few, or in no order.
    """
    known, lag = known_until(spec.data, today, ended), timedelta(days=spec.data.label_lag_days)
    step, tail = timedelta(days=asked.every), timedelta(days=max(asked.horizons))
    last = asked.last or known - tail
    first = asked.first or last - (DATES - 1) * step
    _require_order(asked, spec, first, last)
    if last >= known:
        raise PlanError(
            "Param last",
            f"{last}, and of that day and the ones after it no label is known",
            f"a day before {known}, better one before {known - tail + timedelta(days=1)}",
            f"Take last: {known - tail}",
        )
    if ended and (begins := first - lag - timedelta(days=spec.data.window_days)) < ended[0]:
        raise PlanError(
            "Param first",
            f"{first}, whose examples would begin on {begins}",
            f"a window within the data, which begins on {ended[0]} (data.days)",
            f"Take first: {ended[0] + lag + timedelta(days=spec.data.window_days)}, or a shorter data.window_days",
        )
    dates = tuple(first + number * step for number in range((last - first) // step + 1))
    until = min(dates[-1] + tail, known)
    if len(dates) > MOST_VERSIONS or (until - first).days > MOST_DAYS:
        raise PlanError(
            "Params first, last, every",
            f"{len(dates)} versions and {(until - first).days} days",
            f"at most {MOST_VERSIONS} versions and {MOST_DAYS} days",
            "Take fewer, or two walk-forwards",
        )
    return Days(dates=dates, until=until)


def _require_order(asked: AskedWalk, spec: ModelSpec, first: date, last: date) -> None:
    if (last - first).days < asked.every * (LEAST_DATES - 1):
        raise PlanError(
            f"{spec.name}, Params first, last, every",
            f"{first} to {last}, every {asked.every} days: fewer than {LEAST_DATES} versions",
            f"at least {asked.every * (LEAST_DATES - 1)} days between them",
            "Take an earlier first or a later last",
        )
    if any(later <= earlier for earlier, later in zip(asked.horizons, asked.horizons[1:], strict=False)):
        raise PlanError(
            "Param horizons", str(list(asked.horizons)), "each longer than the one before", "Sort them, each once"
        )


def at_midnight(day: date) -> datetime:
    """Return 00:00 UTC of a day: as of when its version is trained."""
    return datetime.combine(day, time(), UTC)


def as_of_all_labels(data: Data, until: date) -> datetime:
    """Return as of when all labels of the days before one are known."""
    return at_midnight(until + timedelta(days=data.label_lag_days))


def days_plan(plan: Plan, days: Days, asked: AskedWalk, settings: Settings) -> Plan:
    """Return the plan of the run that exports the days that are scored: they are its test split.

    Args:
        plan: Of a run of the model, as of when all their labels are known.
        days: Which.
        asked: By the form: another request is another walk-forward.
        settings: Where things are.
    """
    window = Window(start=days.dates[0] - timedelta(days=1), end=days.until, test_start=days.dates[0])
    decides = {
        "run": plan.run_key,
        "window": [window.start.isoformat(), window.end.isoformat()],
        "dates": [day.isoformat() for day in days.dates],
        "horizons": list(asked.horizons),
    }
    return _moved(plan, str(RunKey.of(plan.as_of, decides)), settings, window=window)


def version_plan(plan: Plan, settings: Settings) -> Plan:
    """Return the plan of a version's run: that of a backfill, with a folder among the walk-forwards.

    What a walk-forward makes stands in no list of the model's runs, and two that ask for the same version share it.
    """
    return _moved(plan, plan.run_key, settings)


def as_billed(plan: Plan, dag_run_id: str) -> Plan:
    """Return a plan under the key by which a month's budgets know what one DAG run paid for it.

    Walk-forwards that share a version each note what they paid, and none takes the place of another's.
    """
    return plan.model_copy(update={"run_key": str(RunKey.of(plan.as_of, [plan.run_key, dag_run_id]))})


def _moved(plan: Plan, key: str, settings: Settings, **changed: object) -> Plan:
    update: YamlValues = {
        "run_key": key,
        "run_uri": storage.walk_forward_uri(settings.bucket, plan.model, key),
        "results_uri": storage.walk_forward_results_uri(settings.results_bucket, plan.model, key),
        **changed,
    }
    return plan.model_copy(update=update)


def without_search(spec: ModelSpec) -> Mapping[str, Any]:
    """Return the overrides of all runs: hyperparameters are those of the file, not of a search at each date."""
    return {SEARCH: "never"} if spec.tuning else {}


def build_walk_plan(plan: Plan, days: Days, asked: AskedWalk) -> WalkForwardPlan:
    """Return what a walk-forward will do, and say it.

    Args:
        plan: By `days_plan`.
        days: Which.
        asked: By the form.
    """
    count, scored = len(days.dates), (days.until - days.dates[0]).days
    estimated = _times(plan.estimate_usd, count + 1)
    spans = (days.until - days.dates[0]).days + plan.spec.data.window_days + plan.spec.data.label_lag_days
    lines = [
        f"{count} versions, as of each {asked.every} days from {days.dates[0]} to {days.dates[-1]}",
        f"each is scored on all days from its date to {days.until} (exclusive), {scored} days of the first one",
        (
            f"at most {spans} spans and {3 * count + 1} jobs: an export, a training and a scoring of each version, "
            "and the export of the days; what is stored is not made again"
        ),
        _explain_price(estimated),
    ]
    short = days.dates[-1] + timedelta(days=max(asked.horizons))
    if days.until < short:
        lines.append(f"labels are known up to {days.until} (exclusive): the last versions are not scored at all ages")
    return WalkForwardPlan(
        model=plan.model,
        run_key=plan.run_key,
        run_uri=plan.run_uri,
        dates=days.dates,
        every=asked.every,
        days_from=days.dates[0],
        days_until=days.until,
        horizons=asked.horizons,
        jobs=3 * count + 1,
        estimate_usd=estimated,
        explain=tuple(lines),
    )


def _explain_price(estimated: Estimate | None) -> str:
    if estimated is None:
        return "price unknown: a machine has no list price in this region"
    at_most = f"{estimated.at_most:.2f} USD at list prices of {estimated.prices_date}"
    return f"at most {at_most}: each job once, on demand, until its timeout"


def _times(each: Estimate | None, count: int) -> Estimate | None:
    return None if each is None else each.model_copy(update={"at_most": round(each.at_most * count, 2)})
