"""The decision, gate by gate and replayed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core import documents as d
from retraining.core.data import leakage
from retraining.core.errors import ContractError
from retraining.core.jobs import requests
from retraining.core.promotion import gates
from tests.support.refusals import refuses
from tests.support.small_decision import CHAMPION, DIGESTS, decide, evaluation, failed, scores
from tests.support.small_model import AS_OF, make_plan, make_spec


def test_a_better_challenger_is_promoted_and_says_by_how_much(small_plan):
    decision = decide(small_plan, scores(0.684), scores(0.671))
    assert decision.verdict == "promote"
    assert decision.message == (
        "Promoted: auc 0.684 beats the champion's 0.671 by 0.013 (95 % interval 0.006 to 0.020); "
        "no slice is large enough to compare."
    )
    asked = ["mode", "newer_champion", "unseen", "examples", "floor", "gain", "slices"]
    assert [gate.gate for gate in decision.gates] == asked
    assert decision.champion == d.DecisionChampion(version_id="3", run_key=CHAMPION.run_key, as_of=CHAMPION.as_of)
    assert decision.inputs["plan"] == small_plan.digest()
    assert set(decision.inputs) == set(DIGESTS)


def test_a_replay_gives_the_same_bytes(small_plan):
    first, second = (decide(small_plan, scores(0.684), scores(0.671)) for _ in range(2))
    assert first.to_bytes() == second.to_bytes()
    assert d.Decision.parse(first.to_bytes()) == first


def test_the_first_model_needs_the_floor_and_the_base_rate_only(small_plan):
    decision = decide(small_plan, scores(0.684))
    assert decision.verdict == "promote"
    assert decision.message.startswith("Promoted: the first champion of late; auc 0.684 reaches the floor")
    assert decision.champion is None


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        (scores(0.599), "auc 0.599 misses the floor (at least 0.6)"),
        (scores(0.7, log_loss=0.5), "no better than always predicting the base rate (0.5000)"),
        (scores(None), "auc is not defined on these test days"),
    ],
    ids=["floor", "base rate", "one class"],
)
def test_a_model_below_the_floor_is_rejected(small_plan, ours, words):
    decision = decide(small_plan, ours)
    assert decision.verdict == "reject"
    assert failed(decision) == ["floor"]
    assert words in decision.message


def test_with_a_champion_the_duel_stands_in_for_the_base_rate(small_plan):
    decision = decide(small_plan, scores(0.7, log_loss=0.51), scores(0.69, log_loss=0.52))
    assert decision.verdict == "promote"


def test_the_floor_itself_is_enough(small_plan):
    assert decide(small_plan, scores(0.6)).verdict == "promote"


@pytest.mark.parametrize(
    ("gain", "promoted"),
    [((0.01, 0.001, 0.02), True), ((0.01, -0.001, 0.02), False), ((0.0, 0.0, 0.0), False), ((0.01, 0.0, 0.02), False)],
    ids=["sure", "unsure", "the same model", "on the bound"],
)
def test_the_whole_interval_must_lie_above_the_least_gain(small_plan, gain, promoted):
    decision = decide(small_plan, scores(0.7), scores(0.69), gain=gain)
    assert (decision.verdict == "promote") is promoted
    if not promoted:
        assert failed(decision) == ["gain"]
        assert "not surely" in decision.message


def test_a_negative_least_gain_tolerates_a_loss():
    evaluation_section = {"metric": "auc", "min_value": 0.6, "promote": {"min_gain": -0.01}}
    the_plan = make_plan(make_spec(evaluation=evaluation_section))
    decision = decide(the_plan, scores(0.688), scores(0.69), gain=(-0.002, -0.008, 0.004))
    assert decision.verdict == "promote"
    assert "a loss of" in decision.message
    assert "is tolerated" in decision.message
    assert " beats " not in decision.message


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        ((0.0, -0.01, 0.01), "does not surely beat the champion's 0.700, but a loss of 0.05 is tolerated: gain 0.000"),
        ((0.0004, -0.01, 0.01), "a loss of 0.05 is tolerated: gain 0.0004"),
        ((0.0002, 0.0001, 0.0003), "auc 0.700 beats the champion's 0.700 by 0.0002 (95 % interval 0.0001 to 0.0003)"),
    ],
    ids=["a tie", "nearly one", "small and sure"],
)
def test_a_tie_beats_nobody(gain, words):
    section = {"metric": "auc", "min_value": 0.6, "promote": {"min_gain": -0.05}}
    decision = decide(make_plan(make_spec(evaluation=section)), scores(0.7), scores(0.7), gain=gain)
    assert decision.verdict == "promote"
    assert words in decision.message
    assert "by 0.000 " not in decision.message


def test_where_lower_is_better_the_signs_turn():
    section = {"metric": "log_loss", "max_value": 0.45, "slices": ["carrier"]}
    the_plan = make_plan(make_spec(evaluation=section))
    ours, theirs = scores(0.7, log_loss=0.38), scores(0.7, log_loss=0.41)
    better = decide(the_plan, ours, theirs, gain=(-0.03, -0.04, -0.02), metric="log_loss")
    assert better.verdict == "promote"
    assert "log_loss 0.380 beats" in better.message
    assert "0.030 (95 % interval 0.020 to 0.040)" in better.message
    worse = decide(the_plan, theirs, ours, gain=(0.03, 0.02, 0.04), metric="log_loss")
    assert failed(worse) == ["gain"]
    assert failed(decide(the_plan, scores(0.7, log_loss=0.46))) == ["floor"]


@pytest.mark.parametrize(
    ("ours", "theirs", "gates_failed"),
    [(None, 0.69, ["floor", "gain"]), (0.99, None, ["gain"])],
    ids=["this model's", "the champion's"],
)
def test_a_metric_that_is_not_defined_keeps_the_champion(small_plan, ours, theirs, gates_failed):
    decision = decide(small_plan, scores(ours), scores(theirs))
    assert (decision.verdict, failed(decision)) == ("reject", gates_failed)
    assert "auc of the two could not be compared" in decision.message


def test_a_metric_that_is_nan_is_no_evaluation(small_plan):
    stored = evaluation(small_plan, scores(0.7125), scores(0.69)).to_bytes()
    with refuses(ContractError, where="evaluation.json", found="NaN"):
        d.Evaluation.parse(stored.replace(b"0.7125", b"NaN"))


@pytest.mark.parametrize("theirs", [{"AA": (500, 0.7)}, {"UA": (500, None)}], ids=["not there", "one class"])
def test_a_slice_that_one_of_them_has_no_metric_for_stops_nothing(small_plan, theirs):
    decision = decide(small_plan, scores(0.7, UA=(500, 0.2)), scores(0.69, **theirs))
    assert (decision.verdict, failed(decision)) == ("promote", [])
    assert "no slice" in decision.message


def test_a_large_slice_that_loses_too_much_stops_promotion(small_plan):
    ours, theirs = scores(0.7, UA=(500, 0.60), AA=(500, 0.7)), scores(0.69, UA=(500, 0.65), AA=(500, 0.7))
    decision = decide(small_plan, ours, theirs)
    assert failed(decision) == ["slices"]
    assert "carrier 'UA' (0.600 against 0.650)" in decision.message


@pytest.mark.parametrize("rows", [199, 200])
def test_a_slice_counts_from_its_least_size_on(small_plan, rows):
    ours, theirs = scores(0.7, UA=(rows, 0.5)), scores(0.69, UA=(rows, 0.9))
    assert (decide(small_plan, ours, theirs).verdict == "reject") is (rows >= 200)


def test_too_few_test_examples_decide_nothing(small_plan):
    assert failed(decide(small_plan, scores(0.9), rows=9)) == ["examples"]
    assert decide(small_plan, scores(0.9), rows=1000).verdict == "promote"


def test_an_older_run_never_replaces_a_newer_champion(small_plan):
    newer = CHAMPION.model_copy(update={"as_of": AS_OF + timedelta(days=1)})
    decision = decide(small_plan, scores(0.99), champion=newer)
    assert decision.verdict == "reject"
    assert failed(decision) == ["newer_champion", "gain"]
    assert "champion version 3" in decision.message


def test_a_backfill_only_records():
    decision = decide(make_plan(mode="backfill"), scores(0.7))
    assert decision.verdict == "record"
    assert decision.message.startswith("Recorded as of 2013-11-20 (a backfill deploys nothing): auc 0.700 reaches")
    assert failed(decision) == ["mode"]
    worse = decide(make_plan(mode="backfill"), scores(0.5))
    assert worse.verdict == "record"
    assert "auc 0.500 misses the floor" in worse.message


def test_documents_of_different_runs_are_refused(small_plan):
    other = make_plan(sql="SELECT 2")
    request = requests.evaluation_job(small_plan, None).request
    with pytest.raises(ContractError, match="run_key"):
        gates.decide(small_plan, request, evaluation(other, scores(0.7)), DIGESTS)


def test_an_evaluation_without_the_champion_that_was_asked_for_is_refused(small_plan):
    request = requests.evaluation_job(small_plan, CHAMPION).request
    with pytest.raises(ContractError, match="no champion"):
        gates.decide(small_plan, request, evaluation(small_plan, scores(0.7)), DIGESTS)


def test_a_difference_in_another_metric_is_refused(small_plan):
    request = requests.evaluation_job(small_plan, CHAMPION).request
    with pytest.raises(ContractError, match="a difference in brier"):
        gates.decide(small_plan, request, evaluation(small_plan, scores(0.7), scores(0.6), metric="brier"), DIGESTS)


def test_a_champion_is_known_by_its_label():
    assert CHAMPION.as_of == AS_OF - timedelta(days=1)
    with pytest.raises(ContractError, match="run key"):
        gates.champion_of("n", "1", "gs://b/m", "not one of ours")


def test_a_champion_without_a_record_of_its_training_blocks_and_says_the_way_out(small_plan):
    """A gain over a model that may have seen the test days is no evidence that could be shown."""
    gone = leakage.Proof(missing="gs://b/late/runs/x/manifest.json is gone", known=False)
    decision = decide(small_plan, scores(0.684), scores(0.671), proof=gone)
    assert decision.verdict == "reject"
    assert failed(decision) == ["unseen"]
    assert gone.missing in decision.message
    assert "alias champion off version 3" in decision.message
    without = decide(small_plan, scores(0.684), None, champion=None)  # the way out, followed
    assert without.verdict == "promote"


def test_rows_that_no_file_holds_are_said_and_do_not_block(small_plan):
    """A champion that has seen test examples only looks better than it is."""
    partly = leakage.Proof(missing="the champion read 7 rows from its run table itself")
    decision = decide(small_plan, scores(0.684), scores(0.671), proof=partly)
    assert decision.verdict == "promote"
    (gate,) = [gate for gate in decision.gates if gate.gate == "unseen"]
    assert f"not proven: {partly.missing}" in gate.message


@pytest.mark.parametrize(("drawn_by", "days", "said"), [("rows", 7, True), ("days", 14, False), (None, 0, False)])
def test_a_gain_by_rows_says_that_days_were_too_few(small_plan, drawn_by, days, said):
    """So that a person lengthens the test window, where days have effects."""
    by_day = [
        d.SliceDifference(column="day", value=f"2013-11-{day + 1:02}", rows=9, difference=None) for day in range(days)
    ]
    request = requests.evaluation_job(small_plan, CHAMPION).request
    assert request.by_day
    judged = evaluation(small_plan, scores(0.684), scores(0.671)).model_copy(
        update={"drawn_by": drawn_by, "day_differences": tuple(by_day)}
    )
    gain = next(gate for gate in gates.decide(small_plan, request, judged, {}).gates if gate.gate == "gain")
    sentence = "rows were taken as independent, as 7 test days are fewer than the 14 that count as days"
    assert (sentence in gain.message) is said
