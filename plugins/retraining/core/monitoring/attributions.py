"""Attributions: does each feature matter for the answers to the requests as it did for those to the test days?

In: instances, answers of one version, a baseline value for each feature. Out: what is asked, attributions by row and
feature, and a signal. Along a random order of the features each changes from its baseline to the instance's value, one
after the other; what its turn changes in the answer is its attribution (sampled Shapley values, Castro, Gómez, Tejada
2009, with one order for each row: many rows say more than many orders of few). A feature's share is its part of the
mean sizes; two sets of rows are as far apart as half the sum of what the shares differ by (total variation).
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents import AttributionBaseline, RequestAttributions, Signal
from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import format_time
from retraining.core.documents.json_text import read_json
from retraining.core.documents.plan import Plan
from retraining.core.monitoring.request_log import LogWindows, numbers_of_answer, smoke_parameters, text_of_answer
from retraining.core.monitoring.signals import not_judged
from retraining.core.signal_kinds import SignalKind
from retraining.core.spec.features import MEDIAN, Feature
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import AttributionDrift
from retraining.core.untyped import JsonObject, Row

KIND: SignalKind = "attributions"
MEASURE = "total_variation"
CALL_ROWS = 100
"""Instances of each request: the last one is filled up, so that all can be told by it in the request log."""
MAX_CHARACTERS = 10_000
"""Of an instance: `CALL_ROWS` of them are within the 1.5 MB that an endpoint takes."""
MIN_ROWS = 30
"""Of either side; fewer say too little. docs/monitoring.md has what was measured."""
SHUFFLES = 1000
"""Of the rows of both sides: chance alone is beyond all of them once in 1001 times, about as for other limits."""
ROUNDED_ODDS = 1e-6
"""Nearer to 0 or 1 a probability counts as this: float32 ends there."""
_SHOWN = 3

Attribution = tuple[float, ...]
Value = int | float | str


def rows_within(requests: int, features: int, predictions: int) -> int:
    """Return how many rows may be explained of each side, at most so many, for at most so many predictions in all."""
    calls = predictions // CALL_ROWS
    return min(requests, calls * CALL_ROWS // (2 * (features + 1)))


def predictions_of(rows: int, features: int) -> int:
    """Return how many predictions it takes to explain so many rows, fillers among them."""
    return -(-rows * (features + 1) // CALL_ROWS) * CALL_ROWS


def render_instances_sql(
    log_table: str, windows: LogWindows, seed: str, rows: int, smoke_requests: Sequence[SmokeRequest]
) -> Query:
    """Return the query for a sample of the window's instances: rows `request_id, place, instance`.

    It is spread over as many requests as there are, so that none with many instances outweighs the others.

    Args:
        log_table: The requests' table.
        windows: Of the monitor run.
        seed: Which instances are drawn follows from it.
        rows: At most so many.
        smoke_requests: What no application asked; left out.
    """
    smokes = [item for item in smoke_requests if item.end > windows.start and item.start < windows.end]
    parameters = [
        Parameter(name="window_start", type="TIMESTAMP", value=format_time(windows.start)),
        Parameter(name="window_end", type="TIMESTAMP", value=format_time(windows.end)),
        Parameter(name="most_characters", type="INT64", value=MAX_CHARACTERS),
        Parameter(name="seed", type="STRING", value=seed),
        Parameter(name="most", type="INT64", value=rows),
    ]
    for index, item in enumerate(smokes):
        parameters += smoke_parameters(f"smoke_{index}", item)
    names = [f"smoke_{index}" for index in range(len(smokes))]
    return Query(
        sql=render("attribution_requests.sql.j2", table=log_table, smoke_requests=names), parameters=tuple(parameters)
    )


def render_test_rows_sql(plan: Plan, table: str, truths: Sequence[str], seed: str, rows: int) -> Query:
    """Return the query for a sample of a version's test examples: their `example_key`, and each feature as it is sent.

    Args:
        plan: Of the version's run.
        table: Of the same run.
        truths: Columns of it that are BOOL.
        seed: Which examples are drawn follows from it.
        rows: At most so many.
    """
    sql = render(
        "attribution_test_rows.sql.j2", table=table, key=plan.spec.data.key, features=plan.spec.features, truths=truths
    )
    parameters = (
        Parameter(name="test_start", type="DATE", value=plan.window.test_start.isoformat()),
        Parameter(name="seed", type="STRING", value=seed),
        Parameter(name="most", type="INT64", value=rows),
    )
    return Query(sql=sql, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Something that is explained: an instance with every feature, and what it is called."""

    name: tuple[str, int]
    instance: JsonObject


def read_instances(rows: Sequence[Row], features: Sequence[str]) -> list[Explained]:
    """Return the instances of a sample that have every feature as a number or a text; others cannot be asked."""
    found = []
    for row in rows:
        try:
            instance = read_json(str(row["instance"]), finite=False)  # a missing number is NaN
        except ValueError:
            continue
        if isinstance(instance, dict) and all(isinstance(instance.get(name), Value) for name in features):
            found.append(Explained(name=(str(row["request_id"]), int(row["place"])), instance=instance))
    return found


def read_test_rows(rows: Sequence[Row], features: Sequence[Feature], key_input: str | None) -> list[Explained]:
    """Return the instances of test examples.

    Args:
        rows: Of `render_test_rows_sql`.
        features: Of the spec.
        key_input: Name of the key where the model takes it; None: it does not.
    """
    names = [feature.name for feature in features]
    keys = {} if key_input is None else {key_input: "example_key"}
    return [
        Explained(
            name=(str(row["example_key"]), 0),
            instance={**{name: row[name] for name in names}, **{name: row[column] for name, column in keys.items()}},
        )
        for row in rows
    ]


def draw_order(features: Sequence[str], seed: str, row: int) -> tuple[str, ...]:
    """Return the order in which a row's features change; the same for the same seed."""
    return tuple(features[place] for place in _shuffled(len(features), f"{seed}|{row}"))


def _shuffled(count: int, seed: str) -> list[int]:
    """Return the numbers below a count in an order that follows from a text, by hashes: anybody can draw it again."""
    keys = struct.unpack(f">{count}Q", hashlib.shake_256(seed.encode()).digest(8 * count))
    return sorted(range(count), key=keys.__getitem__)


def mix(instance: JsonObject, baselines: Mapping[str, Value], order: Sequence[str]) -> Iterator[JsonObject]:
    """Yield what is asked of one row: with every feature at its baseline, then with one more of its own each time."""
    mixed = {**instance, **baselines}
    yield dict(mixed)
    for name in order:
        mixed[name] = instance[name]
        yield dict(mixed)


def asked_instances(explained: Sequence[Explained], baselines: Mapping[str, Value], seed: str) -> list[JsonObject]:
    """Return all that is asked of some rows, in order."""
    features = list(baselines)
    mixed = (mix(one.instance, baselines, draw_order(features, seed, row)) for row, one in enumerate(explained))
    return list(itertools.chain.from_iterable(mixed))


def attributions_of(
    spec: ModelSpec, features: Sequence[str], seed: str, predictions: Sequence[object]
) -> list[Attribution] | None:
    """Return what each feature added to each row's answer; None: an answer is no number.

    Args:
        spec: The model.
        features: As they were asked.
        seed: The same.
        predictions: Of `asked_instances`.
    """
    asked, found = len(features) + 1, []
    for row in range(len(predictions) // asked):
        answers = [numbers_of_answer(text_of_answer(one)) for one in predictions[row * asked : (row + 1) * asked]]
        values = _values(spec, answers)
        if values is None:
            return None
        order = draw_order(features, seed, row)
        added = dict(zip(order, (after - before for before, after in itertools.pairwise(values)), strict=True))
        found.append(tuple(added[name] for name in features))
    return found


def _values(spec: ModelSpec, answers: Sequence[list[float] | None]) -> list[float] | None:
    """Return the explained number of each answer of a row: of classes the log-odds of the one that the row got."""
    numbers = [answer for answer in answers if answer is not None]
    if len(numbers) < len(answers) or len({len(answer) for answer in numbers}) > 1:
        return None
    place, last = 0, numbers[-1]
    if spec.label.kind == "multiclass":
        place = max(range(len(last)), key=last.__getitem__)
    elif spec.label.kind == "regression" and len(last) == len(spec.label.quantiles):
        place = spec.label.quantiles.index(MEDIAN) if last else 0
    values = [answer[place] for answer in numbers]
    if not all(map(math.isfinite, values)):
        return None
    return values if spec.label.kind == "regression" else [_log_odds(value) for value in values]


def _log_odds(probability: float) -> float:
    within = min(max(probability, ROUNDED_ODDS), 1 - ROUNDED_ODDS)
    return math.log(within / (1 - within))


def shares_of(rows: Sequence[Attribution]) -> tuple[float, ...]:
    """Return each feature's part of the mean sizes of the attributions; all 0 where no feature adds anything."""
    return _parts([math.fsum(abs(value) for value in column) for column in zip(*rows, strict=True)])


def _parts(sums: Sequence[float]) -> tuple[float, ...]:
    total = math.fsum(sums)
    return tuple(each / total if total else 0.0 for each in sums)


def total_variation(some: Sequence[float], others: Sequence[float]) -> float:
    """Return half of what two sets of shares differ by, in [0, 1]; 1 where features matter on one side alone."""
    if any(some) != any(others):
        return 1.0
    return min(1.0, math.fsum(abs(one - other) for one, other in zip(some, others, strict=True)) / 2)


def distances_by_chance(some: Sequence[Attribution], others: Sequence[Attribution], seed: str) -> list[float]:
    """Return how far the rows of both sides are from each other when they are shuffled, `SHUFFLES` times.

    Where both are of one kind, their own distance is beyond all of these once in `SHUFFLES` + 1 times, whatever the
    rows are like (a permutation test: Fisher 1935, "The design of experiments").
    """
    sizes = [[abs(value) for value in row] for row in (*some, *others)]
    totals = [math.fsum(column) for column in zip(*sizes, strict=True)]
    found = []
    for number in range(SHUFFLES):
        order = _shuffled(len(sizes), f"{seed}|shuffle|{number}")
        sums = list(map(sum, zip(*(sizes[place] for place in order[: len(some)]), strict=True)))
        rest = [max(0.0, total - part) for total, part in zip(totals, sums, strict=True)]
        found.append(total_variation(_parts(sums), _parts(rest)))
    return found


def judge_attributions(spec: ModelSpec, found: RequestAttributions, baseline: AttributionBaseline | None) -> Signal:
    """Return the signal of how far the features' shares are from those of the test days.

    It is exceeded where the distance is beyond all that chance made of these rows, and what is left of it without what
    chance makes on average is over the limit.

    Args:
        spec: The model.
        found: Of the requests.
        baseline: Of the same version; None: there is none.
    """
    section = spec.monitoring.attributions or AttributionDrift()
    limit, rows = section.max_shift, len(found.rows)
    if found.reason is not None and found.message is not None:
        return not_judged(KIND, MEASURE, found.reason, found.message, threshold=limit)
    if baseline is None or baseline.features != found.features:
        gone = "There are no attributions of the test days to hold those of the requests against."
        return not_judged(KIND, MEASURE, "no_reference", gone, threshold=limit)
    then, now = shares_of(baseline.rows), shares_of(found.rows)
    distance = total_variation(then, now)
    chance = distances_by_chance(found.rows, baseline.rows, f"{found.run_key}|{format_time(found.as_of)}")
    usual, farthest = math.fsum(chance) / len(chance), max(chance)
    shift, low = max(0.0, distance - usual), max(0.0, distance - farthest)
    exceeded = shift > limit and low > 0
    if min(rows, len(baseline.rows)) < MIN_ROWS or (not exceeded and farthest - usual > limit):
        few = (
            f"{rows} requests and {len(baseline.rows)} test examples are too few to tell what each feature adds: "
            f"chance alone moves up to {farthest:.1%} (limit {limit:.0%}). Raise monitoring.attributions.requests."
        )
        return not_judged(KIND, MEASURE, "too_few", few, threshold=limit, examples=rows)
    message = (
        f"{shift:.1%} of what features add to the answers moved to others since the test days, beyond what chance "
        f"makes of {rows} requests (limit {limit:.0%}; asked as of {format_time(found.as_of)})"
    )
    return Signal(
        kind=KIND,
        subject="",
        state="exceeded" if exceeded else "ok",
        reason=None,
        measure=MEASURE,
        value=shift,
        low=low,
        high=distance,
        threshold=limit,
        examples=rows,
        message=f"{message}: {'; '.join(_moved(found.features, then, now))}." if exceeded else f"{message}.",
    )


def _moved(features: Sequence[str], then: Sequence[float], now: Sequence[float]) -> list[str]:
    """Return the features whose shares moved most, in words."""
    moved = sorted(zip(features, then, now, strict=True), key=lambda one: (-abs(one[2] - one[1]), one[0]))
    return [f"{name} {before:.1%} then, {after:.1%} now" for name, before, after in moved[:_SHOWN]]
