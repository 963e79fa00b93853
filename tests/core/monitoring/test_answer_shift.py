"""How differently two versions answer: read from the request log in every form, and measured."""

from __future__ import annotations

import math
import random
import statistics
from datetime import UTC, datetime

import pytest

from retraining.core.monitoring import answer_shift
from tests.support.small_model import make_spec

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
    assert answer_shift.read_answers(make_spec(), rows).get("1", []) == expected


def test_answers_of_the_same_kind_are_near_and_moved_ones_are_far() -> None:
    """Far from the limit of 0.1 on both sides, already with a hundred answers of the new version."""
    chance, spec = random.Random(1), make_spec()
    old = [chance.betavariate(2, 5) for _ in range(2000)]
    same = [chance.betavariate(2, 5) for _ in range(100)]
    assert answer_shift.shift(spec, same, old) < 0.05
    assert answer_shift.shift(spec, [answer + 0.5 for answer in same], old) > 0.3
    assert answer_shift.shift(spec, [0.5] * 100, [0.5] * 100) == 0
    assert answer_shift.shift(spec, [], old) == 0


def test_a_version_that_answers_no_number_is_far() -> None:
    """What it says is in the log as NaN: it is not left out as if nobody had asked."""
    rows = [{"deployed_model_id": key, "answer": answer} for key, answer in (("1", "NaN"), ("2", "0.25"))] * 200
    answers = answer_shift.read_answers(make_spec(), rows)
    assert answer_shift.shift(make_spec(), answers["1"], answers["2"]) > 0.3


@pytest.mark.parametrize("said", [0.75, -0.25], ids=["above", "below"])
@pytest.mark.parametrize("share", [1.0, 0.5], ids=["all", "half"])
def test_a_small_share_that_answers_otherwise_is_seen_beside_one_answer(said: float, share: float) -> None:
    """On either side, though fewer than a tenth of all answers are its own."""
    new = [said] * round(185 * share) + [0.25] * round(185 * (1 - share))
    assert answer_shift.shift(make_spec(), new, [0.25] * 2000) > 0.2


@pytest.mark.parametrize("rows", [20, 39, 100])
def test_few_answers_of_the_same_kind_are_as_near_as_chance_has_it(rows: int) -> None:
    """No answer that is said once has a bin of its own: of ten bins 9 / (4 n ln 2) bits are expected."""
    chance = random.Random(2)
    draws = [[[chance.random() for _ in range(rows)] for _ in range(2)] for _ in range(200)]
    typical = statistics.median(answer_shift.shift(make_spec(), new, old) for new, old in draws)
    assert typical < 1.5 * 9 / (4 * rows * math.log(2))


def test_the_question_names_models_and_minutes() -> None:
    """As parameters."""
    query = answer_shift.render_answers_sql("my-project.d.t", ("1", "2"), NOON, NOON)
    assert {parameter.name: parameter.value for parameter in query.parameters} == {
        "window_start": "2013-11-20T12:00:00Z",
        "window_end": "2013-11-20T12:00:00Z",
        "models": ("1", "2"),
        "most": answer_shift.MOST_ANSWERS,
    }
    assert "`my-project.d.t`" in query.sql
