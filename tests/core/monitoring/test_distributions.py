"""Distances and their intervals, bins and shares of baselines, and how far two versions' answers are apart."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core import documents as d
from retraining.core.documents import Evaluation
from retraining.core.documents.answers import AnswerCounts
from retraining.core.documents.evaluation import AuxiliaryScores
from retraining.core.monitoring import distributions, request_log
from retraining.core.monitoring.distributions import (
    UNSEEN,
    Bucket,
    answer_baselines,
    between_bins,
    between_values,
    jensen_shannon,
    l_infinity,
)
from retraining.core.monitoring.drift import judge_shifts
from retraining.core.monitoring.request_log import read_requests
from tests.support.contracts import EXAMPLES
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import make_plan, make_spec, make_statistics

SHARES = st.lists(st.floats(0.001, 1), min_size=2, max_size=12)


def normal(weights):
    return [weight / sum(weights) for weight in weights]


def test_numbers_in_half_of_the_bins_have_the_divergence_of_the_formula():
    """Twenty even bins, of which ten are used: by hand 10 (½ 0.05 log2(2/3) + ½ 0.1 log2(4/3)) + 10 · ½ 0.05."""
    before, now = [0.05] * 20, [0.1] * 10 + [0.0] * 10
    by_hand = 10 * (0.05 * math.log2(2 / 3) + 0.1 * math.log2(4 / 3)) / 2 + 10 * 0.05 / 2
    assert jensen_shannon(before, now) == pytest.approx(by_hand)
    assert jensen_shannon(before, now) == pytest.approx(0.311278, abs=1e-6)


def test_two_bins_have_the_divergence_and_deviation_worked_out_by_hand():
    """P = (½, ½), Q = (¼, ¾): M = (3/8, 5/8).

    JSD = ½ [½ log2(4/3) + ½ log2(4/5)] + ½ [¼ log2(2/3) + ¾ log2(6/5)] = 0.048795. The slope of Q's first share is
    ½ log2(2/3), of its second ½ log2(6/5); their variance under Q by 100 examples gives the deviation.
    """
    found = between_bins([0.5, 0.5], [0.25, 0.75], (0, 100))
    assert found.value == pytest.approx(0.048795, abs=1e-6)
    slopes = (math.log2(2 / 3) / 2, math.log2(6 / 5) / 2)
    mean = 0.25 * slopes[0] + 0.75 * slopes[1]
    deviation = math.sqrt((0.25 * slopes[0] ** 2 + 0.75 * slopes[1] ** 2 - mean**2) / 100)
    assert found.high - found.value == pytest.approx(1.959964 * deviation)
    assert found.value - found.low == pytest.approx(1.959964 * deviation)


def _named(shares: npt.NDArray[np.float64]) -> dict[Bucket, float]:
    return dict(zip("abcdefghijklmnopqrst", shares.tolist(), strict=False))


@pytest.mark.parametrize("rows", [(0, 200), (0, 1000), (200, 200), (50_000, 240)])
@pytest.mark.parametrize(
    "shares", [[0.05] * 20, [0.5, 0.5], [0.96, 0.01, 0.01, 0.02]], ids=["even", "two", "mostly-one-value"]
)
def test_chance_alone_is_seldom_over_what_is_said_of_it(shares: list[float], rows: tuple[int, int]) -> None:
    """One in 1000 samples of one distribution, of numbers as of categories; of 2,000 draws hardly ever more than 8."""
    draws = np.random.default_rng(0)
    over = Counter[str]()
    for _ in range(2000):
        p, q = (draws.multinomial(count, shares) / count if count else np.array(shares) for count in rows)
        bins = between_bins(p.tolist(), q.tolist(), rows)
        values = between_values(_named(p), _named(q), rows)
        over["bins"] += bins.value > bins.chance
        over["values"] += values.value > values.chance
    assert max(over.values()) <= 8


def test_the_chance_of_a_constant_is_none() -> None:
    assert between_bins([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], (0, 200)).chance == 0
    assert between_values({"a": 1.0}, {"a": 1.0}, (0, 200)).chance == 0


def test_the_interval_of_a_share_is_that_of_the_normal_distribution():
    """0.6 - 0.4 by 100 examples: the deviation is √(0.6 · 0.4 / 100) = 0.048990."""
    found = between_values({"UA": 0.4, "AA": 0.6}, {"UA": 0.6, "AA": 0.4}, (0, 100))
    assert found.measure == "l_infinity"
    assert found.value == pytest.approx(0.2)
    assert found.high == pytest.approx(0.2 + 1.959964 * 0.048990, abs=1e-6)


def test_more_examples_make_the_interval_narrow_and_leave_the_distance():
    """An effect size: what is small stays small, however many examples there are."""
    few, many = (between_bins([0.5, 0.5], [0.49, 0.51], (0, rows)) for rows in (1000, 10**9))
    assert few.value == many.value < 0.001
    assert many.high - many.low < few.high - few.low


def test_what_changed_most_is_said_without_naming_a_value():
    assert between_values({"UA": 1.0}, {"UA": 0.2, UNSEEN: 0.7, None: 0.1}, (9, 9)).most == ""
    assert between_values({"UA": 0.5, "AA": 0.5}, {"UA": 0.2, "AA": 0.2, UNSEEN: 0.6}, (9, 9)).most is UNSEEN
    assert between_values({"UA": 0.5, "AA": 0.5}, {"UA": 0.2, "AA": 0.2, None: 0.6}, (9, 9)).most is None
    assert between_bins([0.5, 0.5, 0.0], [0.1, 0.1, 0.8], (9, 9)).most is None
    assert between_bins([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], (9, 9)).most == ""


def test_equal_quantiles_of_an_earlier_release_are_a_bin_of_their_own() -> None:
    """0 is 18 of 21 quantiles, from the least on: 17 steps and half of the next of 20 are its own."""
    baseline = d.NumericStatistics(
        kind="numeric", nulls=20, min=0.0, max=2.0, mean=0.1, stddev=0.1, quantiles=(0.0,) * 18 + (1.0, 1.0, 2.0)
    )
    edges = distributions.bin_edges(baseline)
    assert edges == pytest.approx([0, 0, 1, 1, 2], abs=1e-5)
    assert edges == sorted(set(edges))
    # below, 0, between, 1, between, above, missing: 17½ steps of 20, none, 2, ½; a fifth of the rows is missing.
    expected = [0, 0.8 * 0.875, 0, 0.8 * 0.1, 0.8 * 0.025, 0, 0.2]
    assert distributions.bin_shares(baseline, 100, edges) == pytest.approx(expected)


def test_values_beyond_the_baselines_first_ones_are_expected_to_be_unseen():
    baseline = d.CategoricalStatistics(
        kind="categorical", nulls=10, distinct=5000, top=(d.ValueCount(value="UA", count=60),)
    )
    assert distributions.category_shares(baseline, 100) == {"UA": 0.6, None: 0.1, UNSEEN: pytest.approx(0.3)}


@given(SHARES, st.randoms())
def test_jensen_shannon_is_a_symmetric_distance_between_zero_and_one(weights, random):
    p = normal(weights)
    q = p.copy()
    random.shuffle(q)
    forward, backward = jensen_shannon(p, q), jensen_shannon(q, p)
    assert 0 <= forward <= 1
    assert forward == pytest.approx(backward)
    assert jensen_shannon(p, p) == pytest.approx(0)


@given(SHARES, SHARES, st.integers(1, 10**9))
def test_an_interval_holds_its_value(weights, others, rows):
    size = min(len(weights), len(others))
    p, q = normal(weights[:size]), normal(others[:size])
    found = between_bins(p, q, (rows, rows))
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(SHARES)
def test_distributions_without_a_common_bin_are_at_distance_one(weights):
    p = normal(weights)
    zeros = [0.0] * len(p)
    assert jensen_shannon(p + zeros, zeros + p) == pytest.approx(1)


@given(st.dictionaries(st.text(max_size=3), st.floats(0.01, 1), min_size=1, max_size=6), st.floats(0, 0.9))
def test_an_unseen_value_moves_l_infinity_by_at_least_its_share(weights, share):
    total = sum(weights.values())
    p = {key: weight / total for key, weight in weights.items()}
    q = {key: value * (1 - share) for key, value in p.items()} | {None: share}
    assert l_infinity(p, q) == pytest.approx(share, abs=1e-9)
    assert l_infinity(p, p) == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=21, max_size=21), st.integers(0, 100))
def test_a_baselines_shares_sum_to_one(quantiles, nulls):
    ordered = tuple(sorted(quantiles))
    baseline = d.NumericStatistics(
        kind="numeric", nulls=nulls, min=ordered[0], max=ordered[-1], mean=0.0, stddev=1.0, quantiles=ordered
    )
    edges = distributions.bin_edges(baseline)
    shares = distributions.bin_shares(baseline, 100, edges)
    assert len(shares) == len(edges) + 2
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


SCORES = AnswerCounts(edges=(0.001, 0.002, 0.01), counts=(0, 500, 400, 100))
AUXILIARY = [
    {"name": "minutes", "kind": "regression", "quantiles": [0.1, 0.5, 0.9], "loss": "quantile"},
    {"name": "gate", "kind": "multiclass", "classes": 3},
    {"name": "unknown", "kind": "binary"},
]
TRAIN = make_statistics(make_plan()).splits["train"]
LIKE_TRAINING = {"carrier": {"UA": 225, "AA": 75}, "distance": {str(index): 15 for index in range(1, 21)}}


def evaluate(**auxiliary: AnswerCounts) -> Evaluation:
    """An evaluation whose challenger answered so."""
    found = Evaluation.parse((EXAMPLES / "evaluation__duel.json").read_bytes(), "evaluation")
    others = {
        name: AuxiliaryScores(rows=10, metrics=found.challenger.metrics, counted=counts)
        for name, counts in auxiliary.items()
    }
    scores = found.challenger.model_copy(update={"counted": SCORES, "auxiliary": others})
    return found.model_copy(update={"challenger": scores})


def test_scores_are_held_against_the_bins_that_the_evaluation_counted() -> None:
    """Rare events: all scores are far below a fifteenth, and a shift among them is seen."""
    spec = make_spec()
    answers = answer_baselines(spec, TRAIN, evaluate())
    assert [item.edges for item in answers] == [(0.001, 0.002, 0.01)]

    def drift(bins: dict[str | None, int]) -> float | None:
        log = read_requests(counted(LIKE_TRAINING, answers={"late": bins}), ["late"])
        signals = judge_shifts(spec, TRAIN, log, answers, CHAMPION_ID)
        return next(item.value for item in signals if (item.kind, item.subject) == ("prediction_drift", "late"))

    assert drift({"1": 150, "2": 120, "3": 30}) == pytest.approx(0, abs=1e-9)
    moved = drift({"1": 0, "2": 30, "3": 270})
    assert moved is not None
    assert moved > 0.3


def test_auxiliary_labels_have_a_drift_of_their_own_where_the_evaluation_counted_them() -> None:
    spec = make_spec(auxiliary_labels=AUXILIARY, monitoring={"drift": {"features": {"gate": 1.0}}})
    numbers, classes = AnswerCounts(edges=(5.0, 9.0), counts=(0, 3, 1)), AnswerCounts(counts=(1, 1, 2))
    late, minutes, gate = answer_baselines(spec, TRAIN, evaluate(minutes=numbers, gate=classes))
    assert (late.name, late.is_main, late.output) == ("late", True, "score")
    assert (minutes.output, minutes.is_main, minutes.place, minutes.shares) == ("minutes", False, 1, (0.0, 0.75, 0.25))
    assert (gate.output, gate.is_main, gate.classes, gate.shares) == ("gate", False, 3, (0.25, 0.25, 0.5))
    assert gate.measure == "l_infinity"


NOON = datetime(2013, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("0.25", [0.25]),
        ("[0.25]", [0.25]),
        ('{"score": 0.25}', [0.25]),
        ('{"score": [0.25], "other": 3}', [0.25]),
        ('{"flight_id": "AA-1", "score": 0.25}', [0.25]),
        ('{"flight_id": 17, "prediction": 0.25}', [0.25]),
        ('{"a": 1, "b": 2}', []),
        ('"late"', []),
        ("[]", []),
        ("not JSON", []),
        ("NaN", [pytest.approx(float("nan"), nan_ok=True)]),
    ],
)
def test_an_answer_is_read_in_the_forms_that_containers_give(answer: str, expected) -> None:
    """What is no number is left out."""
    rows = [{"deployed_model_id": "1", "answer": answer}]
    assert request_log.read_answers(make_spec(), rows).get("1", []) == expected


def test_answers_of_the_same_kind_are_near_and_moved_ones_are_far() -> None:
    """Far from the limit of 0.1 on both sides, already with a hundred answers of the new version."""
    chance, spec = random.Random(1), make_spec()
    old = [chance.betavariate(2, 5) for _ in range(2000)]
    same = [chance.betavariate(2, 5) for _ in range(100)]
    assert distributions.shift_of_answers(spec, same, old).value < 0.05
    assert distributions.shift_of_answers(spec, [answer + 0.5 for answer in same], old).value > 0.3
    assert distributions.shift_of_answers(spec, [0.5] * 100, [0.5] * 100).value == 0
    assert distributions.shift_of_answers(spec, [], old).value == 0


def test_a_version_that_answers_no_number_is_far() -> None:
    """What it says is in the log as NaN: it is not left out as if nobody had asked."""
    rows = [{"deployed_model_id": key, "answer": answer} for key, answer in (("1", "NaN"), ("2", "0.25"))] * 200
    answers = request_log.read_answers(make_spec(), rows)
    assert distributions.shift_of_answers(make_spec(), answers["1"], answers["2"]).value > 0.3


@pytest.mark.parametrize("said", [0.75, -0.25], ids=["above", "below"])
@pytest.mark.parametrize("share", [1.0, 0.5], ids=["all", "half"])
def test_a_small_share_that_answers_otherwise_is_seen_beside_one_answer(said: float, share: float) -> None:
    """On either side, though fewer than a tenth of all answers are its own."""
    new = [said] * round(185 * share) + [0.25] * round(185 * (1 - share))
    assert distributions.shift_of_answers(make_spec(), new, [0.25] * 2000).value > 0.2


@pytest.mark.parametrize("rows", [20, 39, 100])
def test_few_answers_of_the_same_kind_are_as_near_as_chance_has_it(rows: int) -> None:
    """No answer that is said once has a bin of its own: of ten bins 9 / (4 n ln 2) bits are expected."""
    chance = random.Random(2)
    draws = [[[chance.random() for _ in range(rows)] for _ in range(2)] for _ in range(200)]
    typical = statistics.median(distributions.shift_of_answers(make_spec(), new, old).value for new, old in draws)
    assert typical < 1.5 * 9 / (4 * rows * math.log(2))


def test_the_question_names_models_and_minutes() -> None:
    """As parameters."""
    query = request_log.render_answers_sql("my-project.d.t", ("1", "2"), NOON, NOON)
    assert {parameter.name: parameter.value for parameter in query.parameters} == {
        "window_start": "2013-11-20T12:00:00Z",
        "window_end": "2013-11-20T12:00:00Z",
        "models": ("1", "2"),
        "most": request_log.MAX_ANSWERS,
    }
    assert "`my-project.d.t`" in query.sql
