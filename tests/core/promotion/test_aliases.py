"""Which alias goes where."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retraining.core.naming.run_keys import RunKey
from retraining.core.promotion import aliases
from tests.support.small_decision import decide, scores
from tests.support.small_rollout import OLD_RUN, PLAN, rollout, version

NEWER_RUN = str(RunKey.of(datetime(2013, 11, 21, 3, tzinfo=UTC), "newer"))
MINE = version("4", run_key=PLAN.run_key)


@pytest.mark.parametrize(
    ("verdict", "challenger", "champion", "expected"),
    [
        pytest.param("record", None, None, ("as-of-20131120",), id="a backfill only records"),
        pytest.param("reject", None, None, (), id="a rejected one gets none"),
        pytest.param("promote", None, None, ("challenger", "default"), id="no champion has default"),
        pytest.param("promote", version("2"), version("3"), ("challenger",), id="a champion keeps default"),
        pytest.param("promote", version("5", run_key=NEWER_RUN), None, (), id="a newer challenger stays"),
        pytest.param("promote", version("5", run_key=""), None, ("challenger", "default"), id="a person's gives way"),
    ],
)
def test_aliases_follow_from_the_verdict(verdict, challenger, champion, expected):
    decision = decide(PLAN, scores(0.8)).model_copy(update={"verdict": verdict})
    assert aliases.aliases_of_verdict(PLAN, decision, MINE, challenger, champion) == expected


def test_a_champion_that_is_registered_again_is_no_challenger():
    """What named the version was deleted, and its run cleared."""
    decision = decide(PLAN, scores(0.8)).model_copy(update={"verdict": "promote"})
    champion = version("4", "champion", "default", run_key=PLAN.run_key)
    assert aliases.aliases_of_verdict(PLAN, decision, champion, None, champion) == ()


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (("champion", "challenger"), ["default", "-challenger"]),
        (("champion", "default"), []),
        (("champion", "default", "challenger"), ["-challenger"]),
    ],
)
def test_a_champion_has_default_and_is_no_challenger(held, expected):
    assert aliases.changes_of_office(version("4", *held)) == expected


def test_only_the_champion_that_is_replaced_becomes_previous():
    assert aliases.becomes_previous(rollout(), version("3"))
    assert not aliases.becomes_previous(rollout(), version("9"))
    assert not aliases.becomes_previous(rollout(), None)


def _wishes(*versions):
    return [(change.version.version_id, change.wish) for change in aliases.changes_back(rollout(), versions)]


def test_everything_that_moved_goes_back():
    versions = (version("4", "champion", "default"), version("3", "previous"), version("2"))
    assert _wishes(*versions) == [("3", "champion"), ("3", "default"), ("4", "challenger"), ("2", "previous")]


def test_what_somebody_else_moved_stays():
    versions = (version("4"), version("3"), version("5", "champion", "default", "challenger", run_key=OLD_RUN))
    assert _wishes(*versions) == []


def test_the_first_champion_loses_the_alias():
    first = rollout().model_copy(update={"before": rollout().before.model_copy(update={"champion_id": None})})
    changes = aliases.changes_back(first, [version("4", "champion", "challenger")])
    assert [(change.version.version_id, change.wish) for change in changes] == [("4", "-champion")]
