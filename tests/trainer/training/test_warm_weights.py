"""Weights that are carried over: before its first step a model answers as the earlier one did, whatever changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import Cross, LabelNumbers, LabelStatistics, Training, ValueCount
from trainer.features.preprocessing import Preprocessing
from trainer.objective.outputs import objective_of
from trainer.training.recipe import Recipe
from trainer.training.warm_columns import Side
from trainer.training.warm_weights import carry_weights

LABELS = {
    "binary": make_label("y", "binary"),
    "multiclass": make_label("y", "multiclass", classes=3),
    "mse": make_label("y", "regression"),
    "poisson": make_label("y", "regression", loss="poisson"),
    "quantile": make_label("y", "regression", loss="quantile", quantiles=(0.5,)),
}
FEATURES = {
    "distance": make_feature("distance", "numeric"),
    "weight": make_feature("weight", "numeric", transform="log1p", missing="zero"),
    "carrier": make_feature("carrier", "categorical", embedding_dim=3),
    "zone": make_feature("zone", "categorical", embedding_dim=2, max_vocabulary=2, hash_buckets=4),
}
CROSSES = (Cross(columns=("carrier", "zone"), buckets=16, embedding_dim=2),)


def numbers(mean: float, deviation: float, nulls: int, *, low: float = 0.0) -> Any:
    quantiles = np.maximum(low, mean + deviation * np.linspace(-2, 2, 21)).tolist()
    return make_feature_statistics(
        "numeric", nulls, mean=mean, stddev=deviation, min=low, max=quantiles[-1], quantiles=tuple(quantiles)
    )


def texts(*values: str) -> Any:
    top = tuple(ValueCount(value=value, count=9) for value in values)
    return make_feature_statistics("categorical", distinct=len(values), top=top)


THEN = {
    "distance": numbers(700, 300, 5),
    "weight": numbers(40, 15, 3),
    "carrier": texts("UA", "AA", "B6"),
    "zone": texts("1", "2", "3", "4"),
}
NOW = {
    "distance": numbers(760, 340, 7),
    "weight": numbers(44, 13, 2),
    "carrier": texts("AA", "WN", "UA", "B6"),
    "zone": texts("2", "1", "4", "3"),
}
WIDER = {**FEATURES, "zone": dataclasses.replace(FEATURES["zone"], max_vocabulary=3)}
"""A value more has a row of its own, which so far shared one by its hash."""


def side(
    features: Any, statistics: Any, label: Any, seed: int, share: float, name: str = "wide_deep", **chosen
) -> Side:
    """A model with weights of its own, large enough to matter."""
    made = make_statistics(100, **{key: statistics[key] for key in features})
    counted = LabelNumbers(
        min=0,
        max=9,
        mean=share * 10,
        stddev=1 + share,
        quantiles=(0.0,) * 21,
        trained_mean=share * 10,
        trained_stddev=1 + share,
    )
    counts = (round(share * 50), 30, 20) if label.kind == "multiclass" else None
    known = LabelStatistics(mean=share, nulls=0, counts=counts, numbers=counted)
    made = dataclasses.replace(made, splits={"train": dataclasses.replace(made.splits["train"], label=known)})
    training = Training(
        model=name,
        epochs=1,
        batch_size=8,
        hyperparameters={"hidden_units": (8, 4), "dropout": 0.1, **chosen},
        early_stopping_patience=0,
    )
    recipe = Recipe.from_training(training, objective_of(label, (), made))
    crosses = CROSSES if {"carrier", "zone"} <= set(features) else ()
    preprocessing = Preprocessing(tuple(features.values()), made, crosses)
    model = recipe.build_model(preprocessing.shape)
    random = np.random.default_rng(seed)
    model.set_weights([random.normal(0, 0.4, item.shape) for item in model.variables])
    return Side(
        name=name,
        model=model,
        preprocessing=preprocessing,
        features=features,
        hyperparameters=recipe.hyperparameters,
        objective=recipe.objective,
    )


def answers(of: Side, raw: dict[str, Any]) -> Any:
    """What a stored model would say."""
    columns = {name: tf.constant(raw[name]) for name in of.features}
    return of.objective.scores(of.model(of.preprocessing(columns), training=False)).numpy()


def rows(*, missing: bool = True) -> dict[str, Any]:
    """Rows with values of both vocabularies and of none, and numbers that both models had."""
    random = np.random.default_rng(4)
    count = 60
    distance = random.uniform(110, 1290, count).astype(np.float32)
    weight = random.uniform(19, 69, count).astype(np.float32)
    if missing:
        distance[::7], weight[::5] = np.nan, np.nan
    return {
        "distance": distance,
        "weight": weight,
        "carrier": random.choice(["UA", "AA", "B6", "WN", "XX", ""], count),
        "zone": random.choice(["1", "2", "3", "4", "5", "6", ""], count),
    }


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", ["dense", "wide_deep"])
def test_a_model_begins_with_the_answers_of_the_earlier_one(name, members, label) -> None:
    """Other means, deviations, vocabularies and shares of the label change nothing; a new value is what it was."""
    before = side(FEATURES, THEN, label, 1, 0.2, name, members=members)
    after = side(WIDER, NOW, label, 2, 0.3, name, members=members)
    carried = carry_weights(before, after)
    np.testing.assert_allclose(answers(after, rows()), answers(before, rows()), rtol=2e-4, atol=2e-5)
    assert not carried.anew
    assert set(carried.taken) == {item.name.removesuffix(":0") for item in after.model.trainable_variables}


def test_numbers_a_little_beyond_what_the_earlier_model_had_are_answered_nearly_as_it_did() -> None:
    """It held them near its range, and this one had them itself: a tenth of a deviation counts as 0.095."""
    before, after = (side(FEATURES, values, LABELS["mse"], 1, share) for values, share in ((THEN, 0.2), (NOW, 0.3)))
    carry_weights(before, after)
    raw = rows(missing=False)
    near, far = ({**raw, "distance": np.full(60, value, np.float32)} for value in (1330, 1440))
    differences = [np.abs(answers(after, some) - answers(before, some)).max() for some in (near, far)]
    scale = np.abs(answers(before, raw)).max()
    assert differences[0] < 0.02 * scale
    assert differences[0] < differences[1] < 0.2 * scale


def test_without_being_carried_the_answers_are_others() -> None:
    """Else the test above would prove nothing."""
    before, after = (side(FEATURES, values, LABELS["binary"], 1, share) for values, share in ((THEN, 0.2), (NOW, 0.3)))
    assert np.abs(answers(after, rows()) - answers(before, rows())).max() > 0.05


def test_intervals_give_the_same_line_at_the_later_edges() -> None:
    """Where a missing value and each edge that both models know lie, the answer is the earlier one's; else all but."""
    only = {"distance": FEATURES["distance"]}
    before = side(only, THEN, LABELS["mse"], 1, 0.2, numeric_bins=16, hidden_units=(8,), activation="linear", dropout=0)
    after = side(only, NOW, LABELS["mse"], 2, 0.3, numeric_bins=16, hidden_units=(8,), activation="linear", dropout=0)
    assert not carry_weights(before, after).anew
    edges = np.array(after.intervals.edges(0)) * 340 + 760
    edges = edges[(edges >= 100) & (edges <= 1300)]
    raw = {"distance": np.append(edges, np.nan).astype(np.float32)}
    np.testing.assert_allclose(answers(after, raw), answers(before, raw), rtol=1e-3, atol=1e-3)


def test_more_members_begin_with_those_that_there_were() -> None:
    before = side(FEATURES, THEN, LABELS["binary"], 1, 0.2, members=2)
    after = side(FEATURES, NOW, LABELS["binary"], 2, 0.2, members=4)
    drawn = {item.name: item.numpy() for item in after.model.variables}
    carried = carry_weights(before, after)
    named = {name: reason for name, reason in carried.anew.items() if "members 3 to 4" in reason}
    assert {"hidden_0/kernel", "hidden_1/bias", "deep_logit/kernel"} <= set(named)
    kernel = {item.name: item.numpy() for item in after.model.variables}["hidden_1/kernel:0"]
    np.testing.assert_array_equal(kernel[2:], drawn["hidden_1/kernel:0"][2:])
    np.testing.assert_allclose(kernel[:2], before.model.get_layer("hidden_1").get_weights()[0], rtol=1e-6)


def test_what_reads_a_new_feature_is_named_and_drawn() -> None:
    fewer = {name: FEATURES[name] for name in ("distance", "carrier")}
    before, after = side(fewer, THEN, LABELS["binary"], 1, 0.2), side(FEATURES, NOW, LABELS["binary"], 2, 0.2)
    anew = carry_weights(before, after).anew
    assert "weight, zone, carrier.zone" in anew["hidden_0/kernel"]
    assert "weight" in anew["wide_numeric/kernel"]
    assert "did not read it as a category" in anew["embed_zone/embeddings"]
    assert "embed_carrier/embeddings" not in anew


@pytest.mark.parametrize(
    ("chosen", "named", "kept"),
    [
        ({"hidden_units": (16, 4)}, {"hidden_0", "hidden_1", "deep_logit"}, {"embed_carrier", "wide_numeric"}),
        ({"hidden_units": (8, 5)}, {"hidden_1", "deep_logit"}, {"hidden_0"}),
        ({"hidden_units": (8,)}, {"deep_logit"}, {"hidden_0"}),
        ({"activation": "tanh"}, {"hidden_0", "hidden_1", "deep_logit"}, {"wide_carrier"}),
    ],
    ids=["first-width", "second-width", "fewer-layers", "activation"],
)
def test_after_a_layer_that_is_another_nothing_is_taken(chosen, named, kept) -> None:
    """What a later layer reads then means something else, also where its shape is the same."""
    before = side(FEATURES, THEN, LABELS["binary"], 1, 0.2)
    after = side(FEATURES, NOW, LABELS["binary"], 2, 0.2, **chosen)
    carried = carry_weights(before, after)
    assert {name.partition("/")[0] for name in carried.anew} == named
    assert kept <= {name.partition("/")[0] for name in carried.taken}


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        (make_feature("weight", "numeric"), "weight"),
        (make_feature("weight", "numeric", transform="buckets", buckets=4), "buckets|as a category"),
    ],
    ids=["transform", "buckets"],
)
def test_a_number_that_is_transformed_otherwise_is_drawn(feature, reason) -> None:
    before = side(FEATURES, THEN, LABELS["binary"], 1, 0.2)
    after = side({**FEATURES, "weight": feature}, NOW, LABELS["binary"], 2, 0.2)
    anew = carry_weights(before, after).anew
    assert any(word in " ".join(anew.values()) for word in reason.split("|"))


def test_of_a_model_that_reads_times_nothing_is_taken() -> None:
    before = side(FEATURES, THEN, LABELS["binary"], 1, 0.2)
    after = dataclasses.replace(before, features={**FEATURES, "at": make_feature("at", "time", parts=("hour",))})
    carried = carry_weights(before, after)
    assert not carried.taken
    assert all("it reads at, and only numbers and categories" in reason for reason in carried.anew.values())


def test_another_label_or_architecture_takes_nothing() -> None:
    before = side(FEATURES, THEN, LABELS["binary"], 1, 0.2)
    for after in (side(FEATURES, NOW, LABELS["mse"], 2, 0.2), side(FEATURES, NOW, LABELS["binary"], 2, 0.2, "dense")):
        drawn = after.model.get_weights()
        carried = carry_weights(before, after)
        assert not carried.taken
        assert len(carried.anew) == len(after.model.trainable_variables)
        for now, then in zip(after.model.get_weights(), drawn, strict=True):
            np.testing.assert_array_equal(now, then)


def test_hashes_into_another_number_are_drawn_and_counted() -> None:
    changed = dataclasses.replace(FEATURES["zone"], hash_buckets=8)
    before = side(FEATURES, THEN, LABELS["binary"], 1, 0.2)
    after = side({**FEATURES, "zone": changed}, NOW, LABELS["binary"], 2, 0.2)
    assert "8 rows: values were hashed otherwise" in carry_weights(before, after).anew["embed_zone/embeddings"]
