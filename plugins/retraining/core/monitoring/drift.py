"""Distance between what the endpoint is asked and what its champion was trained on, per feature.

Categories: L-infinity, the largest change of any value's share, unseen and missing values included. Numbers:
Jensen-Shannon divergence in base 2 over the training data's quantile bins, with a bin for missing values:
`JSD(P, Q) = (KL(P || M) + KL(Q || M)) / 2`, `M = (P + Q) / 2` (Lin 1991, "Divergence measures based on the Shannon
entropy"). Both lie in [0, 1]; they are the distances of Vertex AI Model Monitoring and TensorFlow Data Validation.

Images have no values to count. With several classes the answers stand in for them: the shares of the likeliest classes
against those of the training labels, L-infinity, under the label's name. The answers of a regression (of quantiles the
median) are held against the champion's own answers to its test days, Jensen-Shannon, under the label's name.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.checks import (
    CategoricalStatistics,
    NumericStatistics,
    SplitStatistics,
    Statistics,
)
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.documents.evaluation import Answers
from retraining.core.documents.monitoring import Drift, DriftChampion, FeatureDrift, NamedState, Signal
from retraining.core.spec.features import MEDIAN
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import TemplateValues


class Unseen(Enum):
    """The bucket of all values that the baseline does not have: no value is equal to it."""

    UNSEEN = "unseen"


UNSEEN = Unseen.UNSEEN
Bucket = str | Unseen | None


def render_requests_sql(
    spec: ModelSpec,
    log_table: str,
    statistics: Statistics,
    as_of: datetime,
    smoke_requests: Sequence[SmokeRequest] = (),
    answers: Answers | None = None,
) -> Query:
    """Return the query that counts the logged instances of `monitoring.window_hours` before `as_of` (exclusive).

    One row per feature and bucket: `feature, bucket, unseen, instances`. Feature `''` has the number of instances. The
    bucket of a number is its bin's index among the baseline's edges (0: below all of them), of a category its value;
    null is a missing value, or with `unseen` all values that the baseline does not have. With several classes the label
    is there too, with the likeliest class of each answer; of a regression with the bin of the answer.

    Args:
        spec: The model.
        log_table: The requests' table.
        statistics: Of the champion's run.
        as_of: End of the window.
        smoke_requests: What deployments asked; left out.
        answers: Of a champion that answers with numbers, to its test days.
    """
    start = as_of - timedelta(hours=spec.monitoring.window_hours)
    parameters = [
        Parameter(name="window_start", type="TIMESTAMP", value=format_time(start)),
        Parameter(name="window_end", type="TIMESTAMP", value=format_time(as_of)),
    ]
    smokes = [item for item in smoke_requests if item.end > start and item.start < as_of]
    for index, item in enumerate(smokes):
        parameters += _smoke_parameters(f"smoke_{index}", item)
    features, bounds = _feature_buckets(spec, statistics)
    answer = spec.label.name if spec.label.kind == "multiclass" else None
    if answer is not None:
        classes = len(statistics.splits["train"].label.counts or ())
        parameters.append(Parameter(name="classes", type="INT64", value=classes))
    number = _number_answer(spec, answers)
    if number and answers:
        parameters.append(Parameter(name="edges_answer", type="FLOAT64", value=tuple(bin_edges(_baseline(answers)))))
    asked = {"answer": answer, "number": number, "smoke_requests": [f"smoke_{index}" for index in range(len(smokes))]}
    sql = render("requests.sql.j2", table=log_table, **features, **asked)
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


def _number_answer(spec: ModelSpec, answers: Answers | None) -> TemplateValues | None:
    """Return the label of a regression, and where the answer stands in a list of quantiles."""
    if spec.label.kind != "regression" or answers is None:
        return None
    levels = spec.label.quantiles
    return {"name": spec.label.name, "place": levels.index(MEDIAN) if levels else None}


def _baseline(answers: Answers) -> NumericStatistics:
    """Return answers as statistics of a column that is never missing."""
    low, high = answers.quantiles[0], answers.quantiles[-1]
    return NumericStatistics(
        kind="numeric", nulls=0, min=low, max=high, mean=None, stddev=None, quantiles=answers.quantiles
    )


def _smoke_parameters(name: str, asked: SmokeRequest) -> list[Parameter]:
    return [
        Parameter(name=f"{name}_model", type="STRING", value=asked.deployed_model_id),
        Parameter(name=f"{name}_instances", type="INT64", value=asked.instances),
        Parameter(name=f"{name}_start", type="TIMESTAMP", value=format_time(asked.start)),
        Parameter(name=f"{name}_end", type="TIMESTAMP", value=format_time(asked.end)),
    ]


def measure(
    spec: ModelSpec,
    *,
    as_of: datetime,
    endpoint_name: str,
    log_table: str,
    champion: DriftChampion,
    baseline_uri: str,
    statistics: Statistics,
    rows: Iterable[Mapping[str, Any]],
) -> Drift:
    """Return the drift document from the rows of `render_requests_sql`.

    Args:
        spec: The model.
        as_of: End of the requests' window.
        endpoint_name: That was asked.
        log_table: The requests' table.
        champion: Whose training data is the baseline.
        baseline_uri: Address of `statistics`.
        statistics: Of the champion's run.
        rows: Of the query.
    """
    counts = _counts(rows)
    total = sum(counts.pop("", {}).values())
    limits, train = spec.monitoring.drift, statistics.splits["train"]
    features = [
        _feature_drift(name, train, counts[name], limits.features.get(name, limits.threshold))
        for name in (spec.feature_names if total else [])
    ]
    label = spec.label.name
    if total and train.label.counts and sum(train.label.counts):
        limit = limits.features.get(label, limits.threshold)
        features.append(_drifted(label, "l_infinity", l_infinity(class_shares(train), _shares(counts[label])), limit))
    return Drift(
        model=spec.name,
        as_of=as_of,
        window_hours=spec.monitoring.window_hours,
        endpoint_name=endpoint_name,
        log_table=log_table,
        rows=total,
        champion=champion,
        baseline_uri=baseline_uri,
        threshold=limits.threshold,
        features=tuple(feature for feature in features if feature is not None),
    )


def add_answers(measured: Drift, spec: ModelSpec, rows: Iterable[Mapping[str, Any]], answers: Answers | None) -> Drift:
    """Return a drift document with the distance of a regression's answers, where there are any.

    Args:
        measured: Of the features.
        spec: The model.
        rows: Of the query.
        answers: As for the query.
    """
    if not measured.rows or answers is None or spec.label.kind != "regression":
        return measured
    label, limits, baseline = spec.label.name, spec.monitoring.drift, _baseline(answers)
    edges = bin_edges(baseline)
    value = jensen_shannon(bin_shares(baseline, 1, edges), _bins(_counts(rows)[label], len(edges)))
    drifted = _drifted(label, "jensen_shannon", value, limits.features.get(label, limits.threshold))
    return measured.model_copy(update={"features": (*measured.features, drifted)})


def judge_skew(spec: ModelSpec, measured: Drift | None) -> tuple[Signal, ...]:
    """Return a signal per feature that the training data has; with too few requests none is judged."""
    if measured is None:
        words = f"No champion of {spec.name} serves, so there is nothing to compare with."
        return (_not_judged(spec, "no_champion", 0, words),)
    if measured.rows < spec.monitoring.min_requests:
        few = f"{measured.rows} instances in {measured.window_hours} hours are too few to judge"
        return (_not_judged(spec, "too_few", measured.rows, f"{few} (at least {spec.monitoring.min_requests})."),)
    return tuple(
        Signal(
            kind="skew",
            subject=item.name,
            state="exceeded" if item.drifted else "ok",
            because=None,
            measure=item.distance,
            value=item.value,
            threshold=item.threshold,
            examples=measured.rows,
            words=f"{item.name} is {item.value:.3f} from the training data (limit {item.threshold:g}).",
        )
        for item in measured.features
    )


def _not_judged(spec: ModelSpec, because: NamedState, examples: int, words: str) -> Signal:
    return Signal(
        kind="skew",
        subject="",
        state="not_judged",
        because=because,
        measure="l_infinity",
        value=None,
        threshold=spec.monitoring.drift.threshold,
        examples=examples,
        words=words,
    )


def _counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[Bucket, int]]:
    """Return the instances by feature and bucket."""
    counts: dict[str, dict[Bucket, int]] = defaultdict(dict)
    for row in rows:
        bucket = UNSEEN if row["unseen"] else None if row["bucket"] is None else str(row["bucket"])
        counts[str(row["feature"])][bucket] = int(row["instances"])
    return counts


def _feature_drift(
    name: str, train: SplitStatistics, counts: Mapping[Bucket, int], threshold: float
) -> FeatureDrift | None:
    """Return the drift of one feature; None when the champion's training data has no numbers or categories of it."""
    baseline = train.features.get(name)
    if not isinstance(baseline, NumericStatistics | CategoricalStatistics) or not train.rows:
        return None
    if isinstance(baseline, CategoricalStatistics):
        value = l_infinity(category_shares(baseline, train.rows), _shares(counts))
        return _drifted(name, "l_infinity", value, threshold)
    edges = bin_edges(baseline)
    if not edges:
        return None
    value = jensen_shannon(bin_shares(baseline, train.rows, edges), _bins(counts, len(edges)))
    return _drifted(name, "jensen_shannon", value, threshold)


def l_infinity(p: Mapping[Bucket, float], q: Mapping[Bucket, float]) -> float:
    """Return the largest difference of any value's share, over the values of both."""
    return max((abs(p.get(value, 0.0) - q.get(value, 0.0)) for value in {*p, *q}), default=0.0)


def jensen_shannon(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence, base 2, of two distributions over the same bins (each sums to 1)."""
    divergence = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        divergence += sum(share * math.log2(share / middle) for share in (a, b) if share > 0) / 2
    return min(1.0, max(0.0, divergence))


def bin_edges(baseline: NumericStatistics) -> list[float]:
    """Return distinct quantiles: bin i (from 1) is `[edge i, edge i+1)`, the last one is open, bin 0 lies below all."""
    return sorted(set(baseline.quantiles))


def bin_shares(baseline: NumericStatistics, rows: int, edges: Sequence[float]) -> list[float]:
    """Return the baseline's share per bin: below, between the edges, above; last the missing values.

    Where several quantiles are equal their steps fall to the bin that begins there; the error of a share is at most
    one step (5 %).
    """
    quantiles = sorted(baseline.quantiles)
    steps = len(quantiles) - 1
    missing = baseline.nulls / rows
    below = [quantiles.index(edge) / steps if steps else 0.0 for edge in edges] + [1.0]
    shares = [0.0, *(high - low for low, high in itertools.pairwise(below))]
    return [*(share * (1 - missing) for share in shares), missing]


def category_shares(baseline: CategoricalStatistics, rows: int) -> dict[Bucket, float]:
    """Return the baseline's share per value; None is the missing ones. Values beyond the first 1000 count as unseen."""
    shares: dict[Bucket, float] = {item.value: item.count / rows for item in baseline.top}
    shares[None] = baseline.nulls / rows
    shares[UNSEEN] = max(0.0, 1.0 - sum(shares.values()))
    return shares


def class_shares(train: SplitStatistics) -> dict[Bucket, float]:
    """Return the training labels' share per class."""
    counts = train.label.counts or ()
    return {str(label): count / sum(counts) for label, count in enumerate(counts)}


def _bins(counts: Mapping[Bucket, int], edges: int) -> list[float]:
    total = sum(counts.values()) or 1
    shares = [0.0] * (edges + 2)
    for bucket, count in counts.items():
        shares[int(bucket) if isinstance(bucket, str) else -1] += count / total
    return shares


def _shares(counts: Mapping[Bucket, int]) -> dict[Bucket, float]:
    total = sum(counts.values()) or 1
    return {value: count / total for value, count in counts.items()}


def _drifted(name: str, distance: str, value: float, threshold: float) -> FeatureDrift:
    return FeatureDrift(name=name, distance=distance, value=value, threshold=threshold, drifted=value > threshold)  # type: ignore[arg-type]  # one of the two literals
