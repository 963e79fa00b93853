"""What the page of all models shows: the rows of the stored object that a reader may see, so many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from croniter import croniter  # type: ignore[import-untyped]  # it has no types

from retraining.core.documents.overview import ModelSummary
from retraining.core.naming.dags import retrain_dag_id
from retraining.core.report.failures import heading, next_step, one_line, origin, parts_of
from retraining.core.report.models_page import drawing
from retraining.core.report.models_page.places import Places
from retraining.core.report.models_page.reading import ReadModels

ROWS_AT_ONCE = 200
"""Rows that one answer draws; those that need attention are on the first page."""
A_DAY = timedelta(days=1)
STALE = timedelta(hours=26)
"""Longer than from one daily `maintain` to the next: nothing brought the row up to date."""
OUTCOMES = {
    "promote": "promoted",
    "reject": "rejected",
    "record": "recorded",
    "repeated": "nothing new",
    "stopped": "stopped",
    "running": "at work",
}
FIRST = {"bad": 0, "warn": 1}
"""Places of tones before all others."""
SIGNALS_NAMED = 3
WAITING = frozenset({"too_few", "no_labels", "no_reference", "no_metrics", "no_champion"})
"""Named states that pass with time, or with what a model is asked: nobody needs to look."""


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A model as a row; `now` is the time of the page, `waits` which of its jobs wait for room, in sentences."""

    summary: ModelSummary
    now: datetime
    address: str
    waits: Sequence[str] = ()

    @property
    def needs_a_look(self) -> bool:
        """Whether a person should open it."""
        return self.tone in ("bad", "warn")

    @property
    def tone(self) -> str:
        """How it stands: `bad`, `warn` or `good`; `calm` where nothing is known."""
        summary, watch = self.summary, self.summary.watch
        if summary.problem or (watch and watch.severity == "critical") or self.is_cut_off:
            return "bad"
        if watch and (watch.severity == "warning" or watch.exceeded or self.wrong_input):
            return "warn"
        if self.is_stale or summary.failure or (summary.decision and summary.decision.outcome == "stopped"):
            return "warn"
        return "good" if summary.champion else "calm"

    @property
    def wrong_input(self) -> list[str]:
        """Named states of the monitor's input that a person should look at; before there is a champion none."""
        watch = self.summary.watch
        return [name for name in watch.named if name not in WAITING] if watch and self.summary.champion else []

    @property
    def is_cut_off(self) -> bool:
        """Whether a champion has no endpoint where the file wants one, or nothing of the traffic."""
        return (
            self.summary.endpoint
            and self.summary.champion is not None
            and not any(share.percent for share in self.summary.traffic)
        )

    @property
    def is_stale(self) -> bool:
        """Whether nothing brought the row up to date for over a day."""
        return self.now - self.summary.refreshed > STALE

    @property
    def data_age(self) -> str:
        """How old the champion's data are."""
        champion = self.summary.champion
        return describe_age(self.summary.moment - champion.as_of) if champion and champion.as_of else ""

    @property
    def data(self) -> str:
        """Up to when the champion's data reach, and how long ago that is where it is an hour or more."""
        champion = self.summary.champion
        if champion is None or champion.as_of is None:
            return ""
        return f"data of {self.data_age} ago" if self.data_age else f"data up to {champion.as_of:%Y-%m-%d %H:%M}"

    @property
    def score(self) -> float | None:
        """The champion's score, or that of the newest run where it is not known."""
        champion = self.summary.champion
        return champion.score if champion else None

    @property
    def spark(self) -> drawing.Spark | None:
        """The runs' scores."""
        return drawing.spark(self.summary.scores)

    @property
    def spark_description(self) -> str:
        """The same in words."""
        scores = self.summary.scores
        return f"{self.summary.metric} of {len(scores)} runs, from {scores[0]:.4f} to {scores[-1]:.4f}"

    @property
    def why(self) -> str:
        """Why the newest run failed, in a line; empty: it did not."""
        return one_line(self.summary.failure) if self.summary.failure else ""

    @property
    def failure_parts(self) -> list[tuple[str, str]]:
        """The same in its parts, by name."""
        return list(parts_of(self.summary.failure)) if self.summary.failure else []

    @property
    def failure_origin(self) -> str:
        """Which try left it."""
        return origin(self.summary.failure) if self.summary.failure else ""

    @property
    def next_step(self) -> str:
        """What the run-book says of it."""
        return next_step(self.summary.failure) if self.summary.failure else ""

    @property
    def ended_at(self) -> datetime | None:
        """When the newest run failed, or its time; None: there was none."""
        failure, decision = self.summary.failure, self.summary.decision
        return failure.failed_at if failure else decision.as_of if decision else None

    @property
    def outcome(self) -> str:
        """How the newest run ended."""
        decision = self.summary.decision
        if self.summary.failure:
            return heading(self.summary.failure)
        if decision is None:
            return "no run yet"
        waits = decision.outcome == "promote" and not decision.deployed
        return f"{OUTCOMES[decision.outcome]}{', not deployed' if waits else ''}"

    @property
    def watched(self) -> str:
        """What the monitor saw, in a few words."""
        watch = self.summary.watch
        if watch is None:
            return "not watched yet"
        if watch.exceeded:
            more = len(watch.exceeded) - SIGNALS_NAMED
            return f"{', '.join(watch.exceeded[:SIGNALS_NAMED])}{f' and {more} more' if more > 0 else ''}"
        if self.wrong_input:
            return ", ".join(self.wrong_input).replace("_", " ")
        return f"nothing over its limit{f', {watch.unjudged} not judged' if watch.unjudged else ''}"

    @property
    def watch_tone(self) -> str:
        """How that looks."""
        watch = self.summary.watch
        if watch is None:
            return "calm"
        if watch.severity == "critical":
            return "bad"
        return "warn" if watch.exceeded or self.wrong_input or watch.severity == "warning" else "good"

    @property
    def cost(self) -> str:
        """What its runs of the month cost at list price."""
        cost = self.summary.cost
        if cost is None:
            return "-"
        return f"{'at least ' if cost.unpriced else ''}{cost.usd:,.2f} USD"

    @property
    def budget(self) -> str:
        """How much of its month's budget is gone; empty where it has none."""
        budget = self.summary.budget
        if budget is None:
            return ""
        gone = f"{'at least ' if budget.unknown else ''}{budget.spent + budget.reserved:,.2f}"
        return f"{gone} of {budget.usd:,.2f} USD in {budget.month}"

    @property
    def budget_tone(self) -> str:
        """How that looks."""
        return "warn" if self.summary.budget and self.summary.budget.warned else "good"

    @property
    def next_run(self) -> str:
        """When the clock starts the next run, UTC."""
        summary = self.summary
        if summary.schedule is None:
            return "not by the clock"
        after = max(self.now, summary.paused_until) if summary.paused_until else self.now
        try:
            tick: datetime = croniter(summary.schedule, after).get_next(datetime)
        except OverflowError:  # after the end of the calendar, as of a pause until 9999
            return "never"
        except (ValueError, KeyError):
            return "unknown schedule"
        return f"{tick:%Y-%m-%d %H:%M}"


@dataclass(frozen=True, kw_only=True)
class BrokenRow:
    """A model whose row cannot be read: its name, and what is wrong."""

    model: str
    problem: str
    address: str


@dataclass(frozen=True, kw_only=True)
class AllModels:
    """The page of all models; its template reads nothing else.

    Attributes:
        models: Rows of models that the reader may see.
        now: Time of the page.
        places: Where its links lead.
        page: Which rows are drawn, `at_once` of them, counted from 1.
        source: Address of the object that has all rows.
        waiting: Jobs that wait for room in the region, in sentences by model.
        without_row: Models that the reader may see and of which nothing has ended yet.
    """

    models: ReadModels
    now: datetime
    places: Places
    page: int = 1
    at_once: int = ROWS_AT_ONCE
    source: str = ""
    waiting: Mapping[str, Sequence[str]] = field(default_factory=dict)
    without_row: Sequence[str] = ()

    @cached_property
    def rows(self) -> list[ModelRow]:
        """All rows that can be read: first those that need a look, then by name."""
        rows = [
            ModelRow(
                summary=summary,
                now=self.now,
                address=self.places.model(summary.model),
                waits=self.waiting.get(summary.model, ()),
            )
            for summary in self.models.rows
        ]
        return sorted(rows, key=lambda row: (FIRST.get(row.tone, 2), row.summary.model))

    @cached_property
    def broken(self) -> list[BrokenRow]:
        """Rows that cannot be read."""
        return [
            BrokenRow(model=model, problem=problem, address=self.places.model(model))
            for model, problem in sorted(self.models.broken.items())
        ]

    @property
    def count(self) -> int:
        """How many models have a row."""
        return len(self.rows) + len(self.broken)

    @property
    def total(self) -> int:
        """How many models there are, with and without a row."""
        return self.count + len(self.without_row)

    @property
    def new(self) -> list[tuple[str, str | None]]:
        """Models without a row, each with its DAG in Airflow, so many at once."""
        return [(model, self.places.dag(retrain_dag_id(model))) for model in self.without_row[: self.at_once]]

    @property
    def drawn(self) -> list[ModelRow | BrokenRow]:
        """The rows of this page; broken ones come before all others."""
        everything: list[ModelRow | BrokenRow] = [*self.broken, *self.rows]
        start = (self.page - 1) * self.at_once
        return everything[start : start + self.at_once]

    @property
    def parts(self) -> list[tuple[str, str | None]]:
        """Which rows each page has, with its address; None of this one's, and where pages are files."""
        if self.count <= self.at_once:
            return []
        starts = range(0, self.count, self.at_once)
        names = [f"{start + 1} to {min(start + self.at_once, self.count)}" for start in starts]
        return [
            (name, None if number == self.page else self.places.page(number))
            for number, name in enumerate(names, start=1)
        ]

    @property
    def looks(self) -> int:
        """How many need a look."""
        return sum(row.needs_a_look for row in self.rows) + len(self.broken)

    @property
    def drawn_looks(self) -> int:
        """How many of the drawn ones need a look."""
        return sum(isinstance(row, BrokenRow) or row.needs_a_look for row in self.drawn)

    @property
    def waiting_jobs(self) -> int:
        """How many jobs of these models wait for room in their region."""
        return sum(len(row.waits) for row in self.rows)

    @property
    def refreshed(self) -> tuple[datetime, datetime] | None:
        """When the oldest and the newest row was made."""
        times = [row.summary.refreshed for row in self.rows]
        return (min(times), max(times)) if times else None

    @property
    def cost(self) -> str:
        """What all of their months cost, and which months these are; empty where nothing cost anything."""
        costs = [row.summary.cost for row in self.rows if row.summary.cost]
        usd, months = sum(cost.usd for cost in costs), sorted({cost.month for cost in costs})
        if not usd:
            return ""
        of_months = months[0] if len(months) == 1 else f"each model's newest month ({months[0]} to {months[-1]})"
        return f"{'at least ' if any(cost.unpriced for cost in costs) else ''}{usd:,.2f} USD in {of_months}"


def describe_age(age: timedelta) -> str:
    """Return an age as people say it: `5 hours`, `30 hours`, `21 days`; empty of less than half an hour."""
    if age < 2 * A_DAY:
        hours = max(0, round(age / timedelta(hours=1)))
        return f"{hours} hour{'s' if hours > 1 else ''}" if hours else ""
    return f"{age.days} days"
