"""The model that `make bench-estimate` watches: boosted trees of scikit-learn, trained anew for each month.

    python -m bench.estimate_contender FLIGHTS PLAN SCORES

In: a Parquet file of flights with the column `day`; a JSON list of `{train: [first, end], score: [first, end]}`, dates,
the ends excluded. Out: a Parquet file with a row for each flight that was scored: model (its place in the list), day,
score, label.
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
from sklearn.ensemble import HistGradientBoostingClassifier

LABEL, DAY = "label", "day"


def features(flights: pa.Table) -> npt.NDArray[np.float64]:
    """Return the features as numbers; a category is the place of its value among the file's."""
    names = [name for name in flights.column_names if name not in (LABEL, DAY)]
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
    rows, labels = features(flights), flights[LABEL].to_numpy()
    days = flights[DAY].to_numpy()
    texts = [
        place
        for place, field in enumerate(field for field in flights.schema if field.name not in (LABEL, DAY))
        if pa.types.is_string(field.type)
    ]
    found: list[dict[str, Any]] = []
    for model, each in enumerate(json.loads(plan_path.read_text())):
        inside, scored = (_between(days, *each[name]) for name in ("train", "score"))
        fitted = HistGradientBoostingClassifier(categorical_features=texts, random_state=0)
        fitted.fit(rows[inside], labels[inside])
        scores = fitted.predict_proba(rows[scored])[:, 1]
        found.append({"model": np.full(len(scores), model), DAY: days[scored], "score": scores, LABEL: labels[scored]})
    table = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    pq.write_table(pa.table(table), scores_path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
