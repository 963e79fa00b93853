"""Old versions go from the registry unless something points to them."""

from __future__ import annotations

import pytest

from retraining.core.promotion.versions import Version
from retraining.core.retention.versions import reason_to_keep, versions_to_delete
from tests.support import small_rollout


def version(number: int, *aliases: str, deployed: bool = False) -> Version:
    return Version(
        model_name="projects/p/locations/r/models/late",
        version_id=str(number),
        aliases=aliases,
        labels={"retraining-run": f"20131120t030000z-{number:012x}"},
        artifact_uri="gs://bucket/late/runs/x/training/model",
        deployed=deployed,
    )


def doomed(versions, keep=2, at_work=(), rollout=None):
    found = versions_to_delete("late", versions, keep, at_work, rollout)
    return [item.version_name.rpartition("@")[2] for item in found]


def test_the_newest_stay_and_older_ones_go_oldest_first():
    assert doomed([version(number) for number in (9, 2, 11, 10, 1)]) == ["1", "2", "9"]


@pytest.mark.parametrize("alias", ["champion", "previous", "default", "as-of-20131120", "mine"])
def test_an_alias_keeps_a_version(alias):
    assert doomed([version(1, alias), version(2), version(3), version(4)]) == ["2"]


def test_a_deployment_and_a_run_at_work_keep_a_version():
    at_work = version(2).run_key
    assert doomed([version(1, deployed=True), version(2), version(3), version(4), version(5)], at_work=[at_work]) == [
        "3"
    ]


@pytest.mark.parametrize("state", ["going", "ramping", "proven", "returning", "done", "ended"])
def test_no_version_goes_while_the_champion_is_being_changed(state):
    rollout = small_rollout.rollout(state)
    gone = ["1"] if state == "ended" else []
    assert doomed([version(number) for number in (1, 2, 3)], rollout=rollout) == gone
    assert (reason_to_keep(version(1), rollout) is None) is bool(gone)
