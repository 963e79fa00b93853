"""Attributions: what is asked, shares and distances as they are defined, and what is judged of few and of many rows."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from retraining.core.documents import AttributionBaseline, RequestAttributions, Signal
from retraining.core.monitoring import attributions
from retraining.core.monitoring.attributions import Attribution, Explained
from retraining.core.spec.model import ModelSpec
from tests.support.small_model import make_spec, spec_values

AS_OF = datetime(2013, 11, 21, 5, tzinfo=UTC)
KEY = "20131120t030000z-0123456789ab"
SPEC = make_spec(monitoring={"attributions": {}})
FEATURES = ("carrier", "distance")
BASELINES: dict[str, Any] = {"carrier": "UA", "distance": 1000.0}


def judged(
    then: Sequence[Attribution], now: Sequence[Attribution], spec: Any = SPEC, features: Sequence[str] = FEATURES
) -> Signal:
    """The signal of rows of both sides."""
    common = {"model": "late", "run_key": KEY, "features": tuple(features)}
    baseline = AttributionBaseline(**common, request_uri="gs://b/r.json", rows=tuple(then))
    found = RequestAttributions(**common, as_of=AS_OF, rows=tuple(now), calls=1, seconds=1.0, reason=None, message=None)
    return attributions.judge_attributions(spec, found, baseline)


def drawn(rows: int, *scales: float, seed: int = 0) -> list[Attribution]:
    """Rows whose features' sizes are so large."""
    chance = random.Random(seed)
    return [tuple(chance.gauss(0, scale) for scale in scales) for _ in range(rows)]


def test_one_feature_changes_at_a_time_and_the_rest_of_an_instance_stays() -> None:
    instance = {"carrier": "AA", "distance": 200.0, "key": "x"}
    asked = list(attributions.mix(instance, BASELINES, ("distance", "carrier")))
    assert asked == [
        {"carrier": "UA", "distance": 1000.0, "key": "x"},
        {"carrier": "UA", "distance": 200.0, "key": "x"},
        instance,
    ]


def test_an_order_is_drawn_again_from_its_seed_and_differs_by_row() -> None:
    orders = [attributions.draw_order("abcdef", "seed", row) for row in range(50)]
    assert orders == [attributions.draw_order("abcdef", "seed", row) for row in range(50)]
    assert len(set(orders)) > 40
    assert {order[0] for order in orders} == set("abcdef")


def ask(spec: Any, model: Callable[[dict[str, Any]], object], instances: Sequence[dict[str, Any]]) -> Any:
    """What each feature adds to a model's answers."""
    explained = [Explained(name=("", place), instance=one) for place, one in enumerate(instances)]
    asked = attributions.asked_instances(explained, BASELINES, "seed")
    return attributions.attributions_of(spec, FEATURES, "seed", [model(one) for one in asked])


def odds(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def test_of_a_binary_label_log_odds_add_up_and_an_unused_feature_adds_nothing() -> None:
    (row,) = ask(SPEC, lambda one: [odds(one["distance"] / 1000 - 3)], [{"carrier": "AA", "distance": 3000.0}])
    assert row == pytest.approx((0.0, 2.0))


def test_of_several_classes_the_likeliest_of_the_row_is_explained() -> None:
    """Of three classes the row's is the last, whatever the baseline's is."""
    spec = make_spec(label={"name": "late", "kind": "multiclass", "classes": 3}, monitoring={"attributions": {}})

    def model(one: dict[str, Any]) -> object:
        return {"scores": [0.1, 0.2, 0.7] if one["distance"] < 500 else [0.6, 0.2, 0.2]}

    (row,) = ask(spec, model, [{"carrier": "AA", "distance": 200.0}])
    assert row == pytest.approx((0.0, math.log(0.7 / 0.3) - math.log(0.2 / 0.8)))


@pytest.mark.parametrize("answer", [None, "late", [], {"other": 1, "more": 2}, float("nan")])
def test_what_is_no_number_is_no_attribution(answer: object) -> None:
    assert ask(SPEC, lambda _: answer, [{"carrier": "AA", "distance": 1.0}]) is None


def test_shares_and_their_distance_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    some, others = rng.normal(size=(50, 6)), rng.normal(size=(70, 6)) * [3, 1, 1, 1, 1, 1]
    shares = [np.abs(rows).mean(axis=0) / np.abs(rows).mean(axis=0).sum() for rows in (some, others)]
    ours = [attributions.shares_of([tuple(row) for row in rows.tolist()]) for rows in (some, others)]
    assert ours == [pytest.approx(each) for each in shares]
    assert attributions.total_variation(*ours) == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)
    assert attributions.total_variation((1.0, 0.0), (0.0, 1.0)) == 1
    assert attributions.total_variation((0.0, 0.0), (0.5, 0.5)) == 1
    assert attributions.total_variation((0.0, 0.0), (0.0, 0.0)) == 0


def test_chance_is_that_of_shuffled_rows() -> None:
    """Beside NumPy's shuffles: the same mean, and the same far end."""
    some, others = drawn(60, 1, 2, 3), drawn(60, 1, 2, 3, seed=1)
    ours = attributions.distances_by_chance(some, others, "seed")
    assert ours == attributions.distances_by_chance(some, others, "seed")
    rows, rng, theirs = np.abs(np.array([*some, *others])), np.random.default_rng(2), []
    for _ in range(1000):
        rng.shuffle(rows)
        parts = [half.sum(axis=0) / half.sum() for half in (rows[:60], rows[60:])]
        theirs.append(np.abs(parts[0] - parts[1]).sum() / 2)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.08)
    assert np.quantile(ours, 0.99) == pytest.approx(np.quantile(theirs, 0.99), rel=0.15)


def test_a_feature_that_lost_its_meaning_alarms_and_is_named() -> None:
    found = judged(drawn(100, 1, 1), drawn(100, 0.05, 1, seed=1))
    assert (found.state, found.reason, found.threshold) == ("exceeded", None, 0.25)
    assert found.value is not None
    assert found.low is not None
    assert found.value > 0.25
    assert 0 < found.low < found.value
    assert "carrier 5" in found.message or "carrier 4" in found.message


def test_rows_of_one_kind_are_quiet() -> None:
    """Of thirty pairs none is beyond chance."""
    found = [
        judged(drawn(40, 1, 1, 2, seed=2 * at), drawn(40, 1, 1, 2, seed=2 * at + 1), features="abc") for at in range(30)
    ]
    assert {each.state for each in found} == {"ok"}
    assert not any(each.low for each in found)


def test_the_limit_is_the_files() -> None:
    then, now = drawn(400, 1, 1), drawn(400, 1, 1.9, seed=1)
    assert judged(then, now).state == "ok"
    strict = make_spec(monitoring={"attributions": {"max_shift": 0.05, "requests": 400}})
    assert judged(then, now, strict).state == "exceeded"


@pytest.mark.parametrize("rows", [(29, 100), (100, 29)])
def test_too_few_rows_are_not_judged_whatever_they_say(rows: tuple[int, int]) -> None:
    found = judged(drawn(rows[0], 1, 0), drawn(rows[1], 0, 1))
    assert (found.state, found.reason) == ("not_judged", "too_few")


def test_rows_of_which_few_decide_are_not_judged() -> None:
    """One row in thirty has all that there is: chance alone moves more than the limit."""
    heavy = [(100.0, 0.0) if at == 0 else (0.0, 100.0) if at == 1 else (0.1, 0.1) for at in range(40)]
    found = judged(heavy, heavy[::-1])
    assert (found.state, found.reason) == ("not_judged", "too_few")
    assert "monitoring.attributions.requests" in found.message


def test_without_a_baseline_or_answers_it_is_said_why() -> None:
    found = RequestAttributions(
        model="late",
        as_of=AS_OF,
        run_key=KEY,
        features=FEATURES,
        rows=(),
        calls=1,
        seconds=1.0,
        reason="endpoint_failed",
        message="It gave no answer.",
    )
    signal = attributions.judge_attributions(SPEC, found, None)
    assert (signal.state, signal.reason, signal.message) == ("not_judged", "endpoint_failed", "It gave no answer.")
    answered = found.model_copy(update={"rows": ((1.0, 1.0),), "reason": None, "message": None})
    assert attributions.judge_attributions(SPEC, answered, None).reason == "no_reference"


@pytest.mark.parametrize(
    ("requests", "features", "predictions", "rows"),
    [(100, 13, 20_000, 100), (100, 200, 20_000, 49), (100, 999, 20_000, 10), (5000, 1, 1000, 250)],
)
def test_rows_are_as_many_as_predictions_allow(requests: int, features: int, predictions: int, rows: int) -> None:
    found = attributions.rows_within(requests, features, predictions)
    assert found == rows
    assert 2 * attributions.predictions_of(found, features) <= predictions + 2 * attributions.CALL_ROWS


def test_instances_without_every_feature_are_left_out() -> None:
    rows = [
        {"request_id": 1, "place": 0, "instance": json.dumps({"carrier": "UA", "distance": math.nan})},
        {"request_id": 2, "place": 1, "instance": json.dumps({"carrier": "UA"})},
        {"request_id": 3, "place": 0, "instance": json.dumps({"carrier": "UA", "distance": [1]})},
        {"request_id": 4, "place": 0, "instance": "UA"},
        {"request_id": 5, "place": 0, "instance": "{"},
    ]
    (found,) = attributions.read_instances(rows, FEATURES)
    assert found.name == ("1", 0)


PHOTO = {"name": "photo", "kind": "image", "height": 4, "width": 4}
BARE: dict[str, Any] = {
    "data": {"query": "late/examples.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2},
    "evaluation": {"metric": "auc", "min_value": 0.6},
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deployment": None, "scoring": {"table": "a.b", "destination": "a.c"}}, "asks an endpoint"),
        ({"features": [{"name": "carrier", "kind": "categorical"}]}, "there is one"),
        (
            {"features": [PHOTO, {"name": "distance", "kind": "numeric"}], "training": {"model": "cnn"}},
            "'photo' is of kind image",
        ),
    ],
    ids=["no endpoint", "one feature", "image"],
)
def test_what_cannot_be_asked_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    values = spec_values() | BARE | changes
    ModelSpec.model_validate(values)
    with pytest.raises(ValidationError) as refused:
        ModelSpec.model_validate(values | {"monitoring": {"attributions": {}}})
    message = str(refused.value)
    assert "monitoring.attributions" in message
    assert words in message
    assert "remove" in message
