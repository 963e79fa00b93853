"""The models that `make bench-estimate` watches: boosted trees of scikit-learn, trained anew for each month.

One says whether a flight is late, one by how many minutes.

    python -m bench.estimate_contender FLIGHTS PLAN SCORES

In: a Parquet file of flights with the columns `day`, `late` and `minutes`; a JSON list of
`{train: [first, end], score: [first, end]}`, dates, the ends excluded. Out: a Parquet file with a row for each flight
that was scored: model (its place in the list), day, both labels, and an answer to each (`late_answer`,
`minutes_answer`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

DAY, LATE, MINUTES = "day", "late", "minutes"


def features(flights: pa.Table) -> npt.NDArray[np.float64]:
    """Return the features as numbers; a category is the place of its value among the file's."""
    names = [name for name in flights.column_names if name not in (DAY, LATE, MINUTES)]
    columns = [
        pc.rank(flights[name], tiebreaker="dense") if pa.types.is_string(flights[name].type) else flights[name]
        for name in names
    ]
    return np.column_stack([column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in columns])


def _between(days: npt.NDArray[np.datetime64], first: str, end: str) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (days >= np.datetime64(first)) & (days < np.datetime64(end))
    return inside


def main() -> int:
    """Train and score."""
    flights_path, plan_path, scores_path = map(Path, sys.argv[1:])
    flights = pq.read_table(flights_path)
    rows = features(flights)
    days, late, minutes = (flights[name].to_numpy() for name in (DAY, LATE, MINUTES))
    texts = [
        place
        for place, field in enumerate(field for field in flights.schema if field.name not in (DAY, LATE, MINUTES))
        if pa.types.is_string(field.type)
    ]
    found: list[dict[str, Any]] = []
    for model, each in enumerate(json.loads(plan_path.read_text())):
        inside, scored = (_between(days, *each[name]) for name in ("train", "score"))
        chance = HistGradientBoostingClassifier(categorical_features=texts, random_state=0)
        delay = HistGradientBoostingRegressor(loss="absolute_error", categorical_features=texts, random_state=0)
        chance.fit(rows[inside], late[inside])
        delay.fit(rows[inside], minutes[inside])
        found.append(
            {
                "model": np.full(scored.sum(), model),
                DAY: days[scored],
                LATE: late[scored],
                MINUTES: minutes[scored],
                "late_answer": chance.predict_proba(rows[scored])[:, 1],
                "minutes_answer": delay.predict(rows[scored]),
            }
        )
    table = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    pq.write_table(pa.table(table), scores_path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
