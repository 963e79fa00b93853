"""How differently two versions answer in the same minutes: Jensen-Shannon divergence between their logged answers.

In: rows of the request log. Out: a number in [0, 1]. Numbers are held against each other in the deciles of both
together, several classes by their likeliest one.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.document import format_time
from retraining.core.documents.json_text import read_json
from retraining.core.monitoring.distances import jensen_shannon
from retraining.core.spec.features import MEDIAN, OUTPUT_NAMES
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import Row

MOST_ANSWERS = 2000
"""Of each version: enough for deciles, and little to move."""

_BINS = 10


def render_answers_sql(log_table: str, deployed_ids: Sequence[str], start: datetime, end: datetime) -> Query:
    """Return the query for the newest answers of some deployed models: rows `deployed_model_id, answer`.

    Args:
        log_table: The requests' table.
        deployed_ids: Whose answers.
        start: Of the time, exclusive.
        end: Of the time.
    """
    parameters = (
        Parameter(name="window_start", type="TIMESTAMP", value=format_time(start)),
        Parameter(name="window_end", type="TIMESTAMP", value=format_time(end)),
        Parameter(name="models", type="STRING", value=tuple(deployed_ids)),
        Parameter(name="most", type="INT64", value=MOST_ANSWERS),
    )
    return Query(sql=render("answers.sql.j2", table=log_table), parameters=parameters)


def read_answers(spec: ModelSpec, rows: Iterable[Row]) -> dict[str, list[float]]:
    """Return the answers by deployed-model id: a number, or the likeliest class; one of another form is left out.

    Args:
        spec: The model.
        rows: Of `render_answers_sql`.
    """
    found: dict[str, list[float]] = {}
    for row in rows:
        answer = _number(spec, row["answer"])
        if answer is not None:
            found.setdefault(str(row["deployed_model_id"]), []).append(answer)
    return found


def shift(spec: ModelSpec, new: Sequence[float], old: Sequence[float]) -> float:
    """Return the divergence of two versions' answers; 0 where either has none."""
    if not new or not old:
        return 0.0
    if spec.label.kind == "multiclass":
        classes = sorted({*new, *old})
        return jensen_shannon(_shares(new, classes), _shares(old, classes))
    edges = _edges([answer for answer in (*new, *old) if not math.isnan(answer)])
    bins = range(len(edges) + 2)  # the last one is of NaN, which no order has a place for
    new_bins, old_bins = (
        [bins[-1] if math.isnan(answer) else bisect.bisect_right(edges, answer) for answer in answers]
        for answers in (new, old)
    )
    return jensen_shannon(_shares(new_bins, bins), _shares(old_bins, bins))


def _edges(answers: Sequence[float]) -> list[float]:
    """Return where bins begin: at the deciles, and behind each answer that is more than one of them.

    Were it not for those, a champion that says one thing would share its bin with whatever a small share says above it.
    """
    if not answers:
        return []
    ordered = sorted(answers)
    deciles = Counter(ordered[len(ordered) * part // _BINS] for part in range(1, _BINS))
    behind = {math.nextafter(decile, math.inf) for decile, number in deciles.items() if number > 1}
    return sorted(behind.union(deciles))


def _number(spec: ModelSpec, text: object) -> float | None:
    try:
        answer: Any = read_json(str(text), finite=False)  # NaN is an answer, and far from any other
    except ValueError:
        return None
    if isinstance(answer, Mapping):
        named = [name for name in answer if name in OUTPUT_NAMES or len(answer) == 1]
        answer = answer[named[0]] if named else None
    numbers = answer if isinstance(answer, list) else [answer]
    if not numbers or not all(isinstance(number, int | float) for number in numbers):
        return None
    if spec.label.kind == "multiclass":
        return float(max(range(len(numbers)), key=numbers.__getitem__))
    levels = spec.label.quantiles if spec.label.kind == "regression" else ()
    return float(numbers[levels.index(MEDIAN) if levels and len(numbers) == len(levels) else 0])


def _shares(answers: Sequence[float], values: Iterable[float]) -> list[float]:
    counts = Counter(answers)
    return [counts[value] / len(answers) for value in values]
