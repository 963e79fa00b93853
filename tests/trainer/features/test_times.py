"""Parts of times against their definitions in NumPy and the calendar, with missing ones, and out of a stored model."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.held_numbers import hold
from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import FeatureStatistics
from trainer.features.preprocessing import Preprocessing
from trainer.features.times import DAY
from trainer.features.values import MISSING_TIME, as_time
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model

FIRST, LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)
LEAST = np.iinfo(np.int64).min
EPOCH = datetime.datetime(1970, 1, 1)


def statistics_of(nulls: int = 3, **changes: float) -> FeatureStatistics:
    return make_feature_statistics(
        kind="time", **{"nulls": nulls, "min": 0.0, "max": 20_000.0, "mean": 18_000.25, "stddev": 900.0, **changes}
    )


def preprocessing(parts: list[str], nulls: int = 3) -> Preprocessing:
    return Preprocessing([make_feature(name="t", kind="time", parts=parts)], make_statistics(t=statistics_of(nulls)))


def encode(parts: list[str], micros: list[int], nulls: int = 3) -> np.ndarray:
    numbers: np.ndarray = preprocessing(parts, nulls)({"t": tf.constant(micros, tf.int64)})["numeric"].numpy()
    return numbers


def micros_of(when: datetime.datetime) -> int:
    return (when - EPOCH) // datetime.timedelta(microseconds=1)


def cycle(turns: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)], axis=1)


DEFINITIONS = {
    "hour": lambda t: cycle((t - t.astype("M8[D]")).astype(np.int64) / DAY),
    "weekday": lambda t: cycle(np.array([day.weekday() for day in t.astype("M8[D]").tolist()]) / 7),
    "month": lambda t: cycle(np.array([day.month - 1 for day in t.astype("M8[D]").tolist()]) / 12),
    "days": lambda t: hold((t.astype(np.int64) / DAY - 18_000.25) / 900.0, -18_000.25 / 900, 1999.75 / 900)[
        :, np.newaxis
    ],
}


@pytest.mark.parametrize("part", list(DEFINITIONS))
@settings(max_examples=60, deadline=None)
@example(times=[datetime.datetime(2000, 2, 29, 23, 59, 59, 999_999), datetime.datetime(1900, 2, 28), EPOCH])
@example(times=[FIRST, LAST, datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(2100, 3, 1)])
@given(times=st.lists(st.datetimes(FIRST, LAST), min_size=1, max_size=20))
def test_a_part_is_what_numpy_says(part: str, times: list[datetime.datetime]) -> None:
    """For each time that BigQuery has, to float32's own precision: hours to the microsecond, leap days, before 1970."""
    found = encode([part], [micros_of(when) for when in times], nulls=0)
    expected = DEFINITIONS[part](np.array(times, "M8[us]"))
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=3e-7)


def test_every_month_of_eight_hundred_years() -> None:
    """The first and the last day of each."""
    firsts = np.arange("1600-01", "2400-01", dtype="M8[M]")
    days = np.concatenate([firsts.astype("M8[D]"), (firsts + 1).astype("M8[D]") - 1])
    found = encode(["month"], (days.astype(np.int64) * DAY).tolist(), nulls=0)
    np.testing.assert_allclose(found, cycle(np.tile(firsts.astype(np.int64) % 12, 2) / 12), atol=3e-7)


def test_a_missing_time_is_no_direction_and_the_mean_day() -> None:
    """With one more number that says so, where training had missing ones; the parts follow each other as requested."""
    parts = ["days", "hour", "month", "weekday"]
    noon = micros_of(datetime.datetime(2019, 4, 14, 18))  # the training's mean, day 18,000.25, is 6 o'clock of that day
    found = encode(parts, [LEAST, MISSING_TIME, MISSING_TIME + 1, noon])
    assert found.shape == (4, 8)
    assert found[:2].tolist() == [[0.0] * 7 + [1.0]] * 2
    assert found[2:, 7].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(found[3, :3], [0.5 / 900, np.sin(1.5 * np.pi), np.cos(1.5 * np.pi)], atol=1e-6)
    assert encode(parts, [LEAST], nulls=0).tolist() == [[0.0] * 7]


def test_a_date_is_its_midnight_and_a_timestamp_stays() -> None:
    days = tf.constant([0, -1, 19_000, LEAST], tf.int64)
    assert as_time(days, "DATE").numpy().tolist() == [0, -DAY, 19_000 * DAY, LEAST]
    assert as_time(days, "TIMESTAMP").numpy().tolist() == [0, -1, 19_000, LEAST]


def test_one_time_in_training_has_no_deviation() -> None:
    """Nor a division by 0."""
    feature = make_feature(name="t", kind="time", parts=["days"])
    encoded = Preprocessing([feature], make_statistics(t=statistics_of(0, mean=10.0, stddev=0.0)))
    assert encoded({"t": tf.constant([11 * DAY], tf.int64)})["numeric"].numpy().tolist() == [[1.0]]


class Sum(tf.Module):
    """Adds up all that it reads."""

    variables = ()

    def __call__(self, encoded: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """Add up. → [B, 1]."""
        return tf.reduce_sum(encoded["numeric"], axis=1, keepdims=True) / 5


def test_the_stored_model_reads_whole_microseconds(tmp_path: Path) -> None:
    """And gives what training saw, where float32 would be two minutes off."""
    features = [make_feature(name="t", kind="time", parts=["hour", "days"]), make_feature(name="x", kind="numeric")]
    number = make_feature_statistics(kind="numeric", min=0, max=1, mean=0, stddev=1, quantiles=(0.0, 1.0))
    encode = Preprocessing(features, make_statistics(t=statistics_of(), x=number))
    assert (encode.shape.numbers, encode.shape.quantiles) == (5, ((0.0, 1.0),))
    objective = objective_of(make_label(name="y", kind="binary"))
    save_model(tmp_path / "model", features, encode, Sum(), objective)
    stored = StoredModel(tmp_path / "model", "gs://m/model")
    assert stored.inputs == {"t": "int64", "x": "float32"}
    raw = {"t": tf.constant([1_700_000_000_123_456, MISSING_TIME], tf.int64), "x": tf.constant([0.5, 0.5])}
    np.testing.assert_allclose(stored.predict(raw), objective.scores(Sum()(encode(raw))).numpy(), rtol=1e-6)
