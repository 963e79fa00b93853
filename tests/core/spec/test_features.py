"""Options of features: what a file may say, and that one without them is what it was."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core.spec.features import BagFeature, CategoricalFeature, NumericFeature, TimeFeature
from tests.support.small_model import make_spec


def test_features_without_the_new_keys_are_written_as_earlier_releases_did() -> None:
    """Requests and run keys are made of this."""
    number = NumericFeature.model_validate({"name": "x", "kind": "numeric"})
    assert number.model_dump(mode="json") == {"name": "x", "kind": "numeric", "normalize": True, "missing": "mean"}
    category = CategoricalFeature.model_validate({"name": "x", "kind": "categorical"})
    assert category.model_dump(mode="json") == {"name": "x", "kind": "categorical", "embedding_dim": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"low": 1}, "low of transform clip, and transform is null: set transform: clip", id="low-alone"),
        pytest.param(
            {"transform": "log1p", "buckets": 4}, "buckets of transform buckets, and transform is log1p", id="buckets"
        ),
        pytest.param({"transform": "clip", "low": 2, "high": 1}, "low must be below high, got 2 and 1", id="turned"),
        pytest.param(
            {"transform": "buckets", "buckets": 4, "boundaries": [1]}, "buckets and boundaries", id="both-buckets"
        ),
        pytest.param({"transform": "buckets", "boundaries": [2, 1]}, "boundaries are rising numbers", id="falling"),
        pytest.param({"transform": "log10"}, "'log1p', 'clip', 'quantile' or 'buckets'", id="unknown"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NumericFeature.model_validate({"name": "x", "kind": "numeric", **options})


def test_ten_million_hash_buckets_are_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1000000"):
        CategoricalFeature.model_validate({"name": "x", "kind": "categorical", "hash_buckets": 10_000_000})


CARRIER = {"name": "carrier", "kind": "categorical"}
DISTANCE = {"name": "distance", "kind": "numeric", "transform": "buckets"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param(["carrier", "dest"], "'dest' is no feature", id="no-feature"),
        pytest.param(["carrier", "carrier"], "has a column twice", id="twice"),
        pytest.param(["carrier", "weight"], "'weight' is numeric; expected kind: categorical", id="plain-number"),
        pytest.param(["carrier"], "at least 2 items", id="one"),
    ],
)
def test_a_cross_of_what_cannot_be_crossed_is_refused(columns: list[str], message: str) -> None:
    features = [CARRIER, DISTANCE, {"name": "weight", "kind": "numeric"}]
    data = {**make_spec().model_dump(mode="json")["data"], "checks": {}}
    assert make_spec(data=data, features=features, crosses=[{"columns": ["carrier", "distance"]}]).crosses
    with pytest.raises(ValidationError, match=message):
        make_spec(data=data, features=features, crosses=[{"columns": columns}])


def test_a_model_without_crosses_is_written_as_earlier_releases_did() -> None:
    assert "crosses" not in make_spec().model_dump(mode="json")


def test_hashes_are_not_for_apps() -> None:
    spec = make_spec().model_dump(mode="json")
    features = [{**each, "hash_buckets": 8} if each["kind"] == "categorical" else each for each in spec["features"]]
    training = {**spec["training"], "export_lite": ["float16"]}
    assert make_spec(features=features)
    with pytest.raises(ValidationError, match=r"hash_buckets of carrier, and training\.export_lite"):
        make_spec(features=features, training=training)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        pytest.param(["hour", "days", "hour"], "parts has hour twice: remove one", id="twice"),
        pytest.param([], "at least 1 item", id="none"),
        pytest.param(["year"], "'hour', 'weekday', 'month' or 'days'", id="unknown"),
    ],
)
def test_parts_of_times_that_cannot_be_are_refused(parts: list[str], message: str) -> None:
    assert TimeFeature.model_validate({"name": "x", "kind": "time", "parts": ["days", "hour"]}).parts == (
        "days",
        "hour",
    )
    with pytest.raises(ValidationError, match=message):
        TimeFeature.model_validate({"name": "x", "kind": "time", "parts": parts})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"training": {"model": "dense", "input": "csv"}}, "csv cannot hold 'asked_at', a time", id="csv"),
        pytest.param(
            {"training": {"model": "dense", "export_lite": ["float16"]}},
            "asked_at of kind time, and training",
            id="lite",
        ),
        pytest.param(
            {"evaluation": {"metric": "auc", "min_value": 0.5, "slices": ["asked_at"]}},
            "is a time: it has no values",
            id="slice",
        ),
    ],
)
def test_what_cannot_read_times_is_refused(changes: dict[str, Any], message: str) -> None:
    features = [{"name": "asked_at", "kind": "time", "parts": ["hour"]}]
    data = {**make_spec().model_dump(mode="json")["data"], "checks": {}}
    values = {"data": data, "features": features, "evaluation": {"metric": "auc", "min_value": 0.5}}
    assert make_spec(**values)
    with pytest.raises(ValidationError, match=message):
        make_spec(**{**values, **changes})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"of": "values", "sizes": [2]}, "sizes are of words and characters", id="sizes-of-values"),
        pytest.param({"of": "words", "delimiter": ","}, "delimiter is of values, and this is a bag", id="delimiter"),
        pytest.param({"of": "words", "sizes": [1, 2, 1]}, "sizes has 1 twice: remove one", id="twice"),
        pytest.param({"of": "words", "sizes": [6]}, "less than or equal to 5", id="long"),
        pytest.param({"of": "values", "delimiter": ""}, "at least 1 character", id="no-delimiter"),
        pytest.param({"of": "values", "hash_buckets": 10_000_000}, "less than or equal to 1000000", id="buckets"),
        pytest.param({"of": "lines"}, "'values', 'words' or 'characters'", id="unknown"),
    ],
)
def test_bags_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    assert BagFeature.model_validate({"name": "x", "kind": "bag", "of": "values", "delimiter": ";"}).length == 64
    with pytest.raises(ValidationError, match=message):
        BagFeature.model_validate({"name": "x", "kind": "bag", **options})


def test_bags_are_not_for_apps() -> None:
    features = [{"name": "tags", "kind": "bag", "of": "values"}]
    data = {**make_spec().model_dump(mode="json")["data"], "checks": {}}
    values = {"data": data, "features": features, "evaluation": {"metric": "auc", "min_value": 0.5}}
    assert make_spec(**values)
    with pytest.raises(ValidationError, match=r"tags of kind bag, and training\.export_lite"):
        make_spec(**values, training={"model": "dense", "export_lite": ["float16"]})
