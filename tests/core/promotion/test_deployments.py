"""May a run's version be deployed."""

from __future__ import annotations

import pytest

from retraining.core.documents import EvaluateRequest
from retraining.core.errors import ContractError
from retraining.core.jobs import requests
from retraining.core.promotion import comparison, deployments
from tests.support.refusals import refuses
from tests.support.small_decision import CHAMPION, decide, scores
from tests.support.small_rollout import MINE, MODEL, PLAN, rollout, version

FIRST = decide(PLAN, scores(0.8))
AGAINST_3 = decide(PLAN, scores(0.8), scores(0.7))


def test_a_promoted_version_may_be_deployed():
    assert FIRST.verdict == AGAINST_3.verdict == "promote"
    assert deployments.reason_against(PLAN, FIRST, None) is None
    assert deployments.reason_against(PLAN, AGAINST_3, version("3")) is None


def test_what_is_champion_already_may_be_deployed_on():
    assert deployments.reason_against(PLAN, FIRST, version("4", run_key=PLAN.run_key)) is None


@pytest.mark.parametrize(
    ("plan", "decision", "champion", "reason"),
    [
        pytest.param(PLAN.model_copy(update={"mode": "backfill"}), FIRST, None, "a backfill", id="a backfill"),
        pytest.param(PLAN, FIRST.model_copy(update={"verdict": "reject"}), None, "Nothing deployed. ", id="rejected"),
        pytest.param(PLAN.model_copy(update={"deploy": False}), FIRST, None, "Param deploy", id="not asked to"),
        pytest.param(PLAN, AGAINST_3, None, "no version is champion now", id="the champion is gone"),
        pytest.param(PLAN, AGAINST_3, version("9"), "version 9 is champion now", id="another champion"),
        pytest.param(
            PLAN,
            AGAINST_3,
            version("9", run_key=f"{PLAN.run_key[:16]}-{'f' * 12}"),
            "not older than this run's",
            id="a champion as new",
        ),
    ],
)
def test_why_nothing_is_deployed(plan, decision, champion, reason):
    against = deployments.reason_against(plan, decision, champion)
    assert against is not None
    assert reason in against


def test_the_outcome_says_who_served_before():
    done = deployments.deployed(PLAN, rollout("done"), "projects/p/locations/r/endpoints/late")
    assert done.message.startswith("Version 4 serves")
    assert "after version 3" in done.message
    assert done.traffic == {MINE: 100}
    assert done.previous_version_name == f"{MODEL}@3"
    nothing = deployments.nothing_deployed(PLAN, "Nothing deployed: so.")
    assert (nothing.deployed, nothing.message, nothing.traffic) == (False, "Nothing deployed: so.", {})


def _request(champion=CHAMPION):
    request = requests.evaluation_job(PLAN, champion).request
    assert isinstance(request, EvaluateRequest)
    return request


def test_a_comparison_needs_both_models():
    request = _request()
    ours, theirs = comparison.models_of(request)
    comparison.require_challenger(request, [ours])
    assert comparison.missing_champion(request, [ours, theirs]) is None
    assert comparison.missing_champion(request, [ours]) == CHAMPION
    with refuses(ContractError, found="challenger's model"):
        comparison.require_challenger(request, [theirs])


def test_a_comparison_with_nobody_needs_one_model():
    request = _request(None)
    assert len(comparison.models_of(request)) == 1
    assert comparison.missing_champion(request, []) is None


@pytest.mark.parametrize(("asked", "way_out"), [(True, "trigger again with Force"), (False, "clear evaluate")])
def test_a_champion_that_is_gone_has_a_way_out(asked, way_out):
    refusal = str(comparison.champion_is_gone(PLAN.run_key, CHAMPION, "manual__1", asked=asked))
    assert "DAG run manual__1" in refusal
    assert f"version 3 and {way_out}" in refusal
    assert "its DAG run" in str(comparison.champion_is_gone("k", CHAMPION, None, asked=asked))
