"""What the page of all models shows: the rows of the stored object that a reader may see."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from croniter import croniter  # type: ignore[import-untyped]  # it has no types

from retraining.core.documents.overview import ModelSummary, Overview
from retraining.core.report.models_page import drawing
from retraining.core.report.models_page.places import Places

A_DAY = timedelta(days=1)
STALE = timedelta(hours=26)
"""Longer than from one daily `maintain` to the next: nothing brought the row up to date."""
OUTCOMES = {
    "promote": "promoted",
    "reject": "rejected",
    "record": "recorded",
    "stopped": "stopped",
    "running": "at work",
}
SIGNALS_NAMED = 3
WAITING = frozenset({"too_few", "no_labels", "no_reference", "no_metrics", "no_champion"})
"""Named states that pass with time, or with what a model is asked: nobody needs to look."""


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A model as a row; `now` is the time of the page."""

    summary: ModelSummary
    now: datetime
    address: str

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
        if self.is_stale or (summary.decision and summary.decision.outcome == "stopped"):
            return "warn"
        return "good" if summary.champion else "calm"

    @property
    def wrong_input(self) -> list[str]:
        """Named states of the monitor's input that a person should look at; before there is a champion none."""
        watch = self.summary.watch
        return [name for name in watch.named if name not in WAITING] if watch and self.summary.champion else []

    @property
    def is_cut_off(self) -> bool:
        """Whether a champion has no endpoint, or nothing of the traffic."""
        return self.summary.champion is not None and not any(share.percent for share in self.summary.traffic)

    @property
    def is_stale(self) -> bool:
        """Whether nothing brought the row up to date for over a day."""
        return self.now - self.summary.refreshed > STALE

    @property
    def age(self) -> str:
        """How old the champion's data are."""
        champion = self.summary.champion
        return age_words(self.summary.moment - champion.as_of) if champion and champion.as_of else ""

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
    def spark_words(self) -> str:
        """The same in words."""
        scores = self.summary.scores
        return f"{self.summary.metric} of {len(scores)} runs, from {scores[0]:.4f} to {scores[-1]:.4f}"

    @property
    def outcome(self) -> str:
        """How the newest run ended."""
        decision = self.summary.decision
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
    def next_run(self) -> str:
        """When the clock starts the next run, UTC."""
        summary = self.summary
        if summary.schedule is None:
            return "not by the clock"
        after = max(self.now, summary.paused_until) if summary.paused_until else self.now
        try:
            tick: datetime = croniter(summary.schedule, after).get_next(datetime)
        except (ValueError, KeyError):
            return "unknown schedule"
        return f"{tick:%Y-%m-%d %H:%M}"


@dataclass(frozen=True, kw_only=True)
class AllModels:
    """The page of all models; its template reads nothing else."""

    overview: Overview
    now: datetime
    places: Places
    readable: Collection[str] | None = None

    @cached_property
    def rows(self) -> list[ModelRow]:
        """The rows that the reader may see: first those that need a look, then by name."""
        rows = [
            ModelRow(summary=summary, now=self.now, address=self.places.model(summary.model))
            for summary in self.overview.models
            if self.readable is None or summary.model in self.readable
        ]
        places = {"bad": 0, "warn": 1}
        return sorted(rows, key=lambda row: (places.get(row.tone, 2), row.summary.model))

    @property
    def looks(self) -> int:
        """How many need a look."""
        return sum(row.needs_a_look for row in self.rows)

    @property
    def refreshed(self) -> tuple[datetime, datetime] | None:
        """When the oldest and the newest row was made."""
        times = [row.summary.refreshed for row in self.rows]
        return (min(times), max(times)) if times else None

    @property
    def cost(self) -> float:
        """What all of their months cost."""
        return sum(row.summary.cost.usd for row in self.rows if row.summary.cost)


def age_words(age: timedelta) -> str:
    """Return an age as people say it: `5 hours`, `1 day`, `21 days`."""
    if age < 2 * A_DAY:
        hours = max(0, round(age / timedelta(hours=1)))
        return f"{hours} hour{'s' if hours != 1 else ''}"
    return f"{age.days} days"
