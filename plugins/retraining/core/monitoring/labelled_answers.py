"""The question for answers and their labels: who said what in the window, and what turned out.

In: the request log, a query of labels, how keys are told. Out: one query, and its rows read into counts and sums.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.answers import Answers
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.monitoring.intervals import Bucket, Sums
from retraining.core.monitoring.request_log import smoke_parameters
from retraining.core.spec.features import MEDIAN
from retraining.core.spec.metrics import TOPS
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import TemplateValues

BUCKETS = 2000
"""Of scores: two of them are told apart from 0.0005 on."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Where labels come from.

    Attributes:
        sql: Rows of key and label, as they can stand in parentheses.
        parameters: That it names, but for `as_of`.
        columns: Of its result.
        settled: From then on a label may not be known yet.
    """

    sql: str
    parameters: tuple[Parameter, ...]
    columns: frozenset[str]
    settled: datetime


@dataclass(frozen=True, kw_only=True)
class KeyTable:
    """A table of the caller's: which example the instance of a request was about."""

    table: str
    has_instance: bool


@dataclass(frozen=True, kw_only=True)
class Window:
    """Whose answers are asked for: of which log, from when until when, without which smoke tests."""

    log_table: str
    start: datetime
    end: datetime
    smoke_requests: tuple[SmokeRequest, ...] = ()


def render_performance_sql(
    spec: ModelSpec, window: Window, labels: Labels | None, keys: KeyTable | None, answers: Answers | None
) -> Query:
    """Return the query for the window's answers and, with labels, what came of them.

    Args:
        spec: The model.
        window: Whose answers.
        labels: What turned out; None: only the answers are counted.
        keys: How an answer finds its label; None: the key came with the request.
        answers: Of a regression: what the champion answered to its test days, by whose bins answers are counted.
    """
    smokes = [item for item in window.smoke_requests if item.end > window.start and item.start < window.end]
    parameters = [
        Parameter(name="asked_from", type="TIMESTAMP", value=format_time(window.start)),
        Parameter(name="asked_until", type="TIMESTAMP", value=format_time(window.end)),
    ]
    for index, item in enumerate(smokes):
        parameters += smoke_parameters(f"smoke_{index}", item)
    levels = spec.label.quantiles if spec.label.kind == "regression" else ()
    if spec.label.kind == "regression":
        parameters.append(Parameter(name="edges", type="FLOAT64", value=tuple(answer_edges(answers))))
    else:
        parameters.append(Parameter(name="buckets", type="INT64", value=BUCKETS))
    if labels is not None:
        parameters.append(Parameter(name="settled", type="TIMESTAMP", value=format_time(labels.settled)))
        parameters += labels.parameters
        if levels:
            parameters.append(Parameter(name="levels", type="FLOAT64", value=levels))
    sql = render(
        "performance.sql.j2",
        table=window.log_table,
        smoke_requests=[f"smoke_{index}" for index in range(len(smokes))],
        kind=spec.label.kind,
        place=levels.index(MEDIAN) if levels else None,
        levels=len(levels),
        query=labels.sql if labels else None,
        key_input=keys is None,
        keys_table=keys.table if keys else None,
        keys_have_instance=keys is not None and keys.has_instance,
        **_columns(spec, labels.columns if labels else frozenset()),
    )
    return Query(sql=sql, parameters=tuple(parameters))


def _columns(spec: ModelSpec, found: frozenset[str]) -> TemplateValues:
    """Return the columns that the labels' query has, and what is cut and measured by them."""
    evaluation, data = spec.evaluation, spec.data
    columns = [name for name in evaluation.slice_columns if name in found]
    cuts = [(name,) for name in evaluation.plain_slices] + list(evaluation.crossed_slices)
    places = {name: f"slice_{index}" for index, name in enumerate(columns)}
    classes = spec.label.classes if spec.label.kind == "multiclass" else 0
    return {
        "key": data.key,
        "label": spec.label.name,
        "event_time": data.event_time if data.event_time in found else None,
        "slice_columns": columns,
        "slices": [
            {"columns": cut, "places": [places[name] for name in cut]} for cut in cuts if set(cut) <= places.keys()
        ],
        "tops": [(name, most) for name, most in TOPS.items() if most < classes],
        "each_class": classes > 0 and evaluation.metric == "auc",
        "quantiles_of_error": evaluation.metric == "medae",
    }


def answer_edges(answers: Answers | None) -> list[float]:
    """Return where the next of the champion's bins of answers is nearer: bin i lies from edge i - 1 to edge i."""
    means = sorted({each.answer for each in answers.bins}) if answers else []
    return [(low + high) / 2 for low, high in itertools.pairwise(means)] or [0.0]


@dataclass
class Counted:
    """Answers in one bucket: how many, with a positive label, their sum, and the sum of squared errors."""

    examples: float = 0
    positives: float = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def bucket(self) -> Bucket:
        """By label."""
        return Bucket(positives=self.positives, negatives=self.examples - self.positives)


Histogram = dict[int, Counted]


@dataclass
class Cut:
    """Labelled answers of one version and slice, in counts and sums."""

    histograms: dict[str, Histogram] = field(default_factory=lambda: defaultdict(dict))
    means: dict[str, Sums] = field(default_factory=dict)
    confusion: dict[tuple[int, int], float] = field(default_factory=dict)
    quantiles: dict[int, float] = field(default_factory=dict)

    @property
    def examples(self) -> int:
        """How many there are."""
        return round(sum(each.examples for each in self.histograms.get("", {}).values()))

    def buckets(self, name: str = "") -> list[Bucket]:
        """Return a histogram's buckets, by rising score."""
        return [each.bucket for _, each in sorted(self.histograms.get(name, {}).items())]


@dataclass
class VersionAnswers:
    """What one deployed model answered in the window."""

    answers: Histogram = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cuts: dict[tuple[str, str], Cut] = field(default_factory=lambda: defaultdict(Cut))


def read_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, VersionAnswers]:
    """Return what the query found, by deployed-model id."""
    found: dict[str, VersionAnswers] = defaultdict(VersionAnswers)
    for row in rows:
        of_version, part = found[str(row["answered_by"])], row["part"]
        if part == "count":
            of_version.counts[str(row["name"])] += int(row["examples"])
        elif part == "answers":
            of_version.answers[_place(row)] = _counted(row)
        else:
            _add(of_version.cuts[str(row["slice_column"]), str(row["slice_value"])], part, row)
    return dict(found)


def _add(cut: Cut, part: str, row: Mapping[str, Any]) -> None:
    if part == "histogram":
        cut.histograms[str(row["class"])][_place(row)] = _counted(row)
    elif part == "mean":
        sums = Sums(examples=int(row["examples"]), total=float(row["total"]), squares=float(row["squares"]))
        cut.means[str(row["name"])] = sums
    elif part == "confusion":
        cut.confusion[int(row["class"]), _place(row)] = float(row["examples"])
    else:
        cut.quantiles[_place(row)] = float(row["total"])


def _place(row: Mapping[str, Any]) -> int:
    return -1 if row["bucket"] is None else int(row["bucket"])


def _counted(row: Mapping[str, Any]) -> Counted:
    numbers = (float(row[name] or 0) for name in ("examples", "positives", "total", "squares"))
    return Counted(*numbers)


def missing_columns(spec: ModelSpec, columns: Sequence[str]) -> list[str]:
    """Return which of key and label a query of labels does not have."""
    return [name for name in (spec.data.key, spec.label.name) if name not in columns]
