"""Which job may begin next: what counts, who is before whom, and what is stored."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core.jobs.claims import SETTLED_AFTER
from retraining.core.jobs.job import Job
from retraining.core.jobs.places import (
    FORGOTTEN_AFTER,
    HEARD_WITHIN,
    Answer,
    Cause,
    Entry,
    Places,
    Running,
    Wish,
    ask,
    room,
)

NOW = datetime(2026, 1, 1, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EMPTY = Places(entries={})
LIMITS = {"machines": 4, "NVIDIA_L4": 2}


def wish(machines: int = 1, cause: Cause = Cause.RUN, priority: int = 5, **others: int) -> Wish:
    needs = {"jobs": 1, "machines": machines, **others}
    return Wish(model="late", task="train", cause=cause, priority=priority, needs=needs)


def waits(asked: Wish, since: datetime = NOW, **changes: Any) -> Entry:
    return replace(Entry(wish=asked, since=since, heard=NOW), **changes)


def runs(machines: int, created: datetime = NOW - timedelta(hours=1), **others: int) -> list[Running]:
    return [Running(takes={"machines": machines, **others}, created=created)]


def answer(asked: Wish, running: dict[str, list[Running]] | None = None, **entries: Entry) -> Answer:
    return ask(Places(entries=entries), "own", asked, LIMITS, running or {}, NOW)


def test_a_job_begins_where_there_is_room_and_is_counted_from_then_on() -> None:
    found = answer(wish(2), {"a": runs(2)})
    assert found.granted
    assert room(found.places, LIMITS, {"a": runs(2)}, NOW) == {"machines": 0, "NVIDIA_L4": 2}
    assert not answer(wish(3), {"a": runs(2)}).granted


def test_a_job_that_is_listed_counts_once_and_an_earlier_one_of_its_key_beside_it() -> None:
    begun = Places(entries={"own": waits(wish(2), begun=NOW)})
    assert room(begun, LIMITS, {"own": runs(2, created=NOW)}, NOW)["machines"] == 2
    assert room(begun, LIMITS, {"own": runs(2, created=NOW - 10 * MINUTE)}, NOW)["machines"] == 0


def test_a_place_comes_free_when_no_job_of_it_can_land_any_more() -> None:
    begun = waits(wish(4), begun=NOW - SETTLED_AFTER + MINUTE)
    assert not answer(wish(1), a=begun).granted
    assert answer(wish(1), a=replace(begun, begun=NOW - SETTLED_AFTER)).granted


def test_who_waits_for_accelerators_holds_nobody_back_who_needs_none() -> None:
    """Of what both need room is set aside; also where a limit was lowered below what runs."""
    taken = {"a": runs(1, NVIDIA_L4=2)}
    before = waits(wish(1, NVIDIA_L4=1), since=NOW - MINUTE)
    assert answer(wish(2), taken, before=before).granted
    assert not answer(wish(3), taken, before=before).granted
    assert answer(wish(1), {"a": runs(1, NVIDIA_L4=5)}).granted


@pytest.mark.parametrize(
    ("other", "is_before"),
    [
        (waits(wish(4), since=NOW - MINUTE), True),
        (waits(wish(4), since=NOW + MINUTE), False),
        (waits(wish(4, priority=6), since=NOW + 29 * MINUTE), True),
        (waits(wish(4, priority=6), since=NOW + 31 * MINUTE), False),
        (waits(wish(4, Cause.BACKFILL, priority=10), since=NOW - 60 * MINUTE), False),
        (waits(wish(4, Cause.BACKFILL), since=NOW - 361 * MINUTE), True),
        (waits(wish(4, Cause.SCORING), since=NOW - MINUTE), True),
        (waits(wish(4), since=NOW - MINUTE, heard=NOW - HEARD_WITHIN), False),
        (waits(wish(5), since=NOW - MINUTE), False),
    ],
    ids=["earlier", "later", "urgent", "late", "backfill", "long", "scoring", "silent", "never fits"],
)
def test_room_is_set_aside_for_whoever_is_before(other: Entry, is_before: bool) -> None:
    assert answer(wish(1), other=other).granted is not is_before


def test_the_order_of_two_never_changes_while_they_wait() -> None:
    first, second = waits(wish(priority=9), since=NOW), waits(wish(), since=NOW - 30 * MINUTE)
    for minutes in range(0, 15, 5):
        later = NOW + minutes * MINUTE
        assert [key for key, _ in Places(entries={"b": second, "a": first}).waiting(later)] == ["a", "b"]


def test_what_says_nothing_new_need_not_be_written() -> None:
    full = {"a": runs(4)}
    first = answer(wish(1), full)
    assert first.news
    assert not ask(first.places, "own", wish(1), LIMITS, full, NOW + 4 * MINUTE).news
    assert ask(first.places, "own", wish(1), LIMITS, full, NOW + 5 * MINUTE).news
    assert ask(first.places, "own", wish(1, priority=6), LIMITS, full, NOW + MINUTE).news


def test_since_when_it_waits_is_kept_and_counts_anew_for_the_job_that_follows_one() -> None:
    full, before = {"a": runs(4)}, NOW - 60 * MINUTE
    assert answer(wish(1), full, own=waits(wish(1), since=before)).since == before
    refused = waits(wish(1), since=before, begun=NOW - SETTLED_AFTER - MINUTE)
    assert answer(wish(1), full, own=refused).since == before
    assert answer(wish(1), full, own=replace(refused, begun=NOW - HEARD_WITHIN)).since == NOW


def test_a_job_that_ended_gives_its_own_place_back_and_no_later_one() -> None:
    job = Job(name="j", state="JOB_STATE_FAILED", labels={}, created=NOW)
    begun = Places(entries={"own": waits(wish(2), begun=NOW - MINUTE)})
    assert begun.left("own", job) == EMPTY
    again = Places(entries={"own": waits(wish(2), begun=NOW + 5 * MINUTE)})
    assert again.left("own", job) == again
    waiting = Places(entries={"own": waits(wish(2))})
    assert waiting.left("own", job) == waiting


def test_what_is_stored_is_read_again_and_what_is_old_is_forgotten() -> None:
    places = Places(entries={"a": waits(wish(2)), "b": waits(wish(1), begun=NOW)}, closed_until=NOW)
    assert Places.parse(places.to_bytes(), "gs://b/x.json", NOW) == places
    assert places.kept(NOW + FORGOTTEN_AFTER).entries == {}


def test_times_of_a_clock_that_is_wrong_count_from_now_on() -> None:
    ahead = Places(entries={"a": waits(wish(2), since=NOW + timedelta(days=9), heard=NOW + timedelta(days=9))})
    read = Places.parse(ahead.to_bytes(), "gs://b/x.json", NOW)
    assert read.entries["a"] == waits(wish(2))


@pytest.mark.parametrize(
    "broken", ["{", "[]", "{}", '{"entries": 1, "closed": null}', "wish", "begun", "cause", "needs"]
)
def test_what_cannot_be_read_counts_as_full_until_nothing_of_it_can_land(broken: str) -> None:
    text = broken
    if broken.isalpha():
        values = json.loads(Places(entries={"a": waits(wish(2))}).to_bytes())
        entry = values["entries"]["a"]
        inner = entry if broken in entry else entry["wish"]
        inner[broken] = "later"
        text = json.dumps(values)
    read = Places.parse(text.encode(), "gs://b/x.json", NOW)
    assert not ask(read, "own", wish(1), LIMITS, {}, NOW + SETTLED_AFTER - MINUTE).granted
    assert ask(read, "own", wish(1), LIMITS, {}, NOW + SETTLED_AFTER).granted
