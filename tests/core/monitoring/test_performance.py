"""Signals of performance and of its estimate, from counts and sums."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from retraining.core.metrics import Metrics
from retraining.core.monitoring.estimates import calibrated, estimate, judge_estimate
from retraining.core.monitoring.performance import Reference, judge_performance, measure
from retraining.core.monitoring.request_log import SCORE_BUCKETS, Counted, VersionAnswers, read_labelled_answers
from tests.support.contracts import EXAMPLES
from tests.support.small_model import make_spec, spec_values

MINE, OTHER = "1000000001", "1000000002"
VERSIONS = {MINE: "3", OTHER: "2"}


def spec(**monitoring: Any) -> Any:
    return make_spec(
        monitoring={"min_requests": 100, **monitoring},
        evaluation=spec_values()["evaluation"] | {"promote": {"min_examples": 10, "min_slice_examples": 50}},
    )


def answers(labels: int, *, moved: float = 0.0, by: str = MINE, seed: int = 1) -> list[dict[str, Any]]:
    """Rows of the query: calibrated scores, whose labels turn out as they say but for `moved`."""
    chance, rows = random.Random(seed), []
    cells: dict[int, list[float]] = {}
    for _ in range(labels):
        score = chance.random()
        cell = cells.setdefault(int(score * SCORE_BUCKETS), [0, 0, 0.0])
        flipped = chance.random() < moved
        cell[0] += 1
        cell[1] += (chance.random() < score) != flipped
        cell[2] += score
    for place, (examples, positives, total) in cells.items():
        common = {"answered_by": by, "name": "", "bucket": place, "examples": examples, "total": total, "squares": None}
        rows.append(
            {**common, "part": "answers", "slice_column": "", "slice_value": "", "class": "", "positives": None}
        )
        for column, value in (("", ""), ("carrier", "UA")):
            cut = {"slice_column": column, "slice_value": value, "class": "", "positives": positives}
            rows.append({**common, **cut, "part": "histogram"})
    return [*rows, *counts(by, asked=labels, keys=labels, labelled=labels)]


def counts(by: str = MINE, **numbers: int) -> list[dict[str, Any]]:
    """Rows about coverage."""
    return [{"part": "count", "answered_by": by, "name": name, "examples": number} for name, number in numbers.items()]


def reference(auc: float) -> Reference:
    return Reference(metrics=Metrics(auc=auc, log_loss=0.5, accuracy=0.8, brier=0.2))


def judged(rows: list[dict[str, Any]], auc: float = 0.83, **monitoring: Any) -> list[Any]:
    return list(judge_performance(spec(**monitoring), read_labelled_answers(rows), VERSIONS, MINE, reference(auc)))


def test_a_champion_that_is_as_good_as_it_was_is_ok() -> None:
    """The AUC of calibrated uniform scores is 5/6; slices and another version are shown beside it."""
    found = judged([*answers(3000), *answers(200, by=OTHER)])
    main = found[0]
    assert (main.state, main.measure, main.subject, main.threshold) == ("ok", "auc", "", pytest.approx(0.8))
    assert main.low < 5 / 6 < main.high
    assert "became champion" in main.message
    shown = {(each.subject, each.measure): each for each in found[1:]}
    assert shown["", "coverage"].value == 1
    assert shown["carrier=UA", "auc"].examples == 3000
    assert shown["version 2", "auc"].examples == 200
    assert all(each.threshold is None and each.state == "ok" for each in found[1:])


def test_only_a_loss_that_is_sure_and_too_large_is_exceeded() -> None:
    """A fifth of the labels turned round; the same with few labels is not sure."""
    assert judged(answers(3000, moved=0.2))[0].state == "exceeded"
    assert judged(answers(3000, moved=0.2), performance={"max_drop": 0.5})[0].state == "ok"
    assert judged(answers(110, moved=0.04), auc=0.88)[0].state == "ok"


@pytest.mark.parametrize(
    ("rows", "because", "words"),
    [
        ([], "no_traffic", "answered nothing"),
        (counts(asked=10, without_key=10), "no_keys", "deployment.key_input: true"),
        (counts(asked=10, keys=10), "unknown_keys", "compare the keys"),
        (counts(asked=10, keys=10, waiting=4), "unknown_keys", "6 keys"),
        (counts(asked=10, keys=10, waiting=10), "no_labels", "not known yet"),
        (counts(asked=9, keys=9) + counts(OTHER, labelled=7), "labels_of_another_version", "7 labels"),
        (answers(20), "too_few", "20 answers have a label; at least 100"),
    ],
)
def test_what_cannot_be_judged_is_named(rows, because, words) -> None:
    """Never exceeded."""
    main = judged(rows)[0]
    assert (main.state, main.reason, main.kind) == ("not_judged", because, "performance")
    assert words in main.message


def test_without_a_reference_the_metric_is_told_and_not_judged() -> None:
    found = judge_performance(spec(), read_labelled_answers(answers(500)), VERSIONS, MINE, Reference(metrics=None))
    assert (found[0].state, found[0].reason) == ("not_judged", "no_reference")
    assert found[0].value == pytest.approx(5 / 6, abs=0.05)


def evaluation(positive: float = 0.0) -> Any:
    """An evaluation whose scores are calibrated, but for so much."""
    from retraining.core.documents import Evaluation

    raw = json.loads((EXAMPLES / "evaluation__duel.json").read_bytes())
    raw["challenger"]["metrics"] |= {"auc": 5 / 6}
    bins = [{"rows": 10, "score": (i + 0.5) / 15, "positive": max(0.0, (i + 0.5) / 15 - positive)} for i in range(15)]
    raw["challenger"]["curves"] = {"roc": None, "precision_recall": None, "calibration": bins}
    return Evaluation.parse(json.dumps(raw))


def test_the_estimate_is_near_the_truth_of_calibrated_scores() -> None:
    """And says by how much, once labels are there."""
    own = read_labelled_answers(answers(20_000))[MINE]
    found = judge_estimate(spec(), own, evaluation())
    assert [(each.state, each.measure) for each in found] == [("ok", "auc"), ("ok", "auc_error")]
    assert found[0].value == pytest.approx(5 / 6, abs=0.005)
    assert abs(found[1].value) < 0.01
    for metric in ("brier", "log_loss", "accuracy"):
        assert estimate(spec(), metric, own.answers, evaluation().challenger) is not None
    assert estimate(spec(), "brier", own.answers, evaluation().challenger).value == pytest.approx(1 / 6, abs=0.005)
    assert estimate(spec(), "accuracy", own.answers, evaluation().challenger).value == pytest.approx(0.75, abs=0.005)


def test_a_change_of_the_labels_is_seen_in_the_estimates_own_error() -> None:
    """The estimate cannot see it; the truth can."""
    found = judge_estimate(spec(), read_labelled_answers(answers(5000, moved=0.2))[MINE], evaluation())
    assert found[0].state == "ok"
    assert found[1].value > 0.1


def test_requests_that_the_model_is_less_sure_of_are_seen_before_labels() -> None:
    """All near a half: the expected AUC is near a half."""
    own = VersionAnswers(answers={place: Counted(10, 0, 10 * place / SCORE_BUCKETS) for place in range(950, 1051)})
    (found,) = judge_estimate(spec(), own, evaluation())
    assert found.state == "exceeded"
    assert found.value == pytest.approx(0.5 + 0.05 / 3 / 2 / 0.5, abs=0.01)
    assert found.high < 0.6


def test_an_answer_is_moved_by_the_calibrations_error() -> None:
    scores = evaluation(0.1).challenger
    assert calibrated(0.5, scores) == pytest.approx(0.4)
    assert calibrated(0.999, scores) == pytest.approx(0.899)
    assert calibrated(0.0, scores) == 0


@pytest.mark.parametrize(
    ("own", "given", "because"),
    [
        (VersionAnswers(), None, "no_reference"),
        (VersionAnswers(), "evaluation", "no_traffic"),
        (VersionAnswers(answers={3: Counted(5, 0, 0.1)}), "evaluation", "too_few"),
    ],
)
def test_what_cannot_be_estimated_is_named(own, given, because) -> None:
    (found,) = judge_estimate(spec(), own, evaluation() if given else None)
    assert (found.state, found.reason, found.kind) == ("not_judged", because, "estimate")


@pytest.mark.parametrize(("rows", "state"), [(500, "exceeded"), (5, "ok")])
def test_an_error_of_numbers_is_that_of_the_evaluation_for_such_answers(rows, state) -> None:
    """Half of the answers are where the evaluation erred by 1, half where by 3; of a few rows that is not sure."""
    numbers = make_spec(
        label={"name": "late", "kind": "regression"},
        data=spec_values()["data"] | {"checks": {}},
        evaluation={"metric": "mae", "max_value": 5},
        monitoring={"min_requests": 10, "performance": {"max_drop": 0.5}},
    )
    raw = json.loads((EXAMPLES / "evaluation__numbers.json").read_bytes())
    small = {
        "rows": rows,
        "answer": 1.0,
        "label": 1.0,
        "low": 0.0,
        "high": 2.0,
        "absolute_error": 1.0,
        "squared_error": 1.5,
    }
    raw["challenger"]["answers"]["bins"] = [
        small,
        small | {"answer": 9.0, "absolute_error": 3.0, "squared_error": 12.0},
    ]
    raw["challenger"]["metrics"]["mae"] = 1.0
    from retraining.core.documents import Evaluation

    own = VersionAnswers(answers={0: Counted(500, 0, 400.0), 1: Counted(500, 0, 4500.0)})
    (found,) = judge_estimate(numbers, own, Evaluation.parse(json.dumps(raw)))
    assert (found.value, found.state, found.threshold) == (2.0, state, 1.5)


def test_a_metric_that_nothing_measured_is_none() -> None:
    assert measure(read_labelled_answers([*answers(10)])[MINE].cuts["", ""], "log_loss", 0.95) is None


def of_scores(counted: Callable[[float], float]) -> VersionAnswers:
    """Answers whose number follows from the score."""
    places = range(0, SCORE_BUCKETS, 4)
    counts = {place: max(1, round(counted((place + 0.5) / SCORE_BUCKETS))) for place in places}
    return VersionAnswers(
        answers={place: Counted(n, 0, n * (place + 0.5) / SCORE_BUCKETS) for place, n in counts.items()}
    )


def large_evaluation(rows: int) -> Any:
    """A calibrated evaluation of uniform scores with so many rows in each bin."""
    found = evaluation()
    curves = found.challenger.curves
    bins = tuple(each.model_copy(update={"rows": rows}) for each in curves.calibration)
    curves = curves.model_copy(update={"calibration": bins})
    return found.model_copy(update={"challenger": found.challenger.model_copy(update={"curves": curves})})


def test_an_estimate_is_as_unsure_as_the_evaluation_that_it_goes_by() -> None:
    """Of a few rows the interval is wider, of many the answers' own chance remains."""
    own = of_scores(lambda _: 20)
    reach = {}
    for rows in (10, 1000, 100_000):
        found = estimate(spec(), "auc", own.answers, large_evaluation(rows).challenger)
        assert found is not None
        reach[rows] = found.high - found.low
    assert reach[10] > 2 * reach[1000] > 2 * reach[100_000]


@pytest.mark.parametrize(
    ("counted", "because"),
    [
        (lambda _: 20, None),
        (lambda score: 20 * (1.5 * score + 0.5 * (1 - score)), "label_shift"),  # three positives where there were two
        (lambda score: 20 * (0.2 * score + 1.8 * (1 - score)), "label_shift"),
        (lambda score: 40 if 0.3 < score < 0.7 else 5, None),  # less sure, which no share of positives explains
    ],
    ids=["as before", "more positives", "fewer positives", "less sure"],
)
def test_where_label_shift_is_likely_nothing_is_judged(counted: Callable[[float], float], because: str | None) -> None:
    """It is said, with both shares, and the number stays to be seen."""
    main, *_ = judge_estimate(spec(), of_scores(counted), large_evaluation(1000))
    assert main.reason == because
    assert (main.state == "not_judged") is (because is not None)
    assert main.value is not None
    assert ("Label shift is likely" in main.message) is (because is not None)
