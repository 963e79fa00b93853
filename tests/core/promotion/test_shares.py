"""Whose share of an endpoint's traffic is whose: on the way to a new version, and on the way back."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.core.naming.vertex import deployed_model_id
from retraining.core.promotion import ramp
from tests.support.small_rollout import MINE, MODEL, OLD_RUN, before, rollout, version

OLD, HAND = "30", "77"
DEPLOYED = {MINE: f"{MODEL}@4", OLD: f"{MODEL}@3", HAND: "projects/p/locations/r/models/other@1"}


@pytest.mark.parametrize(
    ("before", "percent", "expected"),
    [
        ({}, 1, {"new": 100}),
        ({"old": 100}, 1, {"new": 1, "old": 99}),
        ({"old": 100}, 100, {"new": 100}),
        ({"a": 90, "b": 10}, 10, {"new": 10, "a": 81, "b": 9}),
        ({"a": 50, "b": 50}, 1, {"new": 1, "a": 50, "b": 49}),
        ({"a": 99, "b": 1}, 50, {"new": 50, "a": 50}),
    ],
)
def test_the_others_keep_their_shares_in_proportion(before, percent: int, expected) -> None:
    """And all add up to 100."""
    found = ramp.split(before, "new", percent)
    assert found == expected
    assert sum(found.values()) == 100


@pytest.mark.parametrize(
    ("traffic", "percent", "expected"),
    [
        ({OLD: 70, HAND: 30}, 10, {MINE: 10, OLD: 60, HAND: 30}),
        ({OLD: 70, HAND: 30}, 100, {MINE: 70, HAND: 30}),
        ({OLD: 1, HAND: 99}, 50, {MINE: 1, HAND: 99}),
        ({HAND: 100}, 10, {MINE: 10, HAND: 90}),
    ],
    ids=["a step", "all", "little is left", "nothing else serves"],
)
def test_what_a_person_deployed_keeps_its_share(traffic: dict[str, int], percent: int, expected: Any) -> None:
    """Only where it has all of it, so that a version could not be asked, it gives some."""
    others = ramp.persons(traffic, own={OLD})
    found = ramp.with_version(before(traffic=traffic, others=others), MINE, percent)
    assert found == expected
    assert sum(found.values()) == 100


@pytest.mark.parametrize(
    ("noted", "now", "gone", "expected"),
    [
        ({OLD: 100}, {MINE: 10, OLD: 90}, (), {OLD: 100}),
        ({OLD: 70, HAND: 30}, {MINE: 10, OLD: 60, HAND: 30}, (), {OLD: 70, HAND: 30}),
        ({OLD: 100}, {MINE: 10, OLD: 60, HAND: 30}, (), {OLD: 70, HAND: 30}),
        ({OLD: 100}, {MINE: 10, HAND: 90}, (), {OLD: 10, HAND: 90}),
        ({OLD: 100}, {MINE: 10, HAND: 90}, (OLD,), {HAND: 100}),
        ({OLD: 100}, {MINE: 100}, (), {OLD: 100}),
        ({OLD: 100}, {MINE: 100}, (OLD,), None),
        ({"9": 100}, {MINE: 100}, (), {OLD: 100}),
        ({}, {MINE: 100}, (), {}),
        ({}, {MINE: 60, HAND: 40}, (OLD,), {HAND: 100}),
        ({OLD: 100}, {OLD: 20, HAND: 80}, (), {OLD: 20, HAND: 80}),
    ],
    ids=[
        "as it was left",
        "with a person's share",
        "a person put one there",
        "and took the champion's share",
        "and took the champion away",
        "all",
        "nobody else is there",
        "the champion under another id",
        "the first",
        "the first, and a person's",
        "without a share",
    ],
)
def test_the_way_back_leaves_what_a_person_did(noted: Any, now: Any, gone: Any, expected: Any) -> None:
    """The version's share goes to what it was to replace; None: it is the only one that answers."""
    deployed = {key: name for key, name in DEPLOYED.items() if key not in gone}
    others = ramp.persons(noted, own={OLD, "9"})
    found = ramp.without_version(rollout(before=before(traffic=noted, others=others)), now, deployed)
    assert found == expected
    assert not found or sum(found.values()) == 100


def test_what_a_rollout_may_replace_is_what_runs_made_and_the_champion() -> None:
    """A person's deployed model of the champion's version is replaced as any champion."""
    made = deployed_model_id(OLD_RUN)
    deployed = {made: f"{MODEL}@2", OLD: f"{MODEL}@3", HAND: f"{MODEL}@1"}
    versions = [version("2"), version("3", run_key=""), version("1", run_key="")]
    assert ramp.own_models(deployed, versions, f"{MODEL}@3") == {made, OLD}
    assert ramp.own_models(deployed, versions, None) == {made}
