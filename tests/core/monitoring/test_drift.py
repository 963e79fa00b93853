"""Skew, drift and prediction drift of counted requests, and why they are not judged."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from retraining.core.documents import Evaluation
from retraining.core.documents.checks import UsualDistance
from retraining.core.documents.monitoring import Signal
from retraining.core.monitoring.distributions import AnswerBaseline, answer_baselines, jensen_shannon
from retraining.core.monitoring.drift import judge_log, judge_shifts
from retraining.core.monitoring.request_log import LogWindows, read_requests, render_requests_sql
from tests.support.contracts import EXAMPLES
from tests.support.request_log import CHAMPION_ID, UNSEEN, counted
from tests.support.small_model import AS_OF, make_plan, make_spec, make_statistics
from trainer.contract.documents import BinaryLabel
from trainer.objective.curves import draw_curves
from trainer.objective.quality import count_answers

TABLE = "my-project.retraining.requests_late"
SAME = {str(index): 15 for index in range(1, 21)}
"""As in training: even in twenty bins."""
LIKE_TRAINING = {"carrier": {"UA": 225, "AA": 75}, "distance": SAME}
LATE = BinaryLabel(name="late", kind="binary")
EVEN_SCORES = AnswerBaseline(name="late", output="score", edges=(0.0, 0.5), shares=(0.0, 0.5, 0.5), rows=200)


def judge(
    *rows: dict[str, Any],
    spec: Any = None,
    answers: tuple[AnswerBaseline, ...] = (),
    usual: UsualDistance | None = None,
) -> list[Signal]:
    """All signals of these rows of the query."""
    the_plan = make_plan(spec)
    train = make_statistics(the_plan).splits["train"]
    features = {name: item.model_copy(update={"usual": usual}) for name, item in train.features.items()}
    train = train.model_copy(update={"features": features})
    log = read_requests(rows, [item.name for item in answers])
    return list(judge_shifts(the_plan.spec, train, log, answers, CHAMPION_ID))


def states(signals: list[Signal]) -> dict[tuple[str, str], str]:
    """State, or its name, by kind and subject."""
    return {(item.kind, item.subject): item.reason or item.state for item in signals}


def find(signals: list[Signal], kind: str, subject: str) -> Signal:
    return next(item for item in signals if (item.kind, item.subject) == (kind, subject))


def with_limits(**limits: Any) -> Any:
    return make_spec(monitoring={"drift": limits})


def test_requests_like_training_and_like_a_week_ago_are_ok() -> None:
    found = judge(*counted(LIKE_TRAINING), *counted(LIKE_TRAINING, asked_in="earlier"))
    assert set(states(found).values()) == {"ok"}
    assert {item.kind for item in found} == {"skew", "drift"}
    assert all(item.value == pytest.approx(0, abs=1e-9) and item.examples == 300 for item in found)


def test_a_category_that_training_had_not_counts_with_its_whole_share() -> None:
    found = find(judge(*counted({"carrier": {"UA": 135, "AA": 45, UNSEEN: 120}, "distance": SAME})), "skew", "carrier")
    assert (found.state, found.measure) == ("exceeded", "l_infinity")
    assert found.value == pytest.approx(0.4)
    assert found.message == (
        "carrier is 0.400 (0.345 to 0.455) from the training data (limit 0.3, the default until the next retraining: "
        "the champion's run does not say how far days are apart), most of it values that are new."
    )
    assert found.low is not None
    assert found.low < 0.4


def test_missing_categories_count_as_a_value() -> None:
    found = find(judge(*counted({"carrier": {"UA": 135, "AA": 45, None: 120}, "distance": SAME})), "skew", "carrier")
    assert found.value == pytest.approx(0.4)
    assert "missing values" in found.message


def test_numbers_that_moved_out_of_every_bin_are_as_far_as_can_be() -> None:
    found = judge(*counted({"carrier": {"UA": 225, "AA": 75}, "distance": {"0": 300}}))
    assert find(found, "skew", "distance").value == pytest.approx(1)


def test_the_limit_is_that_of_the_training_days_and_of_so_many_requests() -> None:
    """The same distance is over it where days are alike, and not where they differ; the sentence says why."""
    counts = counted({"carrier": {"UA": 135, "AA": 45, UNSEEN: 120}, "distance": SAME})
    alike, different = (
        find(judge(*counts, usual=UsualDistance(days=60, distance=distance)), "skew", "carrier")
        for distance in (0.01, 0.3)
    )
    assert alike.value == pytest.approx(0.4)
    assert (alike.state, different.state) == ("exceeded", "ok")
    assert alike.calibrated is not None
    assert alike.threshold == alike.calibrated.value == pytest.approx(0.06 + alike.calibrated.chance)
    assert alike.message.startswith(
        f"carrier is 0.400 ({alike.low:.3f} to {alike.high:.3f}) from the training data (limit {alike.threshold:.3g}, "
        "the sum of 0.010 usual by 60 training days, 0.05 of interest and "
    )
    assert different.threshold == pytest.approx(0.35 + alike.calibrated.chance)


def test_a_threshold_of_the_file_is_obeyed_and_the_calibrated_limit_recorded() -> None:
    counts = counted({"carrier": {"UA": 135, "AA": 45, UNSEEN: 120}, "distance": SAME})
    usual = UsualDistance(days=60, distance=0.01)
    found = find(judge(*counts, spec=with_limits(threshold=0.5), usual=usual), "skew", "carrier")
    assert (found.state, found.threshold) == ("ok", 0.5)
    assert "(limit 0.5, of the file)" in found.message
    assert found.calibrated is not None
    assert found.calibrated.usual == 0.01


@pytest.mark.parametrize(("limit", "state"), [(0.5, "ok"), (0.49, "exceeded")])
def test_only_strictly_more_than_the_threshold_is_skew(limit: float, state: str) -> None:
    counts = {"carrier": {"UA": 150, "AA": 50, UNSEEN: 200}, "distance": dict.fromkeys(SAME, 20)}
    found = find(judge(*counted(counts), spec=with_limits(threshold=limit)), "skew", "carrier")
    assert (found.value, found.state) == (0.5, state)


def test_a_feature_may_have_its_own_threshold() -> None:
    spec = with_limits(threshold=0.1, features={"carrier": 1.0})
    found = judge(*counted({"carrier": {UNSEEN: 300}, "distance": {"0": 300}}), spec=spec)
    assert (find(found, "skew", "carrier").state, find(found, "skew", "distance").state) == ("ok", "exceeded")


def test_drift_is_from_the_earlier_window_and_skew_from_training() -> None:
    """All has been as it is for a week: it differs from training, and from nothing since."""
    new = {"carrier": {UNSEEN: 300}, "distance": SAME}
    found = states(judge(*counted(new), *counted(new, asked_in="earlier")))
    assert (found["skew", "carrier"], found["drift", "carrier"]) == ("exceeded", "ok")
    back = states(judge(*counted(LIKE_TRAINING), *counted(new, asked_in="earlier")))
    assert (back["skew", "carrier"], back["drift", "carrier"]) == ("ok", "exceeded")


def test_the_earlier_window_is_whole_weeks_before() -> None:
    """A Saturday against a Saturday."""
    for hours, days in ((1, 7), (24, 7), (168, 7), (169, 14)):
        spec = make_spec(monitoring={"window_hours": hours})
        windows = LogWindows.before(spec, AS_OF)
        assert windows.earlier_end == AS_OF - timedelta(days=days)
        assert windows.earlier_end <= windows.start
    with pytest.raises(ValueError, match="a part of itself"):
        make_spec(monitoring={"window_hours": 24, "drift": {"reference_hours": 23}})


# --- named states ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "because", "words"),
    [
        ([], "no_traffic", "No request was logged in the last 24 hours."),
        (counted({"carrier": {UNSEEN: 199}}), "too_few", "199 instances in the last 24 hours are too few"),
        (counted({"carrier": {UNSEEN: 220}}, garbage=230), "garbage", "230 of 450 instances in the last 24 hours"),
        (
            counted({"carrier": {UNSEEN: 5000}}, is_large=True, largest=5000) + counted({"carrier": {"UA": 90}}),
            "giant_batch",
            "One request brought 5000 of 5090 instances",
        ),
    ],
    ids=["no-traffic", "too-few", "garbage", "giant-batch"],
)
def test_what_cannot_be_judged_says_why(rows: Any, because: str, words: str) -> None:
    """One signal of each kind, none exceeded."""
    found = judge(*rows)
    assert states(found) == {(kind, ""): because for kind in ("skew", "drift", "prediction_drift")}
    assert all(words in item.message and item.state == "not_judged" for item in found)


def test_a_giant_batch_is_left_out_where_the_rest_is_enough() -> None:
    """And it is said, once; a hundred large requests are no giant."""
    giant = counted({"carrier": {UNSEEN: 5000}}, is_large=True, largest=5000)
    assert find(judge(*giant, *counted(LIKE_TRAINING)), "skew", "carrier").state == "ok"
    log = read_requests([*giant, *counted(LIKE_TRAINING)], [])
    _, warning = judge_log(make_spec(), log, None)
    assert (warning.reason, warning.state) == ("giant_batch", "exceeded")
    assert warning.value == pytest.approx(5000 / 5300)
    many = counted({"carrier": {UNSEEN: 12_800}}, is_large=True, largest=128)
    assert find(judge(*many), "skew", "carrier").state == "exceeded"
    assert len(judge_log(make_spec(), read_requests(many, []), None)) == 1


def test_a_feature_that_is_gone_is_named_and_never_exceeded() -> None:
    gone = {"carrier": {"UA": 225, "AA": 75}, "distance": {None: 300}}
    found = judge(*counted(gone), *counted(LIKE_TRAINING, asked_in="earlier"))
    assert states(found)["skew", "distance"] == states(found)["drift", "distance"] == "feature_gone"
    assert find(found, "skew", "distance").message.startswith("distance is missing")
    back = judge(*counted(LIKE_TRAINING), *counted(gone, asked_in="earlier"))
    assert states(back)["drift", "distance"] == "no_reference"
    almost = judge(*counted({**gone, "distance": {None: 299, "1": 1}}))
    assert states(almost)["skew", "distance"] == "exceeded"


@pytest.mark.parametrize("earlier", [0, 199])
def test_without_enough_earlier_requests_there_is_no_drift(earlier: int) -> None:
    before = counted({"carrier": {"UA": earlier}}, asked_in="earlier") if earlier else []
    found = states(judge(*counted(LIKE_TRAINING), *before))
    assert found["drift", ""] == "no_reference"
    assert found["skew", "carrier"] == "ok"


def test_garbage_is_said_when_it_is_more_than_one_in_a_hundred() -> None:
    for garbage, said in ((3, 0), (4, 1)):
        log = read_requests(counted(LIKE_TRAINING, garbage=garbage), [])
        assert [item.reason for item in judge_log(make_spec(), log, None)[1:]] == ["garbage"] * said


def test_a_log_without_what_cloud_monitoring_counted_has_wrong_times() -> None:
    """Or logging is off; fewer than could be judged may be left out by sampling."""
    for requests, because in ((None, "no_traffic"), (199, "no_traffic"), (200, "clock_skew")):
        (found,) = judge_log(make_spec(), read_requests([], []), requests)
        assert (found.reason, found.state) == (because, "not_judged")


def test_requests_of_the_future_are_said() -> None:
    log = read_requests([*counted(LIKE_TRAINING), *counted({"carrier": {"UA": 7}}, asked_in="astray")], [])
    found = judge_log(make_spec(), log, None)[1]
    assert (found.reason, found.value, found.message) == (
        "clock_skew",
        7,
        "7 requests were logged in the future: the clock of what logs them is wrong.",
    )


# --- answers ---------------------------------------------------------------------------------------------------------


def test_answers_are_held_against_the_test_days_and_the_earlier_window() -> None:
    even, high = {"late": {"1": 150, "2": 150}}, {"late": {"1": 0, "2": 300}}
    found = judge(
        *counted(LIKE_TRAINING, answers=high),
        *counted(LIKE_TRAINING, asked_in="earlier", answers=even),
        answers=(EVEN_SCORES,),
    )
    # P = (½, ½), Q = (0, 1): ½ · ½ log2 2 + ½ [½ log2(⅔) + log2(4/3)] = 0.311278
    for subject in ("late", "late earlier"):
        signal = find(found, "prediction_drift", subject)
        assert signal.state == "exceeded"
        assert signal.value == pytest.approx(0.311278, abs=1e-6)


def test_answers_of_other_versions_are_kept_apart() -> None:
    """They are traffic, and no drift of the champion's answers."""
    others = counted({}, answers={"late": {"2": 5000}}, model="7")
    found = judge(*counted(LIKE_TRAINING, answers={"late": {"1": 150, "2": 150}}), *others, answers=(EVEN_SCORES,))
    assert states(found)["prediction_drift", "late"] == "ok"
    assert states(found)["prediction_drift", "late earlier"] == "no_reference"


def test_a_champion_that_answered_too_little_is_not_judged() -> None:
    found = judge(*counted(LIKE_TRAINING, answers={"late": {"2": 199}}), answers=(EVEN_SCORES,))
    assert states(found)["prediction_drift", "late"] == "too_few"


def test_a_champion_without_an_evaluation_has_no_reference() -> None:
    unknown = AnswerBaseline(name="late", output="score", edges=(0.0, 0.5))
    found = judge(*counted(LIKE_TRAINING, answers={"late": {"2": 300}}), answers=(unknown,))
    assert states(found)["prediction_drift", "late"] == "no_reference"


# --- the query -------------------------------------------------------------------------------------------------------


def test_the_query_has_the_windows_and_the_baselines_edges() -> None:
    the_plan = make_plan()
    windows = LogWindows.before(the_plan.spec, AS_OF)
    query = render_requests_sql(the_plan.spec, TABLE, make_statistics(the_plan), windows, answers=(EVEN_SCORES,))
    parameters = {parameter.name: parameter.value for parameter in query.parameters}
    assert parameters["window_start"] == "2013-11-19T03:00:00Z"
    assert parameters["window_end"] == "2013-11-20T03:00:00Z"
    assert parameters["earlier_start"] == "2013-11-12T03:00:00Z"
    assert parameters["earlier_end"] == "2013-11-13T03:00:00Z"
    # The least and the greatest number of training are not at the very edge.
    assert parameters["edges_1"] == pytest.approx(tuple(float(edge) for edge in range(21)))
    assert parameters["edges_1"][0] < 0 < 20 < parameters["edges_1"][-1]
    assert parameters["values_0"] == ("UA", "AA")
    assert parameters["edges_answer_0"] == (0.0, 0.5)
    assert parameters["large_batch"] == 100
    assert query.sql.count(f"`{TABLE}`") == 1


def test_a_feature_the_champion_did_not_know_is_left_out() -> None:
    the_plan = make_plan()
    statistics = make_statistics(the_plan)
    train = statistics.splits["train"]
    known = {"carrier": train.features["carrier"]}
    cut = statistics.model_copy(
        update={"splits": {**statistics.splits, "train": train.model_copy(update={"features": known})}}
    )
    query = render_requests_sql(the_plan.spec, TABLE, cut, LogWindows.before(the_plan.spec, AS_OF))
    assert "distance" not in query.sql
    log = read_requests(counted({"carrier": {"UA": 225, "AA": 75}}), [])
    found = judge_shifts(the_plan.spec, cut.splits["train"], log, (), CHAMPION_ID)
    assert [(item.kind, item.subject) for item in found] == [("skew", "carrier"), ("drift", "")]


def test_scores_of_rare_events_are_told_apart() -> None:
    """Twice as high and still low: far by what the evaluation counted, nothing in the equal bins of an earlier one."""
    random = np.random.default_rng(5)
    scores = random.beta(1, 200, 20_000)
    curves = asdict(draw_curves((random.random(20_000) < scores).astype(float), scores))
    example = json.loads((EXAMPLES / "evaluation__duel.json").read_text())
    found = {}
    for name, told in (("counted", asdict(count_answers(LATE, scores))), ("equal bins", None)):
        example["challenger"] |= {"curves": curves, "counted": told}
        evaluation = Evaluation.parse(json.dumps(example))
        train = make_statistics(make_plan()).splits["train"]
        (baseline,) = answer_baselines(make_spec(), train, evaluation)
        for factor in (1, 2):
            counts = np.bincount(
                np.searchsorted(baseline.edges, factor * scores, "right"), minlength=len(baseline.shares)
            )
            found[name, factor] = jensen_shannon(baseline.shares, (counts / len(scores)).tolist())
    assert found["counted", 1] == 0
    assert found["counted", 2] > 0.05
    assert found["equal bins", 2] < 1e-3
