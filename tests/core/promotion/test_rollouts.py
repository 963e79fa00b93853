"""The change of a champion: what it begins with, when it is tried again, and which way it goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.documents.deployment import Kept, RampStep
from retraining.core.documents.training import Golden
from retraining.core.errors import ContractError
from retraining.core.promotion import rollouts, smoke_tests
from tests.support.refusals import refuses
from tests.support.small_rollout import MINE, MODEL, NOW, PLAN, REGISTRATION, before, rollout, version


def test_a_rollout_begins_with_what_was_before():
    traffic = {"30": 90, MINE: 10}
    found = rollouts.state_before(PLAN.run_key, version("3"), version("2"), version("3"), traffic, {"30"}, again=False)
    assert found == before(traffic={"30": 90})


def test_a_rollout_of_the_champion_itself_goes_back_to_the_one_before():
    found = rollouts.state_before(PLAN.run_key, version("4"), version("3"), version("4"), {}, (), again=True)
    assert (found.champion_id, found.previous_id) == ("3", None)


def test_earlier_smoke_requests_stay_known():
    asked = rollouts.with_smoke_request(rollout(), [MINE], NOW, NOW, 3)
    begun = rollouts.begun(PLAN, REGISTRATION, rollout(smoke_requests=asked), before(), "dag-run", NOW)
    assert begun.smoke_requests == asked
    assert (begun.state, begun.starts, begun.operation) == ("going", 0, None)


def test_what_another_run_left_open_is_settled_first():
    assert rollouts.is_another_runs(rollout("proven"), "another")
    assert not rollouts.is_another_runs(rollout("ended"), "another")
    assert not rollouts.is_another_runs(rollout(), PLAN.run_key)
    assert not rollouts.is_another_runs(None, PLAN.run_key)


def test_a_deployment_without_its_document_is_known_by_its_traffic():
    assert rollouts.is_complete(rollout("ended"), PLAN.run_key, {MINE: 100})
    assert not rollouts.is_complete(rollout("ended"), PLAN.run_key, {"30": 100})
    assert not rollouts.is_complete(None, PLAN.run_key, {MINE: 100})


def test_one_worker_asks_for_a_deployment_at_a_time():
    assert rollouts.is_claimed(rollout(), NOW + rollouts.CLAIM / 2)
    assert not rollouts.is_claimed(rollout(), NOW + rollouts.CLAIM)
    assert not rollouts.is_claimed(rollout(operation="o"), NOW)


def test_what_a_clock_that_is_ahead_wrote_counts_as_none():
    apart, ahead = NOW + rollouts.CLOCKS_DIFFER, NOW + rollouts.CLOCKS_DIFFER + timedelta(seconds=1)
    assert rollouts.is_claimed(rollout(asked=apart), NOW)
    assert not rollouts.is_claimed(rollout(asked=ahead), NOW)
    assert not rollouts.is_silent(rollout(changed=apart), NOW, 60)
    assert rollouts.is_silent(rollout(changed=ahead), NOW, 60)
    steps = (RampStep(percent=10, start=NOW, end=NOW), RampStep(percent=50, start=ahead))
    assert rollouts.right_times(rollout(asked=apart, outage=NOW), NOW) == {}
    wrong = rollout(asked=ahead, outage=ahead, steps=steps)
    right = wrong.model_copy(update=rollouts.right_times(wrong, NOW))
    assert (right.asked, right.outage) == (NOW, NOW)
    assert [step.start for step in right.steps] == [NOW, NOW]


def test_an_outage_has_an_end():
    open_one = rollout(outage=NOW)
    assert rollouts.endless_outage(open_one, NOW + rollouts.OUTAGE_LASTS, "away") is None
    late = NOW + rollouts.OUTAGE_LASTS + timedelta(seconds=1)
    assert "no answer since" in str(rollouts.endless_outage(open_one, late, "away"))
    assert rollouts.endless_outage(rollout(), late, "away") is None


def test_deployments_that_bring_nothing_end():
    assert rollouts.fruitless_starts(rollout(starts=rollouts.MOST_STARTS - 1), "e") is None
    assert "does not have" in str(rollouts.fruitless_starts(rollout(starts=rollouts.MOST_STARTS), "e"))
    assert "no machines" in str(rollouts.failed_start("e", "no machines"))


@pytest.mark.parametrize(
    ("state", "champion", "expected"),
    [
        ("going", version("4"), "returning"),
        ("ramping", version("4"), "returning"),
        ("proven", version("4"), "done"),
        ("proven", version("3"), "returning"),
        ("proven", None, "returning"),
        ("done", version("9"), "done"),
        ("returning", version("4"), "returning"),
    ],
)
def test_which_way_an_open_rollout_goes(state, champion, expected):
    assert rollouts.direction(rollout(state), champion)[0] == expected


def test_who_gives_no_sign_for_long_does_not_come_back():
    late = NOW + rollouts.SILENT + timedelta(seconds=1)
    assert rollouts.is_left(rollout(), late, 60)
    assert not rollouts.is_left(rollout(), NOW, 60)
    assert not rollouts.is_left(rollout("ended"), late, 60)
    assert not rollouts.is_left(rollout(), late, 3600), "sleeps between two looks are longer"
    assert not rollouts.is_left(None, late, 60)


def test_all_others_are_replaced_but_the_one_that_is_kept():
    deployed = {MINE: f"{MODEL}@4", "30": f"{MODEL}@3", "20": f"{MODEL}@2"}
    own = set(deployed)
    assert rollouts.replaced(rollout(), deployed, own).keys() == {"30", "20"}
    assert rollouts.replaced(rollout(), deployed, {MINE, "30"}).keys() == {"30"}, "a person deployed the other"
    kept = rollouts.kept(rollout(), NOW)
    assert kept == Kept(version_name=f"{MODEL}@3", until=NOW + timedelta(hours=24))
    assert rollouts.replaced(rollout(kept=kept), deployed, own).keys() == {"20"}


def test_nothing_is_kept_after_a_first_version_or_where_it_is_not_wanted():
    assert rollouts.kept(rollout(before=before(champion_name=None)), NOW) is None
    assert rollouts.kept(rollout(keep_previous_hours=0), NOW) is None


def test_what_is_kept_is_unclaimed_when_its_time_is_over():
    deployed, ours = {MINE: f"{MODEL}@4", "30": f"{MODEL}@3"}, {MINE, "30"}
    ended = rollout("ended", kept=Kept(version_name=f"{MODEL}@3", until=NOW))
    earlier = NOW - timedelta(seconds=1)
    assert rollouts.unclaimed(deployed, {MINE: 100}, ours, ended, NOW) == ["30"]
    assert rollouts.unclaimed(deployed, {MINE: 100}, ours, ended, earlier) == []
    assert rollouts.unclaimed(deployed, {MINE: 100}, {MINE}, ended, NOW) == [], "a person deployed it"


def test_what_is_kept_stays_so_when_the_next_rollout_comes_to_nothing():
    kept = rollouts.kept(rollout(), NOW)
    next_one = rollouts.begun(PLAN, REGISTRATION, rollout(kept=kept), before(), "dag-run", NOW)
    assert next_one.kept == kept


class _Request:
    """A smoke request as far as it matters: the stored model's own answer."""

    def __init__(self, prediction):
        self.prediction = prediction


def test_the_endpoint_says_what_the_stored_model_says():
    golden = [_Request(0.25), _Request(0.5)]
    found = smoke_tests.require_same_answers("e", [0.25, 0.500005], golden)
    assert (found.requests, round(found.max_abs_error, 7)) == (2, 5e-06)


@pytest.mark.parametrize(("key", "other"), [("smoke-request-0", ""), (-1, 0)])
def test_the_key_of_a_request_comes_back(key, other):
    golden = [Golden(instance={"distance": 1.0, "id": key}, prediction=0.5)]
    found = smoke_tests.require_same_answers("e", [{"score": 0.5, "id": key}], golden)
    assert found.max_abs_error == 0
    with refuses(ContractError, found="id", expected="the same"):
        smoke_tests.require_same_answers("e", [{"score": 0.5, "id": other}], golden)


@pytest.mark.parametrize("prediction", [0.6, float("nan")])
def test_other_answers_are_refused(prediction):
    with pytest.raises(ContractError, match="answers that differ"):
        smoke_tests.require_same_answers("e", [prediction], [_Request(0.5)])
