"""The request log: the queries over it, and what their rows say.

Three questions. How requests and answers are distributed: two windows in one scan, the hours before `as_of` and as many
hours some time earlier. What deployed models answered last, for a ramp. Who answered what, and what turned out: the log
joined with a query of labels.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.answers import Answers
from retraining.core.documents.checks import CategoricalStatistics, NumericStatistics, Statistics
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.documents.json_text import read_json
from retraining.core.metrics import tops_of
from retraining.core.monitoring.distributions import UNSEEN, AnswerBaseline, Bucket, bin_edges
from retraining.core.monitoring.intervals import ScoreBucket, Sums
from retraining.core.spec.deployment import Shadow
from retraining.core.spec.features import MEDIAN, OUTPUT_NAMES, class_count, cost_matrix
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import Row, TemplateValues

AskedIn = Literal["now", "earlier", "astray"]
GIANT_SHARE = 0.5
"""A request with more than this share of a window's instances is a giant batch."""


@dataclass(frozen=True, kw_only=True)
class LogWindows:
    """The window before `as_of`, and the one that it is held against; ends are exclusive."""

    start: datetime
    end: datetime
    earlier_start: datetime
    earlier_end: datetime

    @classmethod
    def before(cls, spec: ModelSpec, as_of: datetime) -> Self:
        """Return the windows of a monitor run."""
        start = as_of - timedelta(hours=spec.monitoring.window_hours)
        back = timedelta(hours=spec.monitoring.reference_hours)
        return cls(start=start, end=as_of, earlier_start=start - back, earlier_end=as_of - back)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Instances and requests of one deployed model, and instances that are no JSON object."""

    instances: int = 0
    requests: int = 0
    garbage: int = 0

    def __add__(self, other: Self) -> Traffic:
        """Return both together."""
        return Traffic(
            instances=self.instances + other.instances,
            requests=self.requests + other.requests,
            garbage=self.garbage + other.garbage,
        )


@dataclass(frozen=True, kw_only=True)
class LoggedWindow:
    """What was logged in one window.

    `giant` is the size of the one request that outweighs all others (0: there is none); its like are in `traffic`, and
    not in `values` and `answers`, which hold what distributions are taken of.
    """

    traffic: Mapping[str, Traffic] = field(default_factory=dict)
    values: Mapping[str, Mapping[Bucket, int]] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], Mapping[Bucket, int]] = field(default_factory=dict)
    giant: int = 0
    judged: int = 0
    """Instances that distributions are taken of: without garbage, and without what a giant batch brought."""

    @property
    def all(self) -> Traffic:
        """All deployed models together."""
        return sum(self.traffic.values(), Traffic())


@dataclass(frozen=True, kw_only=True)
class RequestLog:
    """Both windows, and how many requests were logged in the future."""

    now: LoggedWindow
    earlier: LoggedWindow
    future: int = 0


def large_batch(spec: ModelSpec) -> int:
    """Return the size from which on one request can outweigh all others of a window that is judged."""
    return max(1, spec.monitoring.min_requests // 2)


def render_requests_sql(
    spec: ModelSpec,
    log_table: str,
    statistics: Statistics,
    windows: LogWindows,
    *,
    answers: Sequence[AnswerBaseline] = (),
    smoke_requests: Sequence[SmokeRequest] = (),
) -> Query:
    """Return the query that counts the logged instances of both windows.

    One row per window, feature and bucket. Feature `''` has all instances of a deployed model, and those that are no
    JSON object. The bucket of a number is its bin's index among the baseline's edges (0: below all of them), of a
    category its value; null is a missing value. With `unseen` it is of values beyond the baseline's first ones: their
    hash where it has counts of that, else null for all. Answers are rows of their label, by deployed model.

    Args:
        spec: The model.
        log_table: The requests' table.
        statistics: Of the champion's run.
        windows: What is counted.
        answers: How answers are counted.
        smoke_requests: What deployments asked; left out.
    """
    times = {
        "window_start": windows.start,
        "window_end": windows.end,
        "earlier_start": windows.earlier_start,
        "earlier_end": windows.earlier_end,
    }
    parameters = [Parameter(name=name, type="TIMESTAMP", value=format_time(at)) for name, at in times.items()]
    parameters.append(Parameter(name="large_batch", type="INT64", value=large_batch(spec)))
    smokes = [item for item in smoke_requests if item.end > windows.earlier_start and item.start < windows.end]
    for index, item in enumerate(smokes):
        parameters += smoke_parameters(f"smoke_{index}", item)
    features, bounds = _feature_buckets(spec, statistics)
    counted = []
    for index, baseline in enumerate(answers):
        counted.append({**vars(baseline), "edges": f"edges_answer_{index}"})
        if not baseline.classes:
            bounds.append(Parameter(name=f"edges_answer_{index}", type="FLOAT64", value=baseline.edges))
    sql = render(
        "requests.sql.j2",
        table=log_table,
        **features,
        answers=counted,
        bare=len(spec.feature_names) == 1,
        smoke_requests=[f"smoke_{index}" for index in range(len(smokes))],
    )
    return Query(sql=sql, parameters=(*parameters, *bounds))


def _feature_buckets(spec: ModelSpec, statistics: Statistics) -> tuple[TemplateValues, list[Parameter]]:
    """Return the features whose values are counted, and the bounds or values of their buckets."""
    numeric, categorical, parameters = [], [], []
    for index, feature in enumerate(spec.features):
        baseline = statistics.splits["train"].features.get(feature.name)
        if isinstance(baseline, NumericStatistics) and (edges := bin_edges(baseline)):
            numeric.append({"name": feature.name, "edges": f"edges_{index}"})
            parameters.append(Parameter(name=f"edges_{index}", type="FLOAT64", value=tuple(edges)))
        elif isinstance(baseline, CategoricalStatistics) and feature.kind == "categorical":
            mask = f"tail_{index}" if baseline.tail else None
            categorical.append({"name": feature.name, "known": f"values_{index}", "mask": mask})
            if mask:
                parameters.append(Parameter(name=mask, type="INT64", value=len(baseline.tail) - 1))
            known = tuple(item.value for item in baseline.top)
            parameters.append(Parameter(name=f"values_{index}", type="STRING", value=known))
    return {"numeric": numeric, "categorical": categorical}, parameters


def smoke_parameters(name: str, asked: SmokeRequest) -> list[Parameter]:
    """Return what tells the requests of a smoke test from others, under names that begin with `name`."""
    return [
        Parameter(name=f"{name}_model", type="STRING", value=asked.deployed_model_id),
        Parameter(name=f"{name}_instances", type="INT64", value=asked.instances),
        Parameter(name=f"{name}_start", type="TIMESTAMP", value=format_time(asked.start)),
        Parameter(name=f"{name}_end", type="TIMESTAMP", value=format_time(asked.end)),
    ]


def read_requests(rows: Iterable[Row], labels: Iterable[str]) -> RequestLog:
    """Return what the rows of `render_requests_sql` say.

    Args:
        rows: Of the query.
        labels: Whose answers are among them.
    """
    by_window: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_window[str(row["asked_in"])].append(row)
    names = frozenset(labels)
    future = sum(int(row["requests"]) for row in by_window["astray"] if not row["feature"])
    return RequestLog(
        now=_read_window(by_window["now"], names), earlier=_read_window(by_window["earlier"], names), future=future
    )


def _read_window(rows: Sequence[Row], labels: frozenset[str]) -> LoggedWindow:
    traffic: dict[str, Traffic] = {}
    for row in rows:
        if not row["feature"]:
            model = str(row["deployed_model_id"])
            traffic[model] = traffic.get(model, Traffic()) + _read_traffic(row)
    total = sum(traffic.values(), Traffic()).instances
    largest = max((int(row["largest"]) for row in rows if not row["feature"]), default=0)
    giant = largest if largest > 1 and largest > GIANT_SHARE * total else 0
    values: dict[str, dict[Bucket, int]] = defaultdict(lambda: defaultdict(int))
    answers: dict[tuple[str, str], dict[Bucket, int]] = defaultdict(lambda: defaultdict(int))
    judged = 0
    for row in rows:
        name, count = str(row["feature"]), int(row["instances"])
        if giant and row["is_large"]:
            continue
        if not name:
            judged += count - int(row["garbage"])
        elif name in labels:
            answers[name, str(row["deployed_model_id"])][_read_bucket(row)] += count
        else:
            values[name][_read_bucket(row)] += count
    return LoggedWindow(traffic=traffic, values=values, answers=answers, giant=giant, judged=judged)


def _read_traffic(row: Row) -> Traffic:
    return Traffic(instances=int(row["instances"]), requests=int(row["requests"]), garbage=int(row["garbage"]))


def _read_bucket(row: Row) -> Bucket:
    if row["unseen"]:
        return UNSEEN if row["bucket"] is None else int(row["bucket"])
    return None if row["bucket"] is None else str(row["bucket"])


MAX_ANSWERS = 2000
"""Of each version: enough for deciles, and little to move."""


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
        Parameter(name="most", type="INT64", value=MAX_ANSWERS),
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
        answer = number_of_answer(spec, row["answer"])
        if answer is not None:
            found.setdefault(str(row["deployed_model_id"]), []).append(answer)
    return found


MAX_CHARACTERS, ALL_CHARACTERS = 100_000, 20_000_000
"""Of a request that is sent again, with its answers; and of all of them."""


def render_shadow_sql(log_table: str, deployed_id: str, until: datetime, shadow: Shadow) -> Query:
    """Return the query for the requests that are sent again: rows with their time, payloads and who answered.

    Args:
        log_table: The requests' table.
        deployed_id: Whose requests.
        until: End of the time.
        shadow: Of the spec.
    """
    parameters = (
        Parameter(name="window_start", type="TIMESTAMP", value=format_time(until - timedelta(hours=shadow.hours))),
        Parameter(name="window_end", type="TIMESTAMP", value=format_time(until)),
        Parameter(name="model", type="STRING", value=deployed_id),
        Parameter(name="most", type="INT64", value=shadow.max_requests),
        Parameter(name="most_characters", type="INT64", value=MAX_CHARACTERS),
        Parameter(name="all_characters", type="INT64", value=ALL_CHARACTERS),
    )
    return Query(sql=render("shadow.sql.j2", table=log_table), parameters=parameters)


def text_of_answer(prediction: object) -> str:
    """Return a prediction as the request log has it: JSON text, in which numbers may be NaN."""
    return json.dumps(prediction)


def numbers_of_answer(text: object) -> list[float] | None:
    """Return the numbers of an answer's text, one or several; None: it is of another form."""
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
    return numbers


def number_of_answer(spec: ModelSpec, text: object) -> float | None:
    """Return the number that an answer's text gives, or its likeliest class; None: it is of another form."""
    numbers = numbers_of_answer(text)
    if numbers is None:
        return None
    if spec.label.kind == "multiclass":
        return float(max(range(len(numbers)), key=numbers.__getitem__))
    levels = spec.label.quantiles if spec.label.kind == "regression" else ()
    return float(numbers[levels.index(MEDIAN) if levels and len(numbers) == len(levels) else 0])


SCORE_BUCKETS = 2000
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
class AnswerWindow:
    """Whose answers are asked for: of which log, from when until when, without which smoke tests."""

    log_table: str
    start: datetime
    end: datetime
    smoke_requests: tuple[SmokeRequest, ...] = ()


def render_performance_sql(
    spec: ModelSpec, window: AnswerWindow, labels: Labels | None, keys: KeyTable | None, answers: Answers | None
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
        parameters.append(Parameter(name="buckets", type="INT64", value=SCORE_BUCKETS))
    if labels is not None:
        parameters.append(Parameter(name="settled", type="TIMESTAMP", value=format_time(labels.settled)))
        parameters += labels.parameters
        if levels:
            parameters.append(Parameter(name="levels", type="FLOAT64", value=levels))
        if costs := cost_matrix(spec.label):
            row_by_row = tuple(itertools.chain.from_iterable(costs))
            parameters.append(Parameter(name="costs", type="FLOAT64", value=row_by_row))
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
        **_label_columns(spec, labels.columns if labels else frozenset()),
    )
    return Query(sql=sql, parameters=tuple(parameters))


def _label_columns(spec: ModelSpec, found: frozenset[str]) -> TemplateValues:
    """Return the columns that the labels' query has, and what is cut and measured by them."""
    evaluation, data = spec.evaluation, spec.data
    columns = [name for name in evaluation.slice_columns if name in found]
    cuts = [(name,) for name in evaluation.plain_slices] + list(evaluation.crossed_slices)
    places = {name: f"slice_{index}" for index, name in enumerate(columns)}
    classes = class_count(spec.label) if spec.label.kind == "multiclass" else 0
    return {
        "key": data.key,
        "label": spec.label.name,
        "event_time": data.event_time if data.event_time in found else None,
        "slice_columns": columns,
        "slices": [
            {"columns": cut, "places": [places[name] for name in cut]} for cut in cuts if set(cut) <= places.keys()
        ],
        "tops": list(tops_of(classes).items()),
        "costs": bool(cost_matrix(spec.label)),
        "classes": classes,
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
    def bucket(self) -> ScoreBucket:
        """By label."""
        return ScoreBucket(positives=self.positives, negatives=self.examples - self.positives)


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

    def buckets(self, name: str = "") -> list[ScoreBucket]:
        """Return a histogram's buckets, by rising score."""
        return [each.bucket for _, each in sorted(self.histograms.get(name, {}).items())]


@dataclass
class VersionAnswers:
    """What one deployed model answered in the window."""

    answers: Histogram = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cuts: dict[tuple[str, str], Cut] = field(default_factory=lambda: defaultdict(Cut))


def read_labelled_answers(rows: Iterable[Mapping[str, Any]]) -> dict[str, VersionAnswers]:
    """Return what the query found, by deployed-model id."""
    found: dict[str, VersionAnswers] = defaultdict(VersionAnswers)
    for row in rows:
        of_version, part = found[str(row["answered_by"])], row["part"]
        if part == "count":
            of_version.counts[str(row["name"])] += int(row["examples"])
        elif part == "answers":
            of_version.answers[_bucket_index(row)] = _read_counted(row)
        else:
            _add_to_cut(of_version.cuts[str(row["slice_column"]), str(row["slice_value"])], part, row)
    return dict(found)


def _add_to_cut(cut: Cut, part: str, row: Mapping[str, Any]) -> None:
    if part == "histogram":
        cut.histograms[str(row["class"])][_bucket_index(row)] = _read_counted(row)
    elif part == "mean":
        sums = Sums(examples=int(row["examples"]), total=float(row["total"]), squares=float(row["squares"]))
        cut.means[str(row["name"])] = sums
    elif part == "confusion":
        cut.confusion[int(row["class"]), _bucket_index(row)] = float(row["examples"])
    else:
        cut.quantiles[_bucket_index(row)] = float(row["total"])


def _bucket_index(row: Mapping[str, Any]) -> int:
    return -1 if row["bucket"] is None else int(row["bucket"])


def _read_counted(row: Mapping[str, Any]) -> Counted:
    numbers = (float(row[name] or 0) for name in ("examples", "positives", "total", "squares"))
    return Counted(*numbers)


def missing_label_columns(spec: ModelSpec, columns: Sequence[str]) -> list[str]:
    """Return which of key and label a query of labels does not have."""
    return [name for name in (spec.data.key, spec.label.name) if name not in columns]
