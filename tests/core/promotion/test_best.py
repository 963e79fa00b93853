"""The best champion of late: losses add up against it, whatever each of them was alone."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from retraining.core import documents as d
from retraining.core.documents.evaluation import GoldenScores
from retraining.core.jobs import requests
from retraining.core.jobs.requests import Best
from retraining.core.jobs.scores import scoring_jobs
from retraining.core.promotion import gates
from retraining.core.promotion.best import best_of_late
from retraining.core.promotion.comparison import reason_not_to_ask
from tests.support.small_decision import CHAMPION, evaluation, metrics, scores
from tests.support.small_model import AS_OF, make_plan, make_spec

ERROR = 0.0025
"""Standard error of a difference of AUC on the flights' 6,443 test rows."""


def plan_with(**promote):
    """Return the plan of a model that tolerates a loss of 0.05 against the champion."""
    section = {"metric": "auc", "min_value": 0.4, "promote": {"min_gain": -0.05, **promote}}
    return make_plan(make_spec(evaluation=section))


def request_of(plan, best=requests.NO_OTHER, champion=CHAMPION, **how):
    """Return what the judge is asked."""
    return requests.beside_best(plan, requests.evaluation_job(plan, champion, **how), best).request


def difference(mean, metric="auc", error=ERROR):
    """Return a measured difference."""
    ends = {"low": mean - 1.96 * error, "high": mean + 1.96 * error}
    return d.Difference(metric=metric, mean=mean, deviation=error, confidence=0.95, samples=500, **ends)


def champion_of(night):
    """Return the model that was made in a night before this run's."""
    key = f"{AS_OF - timedelta(days=200 - night):%Y%m%dt%H%M%Sz}-0123456789ab"
    return gates.champion_of(f"projects/p/models/late@{night}", str(night), f"gs://b/{night}/model", key)


def judge(plan, ours, theirs, *, another=False, golden=None, request=None, metric="auc", **found):
    """Return the gates of one run; `another`: whether the best of late is another than the champion."""
    request = request or request_of(plan, Best(model=champion_of(1) if another else None, plan=plan))
    judged = evaluation(plan, ours, theirs, metric=metric).model_copy(update=found)
    if golden is not None:
        shard = d.Shard(uri="gs://b/golden", sha256="0" * 64, rows=500)
        frozen = GoldenScores(rows=500, shards=(shard,), challenger=metrics(0.7), champion=None, difference=golden)
        judged = judged.model_copy(update={"golden": frozen})
    decision = gates.decide(plan, request, judged, {})
    return {gate.gate: gate for gate in decision.gates}


def walk(plan, nights=100, step=0.002):
    """Return the champion's AUC after nights of challengers that are each a little worse than the champion."""
    chance, worth = random.Random(1), {"0": 0.72}
    champion, made = champion_of(0), None

    def measured(ours, theirs):
        return difference(ours - theirs + chance.gauss(0, ERROR))

    for night in range(1, nights + 1):
        best = best_of_late(*made) if made else None
        request = request_of(plan, Best(model=best, plan=plan if best else None), champion)
        value = worth[champion.version_id] - step
        judged = evaluation(plan, scores(value), scores(worth[champion.version_id])).model_copy(
            update={"difference": measured(value, worth[champion.version_id])}
        )
        if best:
            there = worth[best.version_id]
            judged = judged.model_copy(update={"best": metrics(there), "best_difference": measured(value, there)})
        if gates.decide(plan, request, judged, {}).verdict == "promote":
            champion, made = champion_of(night), (request, judged)
            worth[champion.version_id] = value
    return worth[champion.version_id]


def test_small_losses_do_not_add_up():
    """The field's figure: in 100 nights from 0.72 to 0.52, where only the last champion is remembered."""
    assert walk(plan_with(max_loss_from_best=1)) == pytest.approx(0.52)
    assert walk(plan_with()) >= 0.72 - 0.01 - 5 * ERROR


def test_a_champion_that_surely_beat_the_best_is_the_best():
    """What it has surely beaten is forgotten; what it may have beaten by chance is not."""
    plan = plan_with()
    request = request_of(plan)
    for mean, remembered in ((0.01, None), (0.003, CHAMPION), (-0.003, CHAMPION)):
        judged = evaluation(plan, scores(0.7), scores(0.7)).model_copy(update={"difference": difference(mean)})
        assert best_of_late(request, judged) == remembered
    assert best_of_late(None, None) is None
    assert best_of_late(request, evaluation(plan, scores(0.7))) is None


def test_the_best_goes_on_from_night_to_night_until_it_is_surely_beaten():
    plan, best = plan_with(), champion_of(1)
    request = request_of(plan, Best(model=best, plan=plan))
    judged = evaluation(plan, scores(0.7), scores(0.69)).model_copy(
        update={"difference": difference(0.01), "best": metrics(0.7), "best_difference": difference(0.001)}
    )
    assert best_of_late(request, judged) == best
    assert best_of_late(request, judged.model_copy(update={"best_difference": difference(0.01)})) is None
    unscored = judged.model_copy(update={"best": None, "best_difference": None})
    assert best_of_late(request, unscored) is None, "it surely beat the champion that it met"


def test_the_gate_names_the_loss_and_the_version():
    found = judge(
        plan_with(), scores(0.7), scores(0.7), another=True, best=metrics(0.72), best_difference=difference(-0.02)
    )
    assert not found["best"].passed
    assert found["best"].message == (
        "auc surely loses more than 0.01 against the best champion of late (version 1): 0.020 on the test rows"
    )
    found = judge(
        plan_with(), scores(0.7), scores(0.7), another=True, best=metrics(0.71), best_difference=difference(-0.012)
    )
    assert found["best"].passed


def test_where_the_champion_is_the_best_its_own_difference_is_bounded():
    sure = judge(plan_with(), scores(0.68), scores(0.7), difference=difference(-0.02))
    assert [gate for gate in sure if not sure[gate].passed] == ["best"]
    assert "the champion, the best of late (version 3)" in sure["best"].message
    assert judge(plan_with(max_loss_from_best=0.03), scores(0.68), scores(0.7), difference=difference(-0.02))[
        "best"
    ].passed


def test_the_frozen_set_remembers_too_unless_the_test_rows_speak_for_the_challenger():
    loss, plan = difference(-0.02), plan_with()
    stopped = judge(plan, scores(0.7), scores(0.7), difference=difference(-0.001), golden=loss)["best"]
    assert not stopped.passed
    assert "0.020 on the frozen set" in stopped.message
    assert judge(plan, scores(0.7), scores(0.7), difference=difference(0.02), golden=loss)["best"].passed


def test_a_loss_is_bounded_by_a_share_of_the_best():
    section = {"metric": "log_loss", "max_value": 1, "promote": {"min_gain": -0.05}}
    plan = make_plan(make_spec(evaluation=section))
    ours, theirs = scores(0.7, log_loss=0.41), scores(0.7, log_loss=0.40)
    for mean, passed in ((0.01, False), (0.004, True), (-0.01, True)):
        change = difference(mean, "log_loss", error=0.001)
        gate = judge(plan, ours, theirs, difference=change, metric="log_loss")["best"]
        assert gate.passed is passed
        assert "over 0.004 log_loss" in gate.expected


def test_who_cannot_be_asked_is_not_judged_with_the_reason():
    plan, gone = plan_with(), Best(model=champion_of(1), skipped="the model of version 1 is gone: no gs://b/1/model")
    request = request_of(plan, gone)
    assert request.best is None
    gate = judge(plan, scores(0.7), scores(0.7), request=request)["best"]
    assert (gate.passed, gate.found) == (True, "not judged")
    assert "version 1 is gone" in gate.message
    unread = judge(plan, scores(0.7), scores(0.7), another=True, best_skipped="version 1 answers with 3 classes")[
        "best"
    ]
    assert (unread.passed, unread.found) == (True, "not judged")
    few = d.Evidence(units="positives", count=3, effective=3, needed=20)
    short = judge(plan, scores(0.7), scores(0.7), another=True, best=metrics(0.7), best_evidence=few)["best"]
    assert short.found == "not judged"
    assert "3 positives, 20 are needed" in short.message


def test_a_best_that_may_have_seen_the_test_days_is_not_asked():
    plan = plan_with()
    later = plan.model_copy(
        update={"window": plan.window.model_copy(update={"test_start": plan.window.test_start + timedelta(days=1)})}
    )
    request = request_of(plan, Best(model=champion_of(1), plan=later))
    assert request.best is None
    assert "it has seen some of them" in request.best_skipped


def test_a_request_of_an_earlier_release_has_no_such_gate():
    plan = plan_with()
    request = request_of(plan).model_copy(update={"judge_best": False})
    assert "best" not in judge(plan, scores(0.7), scores(0.7), request=request)
    assert "judge_best" not in request.to_json()


def test_an_image_that_made_the_champion_too_scores_both_in_one_job():
    """A model of another framework; a further image would be one more paid job, and is not started."""
    plan = plan_with()
    best = Best(model=champion_of(1), plan=plan, image="trees")
    request = request_of(plan, best, champion_is_own=True)
    jobs = scoring_jobs(plan, request, "trees", best_image="trees")
    assert [asked.model_uri for asked in jobs["champion"].request.models] == [CHAMPION.model_uri, "gs://b/1/model"]
    assert list(jobs) == ["champion"]
    for own, reason in (("trees", None), ("boosted", "made by another image, boosted"), (None, None)):
        found = reason_not_to_ask(champion_of(1), planned=True, stored=True, own_image=own, images=["trees", None])
        assert (found is None) if reason is None else (reason in found)
