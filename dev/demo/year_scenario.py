"""What happens when in the replay of a year: `year/scenario.json`, read into values.

Comes in: the file. Goes out: steps of some days each, with what is wrong in them; the model's spec for the replay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent / "year"
DRIFT, OUTAGE, SILENCE = "drift", "outage", "silence"


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happens to the data.

    Attributes:
        kind: `drift`: the source sends something else; `outage`: `column` is missing in requests; `silence`: none come.
        day: The first day of it, since the start.
        until: The day after its last one; None: it stays.
        column: Of an outage.
        words: For a person.
    """

    kind: Literal["drift", "outage", "silence"]
    day: int
    until: int | None
    column: str | None
    words: str

    def holds(self, day: int) -> bool:
        """Return whether it is so on a day."""
        return self.day <= day and (self.until is None or day < self.until)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The replay as it is planned.

    Attributes:
        start: When the first model is trained, and the first day begins.
        step_days: The monitor looks at the end of so many days.
        days_per_month: A month of the replay.
        requests_per_day: Flights that are asked about, as far as there are so many.
        instances_per_request: Of one request.
        events: What happens.
        spec: Changes of the model's file, by its sections.
    """

    start: datetime
    step_days: int
    days_per_month: int
    requests_per_day: int
    instances_per_request: int
    events: tuple[Event, ...]
    spec: Mapping[str, Any]

    def steps(self, months: int) -> Iterator[int]:
        """Yield the first day of each step."""
        return iter(range(0, months * self.days_per_month - self.step_days + 1, self.step_days))

    def at(self, day: int) -> datetime:
        """Return the moment at which a day begins."""
        return self.start + timedelta(days=day)

    def events_in(self, first: int) -> list[Event]:
        """Return what happens in a step."""
        return [event for event in self.events if any(event.holds(first + day) for day in range(self.step_days))]

    def drift_begins(self) -> datetime:
        """Return when the source begins to send something else; without a drift, when nobody looks any more."""
        days = [event.day for event in self.events if event.kind == DRIFT]
        return self.at(min(days, default=3650))


def read_scenario() -> Scenario:
    """Read the file."""
    values = json.loads((FOLDER / "scenario.json").read_bytes())
    events = tuple(Event(**event) for event in values.pop("events"))
    return Scenario(**{**values, "start": datetime.fromisoformat(values["start"]), "events": events})


def merge(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Change nested values in place; what is no section is replaced."""
    for name, change in changes.items():
        if isinstance(change, Mapping) and isinstance(values.get(name), dict):
            merge(values[name], change)
        else:
            values[name] = change
