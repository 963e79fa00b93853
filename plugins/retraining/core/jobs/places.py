"""Which job may begin next in a region: whatever runs and is about to begin stays within the region's quota.

What runs is what Vertex AI lists, so nothing is kept that could leak. One object per region has the rest: jobs that are
about to begin, each for as long as its create may land (`SETTLED_AFTER`), and those that wait. In: that object as it
was *before* the jobs were listed, the jobs, the limits, the time. Out: whether a job may begin, and the object to write
by generation, so that no two take the last place.

The order: who came first, with a head start by cause and priority. It never changes while somebody waits, so that all
who come more than the longest head start later are behind. For whoever is ahead room is set aside, so that a large job
is not overtaken for ever by small ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from retraining.core.catalog.amounts import Amounts, amounts_of, excess
from retraining.core.catalog.hardware import Hardware
from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError
from retraining.core.jobs.claims import CLOCKS_APART, SETTLED_AFTER
from retraining.core.jobs.job import Job
from retraining.core.naming import vertex

HEARD_WITHIN = timedelta(minutes=15)
"""Of whom nothing was heard for so long, no room is set aside for."""
SAID_EVERY = timedelta(minutes=5)
"""How often somebody who waits says so."""
FORGOTTEN_AFTER = timedelta(days=1)
"""Of whom nothing was heard for so long, the place in the order is lost too."""
PRODUCTION_HEAD_START = timedelta(hours=6)
"""Of what serves today, a nightly run or a scoring, before a backfill or a walk-forward."""
PRIORITY_HEAD_START = timedelta(minutes=30)
"""Of each point of `priority`; nine of them are less than what serves today has before what does not."""


class Cause(StrEnum):
    """Why a job is wanted."""

    RUN = "run"
    SCORING = "scoring"
    MONITOR = "monitor"
    BACKFILL = "backfill"
    WALK_FORWARD = "walk_forward"

    @property
    def is_production(self) -> bool:
        """Whether something that serves today waits for it."""
        return self not in (Cause.BACKFILL, Cause.WALK_FORWARD)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A job that shall begin.

    Attributes:
        model: Whose.
        task: Of the DAG.
        cause: Why.
        priority: 1 to 10.
        needs: What it takes.
    """

    model: str
    task: str
    cause: Cause
    priority: int
    needs: Mapping[str, int]

    @property
    def head_start(self) -> timedelta:
        """How much earlier it counts than it came."""
        return self.priority * PRIORITY_HEAD_START + PRODUCTION_HEAD_START * self.cause.is_production


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A wish as it is stored.

    Attributes:
        wish: What is wanted.
        since: Since when.
        heard: When it was last asked for.
        begun: Since when its job is about to begin; None: it waits.
    """

    wish: Wish
    since: datetime
    heard: datetime
    begun: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Return whether a job of it may still land that no list has."""
        return self.begun is not None and now < self.begun + SETTLED_AFTER

    def still_wanted(self, now: datetime) -> bool:
        """Return whether no job came of it: it waits, or a create was refused or lost a short while ago."""
        return self.begun is None or now < self.begun + HEARD_WITHIN

    def waits(self, now: datetime) -> bool:
        """Return whether it waits, and was heard of."""
        return self.begun is None and now < self.heard + HEARD_WITHIN

    @property
    def order(self) -> datetime:
        """By what those that wait are sorted."""
        return self.since - self.wish.head_start


@dataclass(frozen=True, kw_only=True)
class Places:
    """What is about to begin in a region, and what waits, by the keys of the jobs.

    Attributes:
        entries: Those.
        closed_until: Before that nothing begins: what stood here could not be read, and jobs of it may land.
    """

    entries: Mapping[str, Entry]
    closed_until: datetime | None = None

    def to_bytes(self) -> bytes:
        """Return them as they are stored."""
        values = {"entries": {key: asdict(entry) for key, entry in self.entries.items()}, "closed": self.closed_until}
        return json.dumps(values, default=datetime.isoformat, sort_keys=True).encode()

    @classmethod
    def parse(cls, data: bytes, where: str, now: datetime) -> Places:
        """Read what `to_bytes` gave; what cannot be read counts as full until no job of it can be expected any more."""
        try:
            values = read_object(data, where)
            entries = {str(key): _entry(entry) for key, entry in values["entries"].items()}
            closed = _time(values["closed"])
        except (ContractError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return cls(entries={}, closed_until=now + SETTLED_AFTER)
        return cls(entries={key: _dated(entry, now) for key, entry in entries.items()}, closed_until=closed)

    def without(self, keys: Iterable[str]) -> Places:
        """Return them without some."""
        gone = set(keys)
        return replace(self, entries={key: entry for key, entry in self.entries.items() if key not in gone})

    def kept(self, now: datetime) -> Places:
        """Return them without what says nothing any more."""
        return self.without(key for key, entry in self.entries.items() if now >= entry.heard + FORGOTTEN_AFTER)

    def left(self, key: str, job: Job) -> Places:
        """Return them without the entry whose job has ended; one of a later job stays."""
        entry = self.entries.get(key)
        ended = Running(takes={}, created=job.created)
        return self if entry is None or entry.begun is None or not _is_of(ended, entry) else self.without((key,))

    def waiting(self, now: datetime) -> list[tuple[str, Entry]]:
        """Return those that wait, in their order."""
        waits = [(key, entry) for key, entry in self.entries.items() if entry.waits(now)]
        return sorted(waits, key=lambda each: (each[1].order, each[0]))


def explain_waiting(places: Places, region: str, now: datetime) -> dict[str, list[str]]:
    """Return a sentence for each job that waits for room, by model."""
    found: dict[str, list[str]] = {}
    for place, (_, entry) in enumerate(places.waiting(now)):
        since = f"{entry.since:%Y-%m-%d %H:%M} UTC"
        sentence = f"{entry.wish.task} waits since {since} for room in {region}, {place} before it"
        found.setdefault(entry.wish.model, []).append(sentence)
    return found


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether a job may begin.

    Attributes:
        places: What is to be stored.
        granted: It may, once that is stored.
        since: Since when it waits.
        short: What it waits for, in words.
        ahead: How many are before it.
        news: Whether the places have to be stored.
    """

    places: Places
    granted: bool
    since: datetime
    short: str = ""
    ahead: int = 0
    news: bool = True


def ask(
    places: Places, key: str, wish: Wish, limits: Amounts, running: Mapping[str, Sequence[Running]], now: datetime
) -> Answer:
    """Say whether a job may begin.

    Args:
        places: As they were read before the jobs were listed.
        key: Of the job.
        wish: What it takes, and for whom.
        limits: Of the region.
        running: Jobs by their keys.
        now: The time before all that was looked at.
    """
    places = places.kept(now)
    known = places.entries.get(key)
    if known and known.holds(now):  # it is counted by all others already
        entry = replace(known, wish=wish, heard=now, begun=now)
        return Answer(places=_with(places, key, entry), granted=True, since=known.since)
    entry = Entry(wish=wish, since=known.since if known and known.still_wanted(now) else now, heard=now)
    asked = _with(places, key, entry)
    free = room(asked, limits, running, now)
    before = [each for other, each in asked.waiting(now) if other != key and (each.order, other) < (entry.order, key)]
    for each in before:
        if not excess(each.wish.needs, limits):  # else it never fits, which its own task finds
            free = _less(free, each.wish.needs)
    short = [f"{wish.needs[name]} {name}" for name, left in free.items() if wish.needs.get(name, 0) > max(left, 0)]
    if places.closed_until and now < places.closed_until:
        short = [f"{places.closed_until:%H:%M} UTC, for what stood at its address cannot be read", *short]
    if not short:
        begun = _with(asked, key, replace(entry, begun=now))
        return Answer(places=begun, granted=True, since=entry.since)
    is_news = known is None or replace(known, heard=now) != entry or now >= known.heard + SAID_EVERY
    words = ", ".join(short)
    return Answer(places=asked, granted=False, since=entry.since, short=words, ahead=len(before), news=is_news)


@dataclass(frozen=True, kw_only=True)
class Running:
    """A job that Vertex AI lists: what it takes, and when it was created."""

    takes: Mapping[str, int]
    created: datetime | None


def running_jobs(jobs: Iterable[Job], hardware: Hardware) -> dict[str, list[Running]]:
    """Return the jobs that may still do something, by their keys; those without a key by their names."""
    found: dict[str, list[Running]] = {}
    for job in jobs:
        if job.active:
            each = Running(takes=amounts_of(job.machines, hardware), created=job.created)
            found.setdefault(job.labels.get(vertex.KEY_LABEL, job.name), []).append(each)
    return found


def used(places: Places, running: Mapping[str, Sequence[Running]], now: datetime) -> dict[str, int]:
    """Return what runs, and what is about to begin and no list has."""
    taken: dict[str, int] = {}
    for jobs in running.values():
        for job in jobs:
            taken = _more(taken, job.takes)
    for key, entry in places.entries.items():
        if entry.holds(now) and not any(_is_of(job, entry) for job in running.get(key, ())):
            taken = _more(taken, entry.wish.needs)
    return taken


def room(places: Places, limits: Amounts, running: Mapping[str, Sequence[Running]], now: datetime) -> dict[str, int]:
    """Return what is left of each limit; below 0 where it was lowered, or where jobs began before there was one."""
    return _less(dict(limits), used(places, running, now))


def _is_of(job: Running, entry: Entry) -> bool:
    """Return whether a job is that of an entry, and not an earlier one of the same key."""
    return job.created is None or entry.begun is None or job.created >= entry.begun - CLOCKS_APART


def _more(amounts: Amounts, others: Amounts) -> dict[str, int]:
    return {name: amounts.get(name, 0) + others.get(name, 0) for name in {**amounts, **others}}


def _less(amounts: Amounts, others: Amounts) -> dict[str, int]:
    return {name: amount - others.get(name, 0) for name, amount in amounts.items()}


def _with(places: Places, key: str, entry: Entry) -> Places:
    return replace(places, entries={**places.entries, key: entry})


def _dated(entry: Entry, now: datetime) -> Entry:
    """Return an entry without times that are further ahead than two clocks may be apart."""
    latest = now + CLOCKS_APART
    begun = entry.begun and (now if entry.begun > latest else entry.begun)
    since, heard = (now if each > latest else each for each in (entry.since, entry.heard))
    return replace(entry, since=since, heard=heard, begun=begun)


def _entry(values: Mapping[str, Any]) -> Entry:
    wish, since, heard = values["wish"], _time(values["since"]), _time(values["heard"])
    if since is None or heard is None:
        raise ValueError("an entry without a time")
    needs = {str(name): int(amount) for name, amount in wish["needs"].items()}
    named = {name: str(wish[name]) for name in ("model", "task")}
    asked = Wish(**named, cause=Cause(wish["cause"]), priority=int(wish["priority"]), needs=needs)
    return Entry(wish=asked, since=since, heard=heard, begun=_time(values["begun"]))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
