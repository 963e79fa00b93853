"""The request log: the query that counts it, and what its rows say.

Two windows are counted in one scan: the hours before `as_of`, and as many hours some time earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Self

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.checks import CategoricalStatistics, NumericStatistics, Statistics
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.monitoring.baselines import AnswerBaseline, bin_edges
from retraining.core.monitoring.distances import UNSEEN, Bucket
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
    category its value; null is a missing value, or with `unseen` all values that the baseline does not have. Answers
    are rows of their label, by deployed model.

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
            categorical.append({"name": feature.name, "known": f"values_{index}"})
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
            traffic[model] = traffic.get(model, Traffic()) + _traffic(row)
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
            answers[name, str(row["deployed_model_id"])][_bucket(row)] += count
        else:
            values[name][_bucket(row)] += count
    return LoggedWindow(traffic=traffic, values=values, answers=answers, giant=giant, judged=judged)


def _traffic(row: Row) -> Traffic:
    return Traffic(instances=int(row["instances"]), requests=int(row["requests"]), garbage=int(row["garbage"]))


def _bucket(row: Row) -> Bucket:
    return UNSEEN if row["unseen"] else None if row["bucket"] is None else str(row["bucket"])
