"""Distributions: what is expected, what came, and how far two are apart, with how much sampling moves that.

In: documents of the champion's run, counts of requests and answers. Out: edges of bins, shares, distances.

Categories: L-infinity, the largest change of any value's share, missing values included. Values beyond the first 1000
count by the hash of each, together, and apart those that are new: a new one falls where no hash of training lies as
often as there is room, so `new = share there / room` (as in Whang, Vander-Zanden and Taylor 1990, "A linear-time
probabilistic counting algorithm"). Numbers: Jensen-Shannon divergence in base 2 over bins, with one for missing values:
`JSD(P, Q) = (KL(P || M) + KL(Q || M)) / 2`, `M = (P + Q) / 2` (Lin 1991, "Divergence measures based on the Shannon
entropy"). Both lie in [0, 1]; they are the distances of Vertex AI Model Monitoring and TensorFlow Data Validation. Both
are effect sizes. What few examples make of a distance is said by its interval (the delta method, 95 %), and what they
make of no distance by `chance`.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from retraining.core.documents.answers import AnswerCounts
from retraining.core.documents.checks import CategoricalStatistics, NumericStatistics, SplitStatistics
from retraining.core.documents.evaluation import Evaluation, Scores
from retraining.core.monitoring.chance import chance_of_bins, chance_of_shares
from retraining.core.spec.features import MEDIAN, AuxiliaryLabel, Label
from retraining.core.spec.model import ModelSpec

Z95 = 1.959964
"""Of the normal distribution: 95 % lie within so many deviations."""


class Unseen(Enum):
    """The bucket of all values that the baseline does not have: no value is equal to it."""

    UNSEEN = "unseen"


UNSEEN = Unseen.UNSEEN
BEYOND = -1
"""All values beyond the baseline's first ones: the hash of none."""
Bucket = str | int | Unseen | None
"""A value, values beyond the baseline's first by their hash, all unseen ones, or (None) the missing ones."""
_LEAST_ROOM = 0.05
"""Of the counts by hash that are empty: with less, new values cannot be told from known ones."""
_MASS_POINT = 2.0**-22
"""Of a number: what float32 may make of it is as near, so that a constant that a client rounds stays in its bin."""


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far two distributions are from each other, and the interval of that."""

    measure: str
    value: float
    low: float
    high: float
    most: Bucket = ""
    """What changed most: missing (None) or unseen values; else it is not named."""
    chance: float = 0.0
    """What sampling alone makes of no distance, in 999 of 1000 pairs of samples of these sizes."""


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


def between_values(
    p: Mapping[Bucket, float], q: Mapping[Bucket, float], rows: tuple[int, int], room: float = 1.0
) -> Distance:
    """Return the L-infinity distance of two distributions of values.

    Args:
        p: Shares before.
        q: Shares now.
        rows: How many examples `p` and `q` rest on.
        room: Share of the places where a new value shows as one, in (0, 1].
    """
    changes = {value: abs(p.get(value, 0.0) - q.get(value, 0.0)) for value in {*p, *q}}
    # Of several equal ones always the same: the order of a set is not.
    most = max(changes, key=lambda value: (changes[value], str(value)), default="")
    shares = (p.get(most, 0.0), q.get(most, 0.0))
    seen = room if most is UNSEEN else 1.0
    counted = [(min(1.0, share * seen), count) for share, count in zip(shares, rows, strict=True) if count]
    deviation = math.sqrt(sum(share * (1 - share) / count for share, count in counted)) / seen
    found = _distance_within("l_infinity", changes.get(most, 0.0), deviation, most)
    per_row = sum(1 / count for count in rows if count) / room
    return replace(found, chance=chance_of_shares(_deviations(p, q, rows, room), per_row))


def _deviations(
    p: Mapping[Bucket, float], q: Mapping[Bucket, float], rows: tuple[int, int], room: float
) -> list[float]:
    """Return by how much each value's share differs in two samples of what both are together."""
    per_row, total = sum(1 / count for count in rows if count), sum(rows) or 1
    found = []
    for value in {*p, *q}:
        seen = room if value is UNSEEN else 1.0
        share = min(1.0, seen * (p.get(value, 0.0) * rows[0] + q.get(value, 0.0) * rows[1]) / total)
        found.append(math.sqrt(share * (1 - share) * per_row) / seen)
    return found


def between_bins(p: Sequence[float], q: Sequence[float], rows: tuple[int, int]) -> Distance:
    """Return the Jensen-Shannon distance of two distributions over bins, the last of which has the missing values.

    Args:
        p: Shares before.
        q: Shares now.
        rows: How many examples `p` and `q` rest on.
    """
    variance = 0.0
    for shares, others, count in ((p, q, rows[0]), (q, p, rows[1])):
        slopes = [math.log2(2 * a / (a + b)) / 2 if a > 0 else 0.0 for a, b in zip(shares, others, strict=True)]
        mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
        if count:
            squares = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
            variance += max(0.0, squares - mean**2) / count
    missing = bool(p) and abs(p[-1] - q[-1]) >= max(abs(a - b) for a, b in zip(p, q, strict=True)) > 0
    found = _distance_within("jensen_shannon", jensen_shannon(p, q), math.sqrt(variance), None if missing else "")
    return replace(found, chance=chance_of_bins(sum(a + b > 0 for a, b in zip(p, q, strict=True)), rows))


def _distance_within(measure: str, value: float, deviation: float, most: Bucket) -> Distance:
    low, high = max(0.0, value - Z95 * deviation), min(1.0, value + Z95 * deviation)
    return Distance(measure=measure, value=value, low=low, high=high, most=most if most in (None, UNSEEN) else "")


EQUAL_BINS = 15
"""Of a binary label's scores, where the evaluation did not count them: those of the calibration curve."""


@dataclass(frozen=True, kw_only=True)
class AnswerBaseline:
    """How the answers to a label are counted, and their shares on the champion's test days (none: not known).

    Numbers are counted between `edges`, classes by their number; `place` is where a list has the number that counts.
    `shares` are those of the bins from below the first edge on, or of the classes; `counted` is what they come from,
    with the counts of each day (None: an evaluation of an earlier release).
    """

    name: str
    output: str
    is_main: bool = True
    classes: int = 0
    edges: tuple[float, ...] = ()
    place: int = 0
    shares: tuple[float, ...] = ()
    rows: int = 0
    counted: AnswerCounts | None = None

    @property
    def measure(self) -> str:
        """The distance that fits."""
        return "l_infinity" if self.classes else "jensen_shannon"


def answer_baselines(
    spec: ModelSpec, train: SplitStatistics, evaluation: Evaluation | None
) -> tuple[AnswerBaseline, ...]:
    """Return how the answers are counted; nothing of a regression whose evaluation is not there.

    Args:
        spec: The model.
        train: Statistics of what the champion was trained on.
        evaluation: Of the champion's run; None: there is none.
    """
    scores, rows = (evaluation.challenger, evaluation.rows) if evaluation else (None, 0)
    main = (
        _baseline_of_counts(spec.label, scores.counted)
        if scores and scores.counted
        else _baseline_of_earlier_release(spec, train, scores, rows)
    )
    counted = {name: of.counted for name, of in scores.auxiliary.items() if of.counted} if scores else {}
    others = [
        _baseline_of_counts(label, counted[label.name]) for label in spec.auxiliary_labels if label.name in counted
    ]
    return (*((main,) if main else ()), *(replace(other, output=other.name, is_main=False) for other in others))


def bin_edges(baseline: NumericStatistics) -> list[float]:
    """Return where bins begin, rising: bin i (from 1) is `[edge i, edge i+1)`, the last one is open, bin 0 lies below.

    Of statistics of an earlier release, which have no histogram, they come of the quantiles.
    """
    return list(baseline.histogram.edges) if baseline.histogram else quantile_bins(baseline.quantiles)[0]


def bin_shares(baseline: NumericStatistics, rows: int, edges: Sequence[float]) -> list[float]:
    """Return the baseline's share per bin: below, between the edges, above; last the missing values."""
    missing = baseline.nulls / rows
    if baseline.histogram:
        return [*(count / rows for count in baseline.histogram.counts), missing]
    found = quantile_bins(baseline.quantiles)[1] if edges else [1.0]
    return [*(share * (1 - missing) for share in found), missing]


def quantile_bins(quantiles: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return edges and shares (below, between, above) by quantiles in equal steps alone.

    A value of several quantiles is a bin of its own, and so is all beyond the greatest. The steps on either side of
    such a value fall to it by half: the error of a share is at most one step (5 %).
    """
    ordered = sorted(quantiles)
    if not ordered:
        return [], [1.0]
    last, below = len(ordered) - 1, {}
    for value, number in Counter(ordered).items():
        first, width = ordered.index(value), abs(value) * _MASS_POINT + 1e-38
        is_mode, is_least, is_greatest = number > 1, value == ordered[0], value == ordered[-1]
        half = 0.5 if is_mode else 0.0
        if is_mode or not is_greatest:
            low = value - width if is_mode or is_least else value
            below[low] = 0.0 if is_least else (first - half) / last
        if is_mode or is_greatest:
            below[value + width] = 1.0 if is_greatest else (first + number - 1 + half) / last
    edges = sorted(below)
    # Neighbours that are nearer than float32 tells apart may cross; what lies below never falls.
    ends = itertools.accumulate([0.0, *(below[edge] for edge in edges), 1.0], max)
    return edges, [high - low for low, high in itertools.pairwise(ends)]


def quantile_shares(quantiles: Sequence[float], edges: Sequence[float]) -> list[float]:
    """Return the share of numbers per bin, below the first edge at first, by quantiles in equal steps.

    Where several quantiles are equal their steps fall to the bin that begins there; the error of a share is at most
    one step (5 %).
    """
    ordered = sorted(quantiles)
    steps = len(ordered) - 1
    below = [ordered.index(edge) / steps if steps else 0.0 for edge in edges] + [1.0]
    return [0.0, *(high - low for low, high in itertools.pairwise(below))]


def category_shares(baseline: CategoricalStatistics, rows: int) -> dict[Bucket, float]:
    """Return the baseline's share per value; None is the missing ones.

    Values beyond the first 1000 are there by hash, and together as what no new value is. As many rows are expected to
    have a new value as have one that no other row has (Good 1953, "The population frequencies of species"). In
    statistics of an earlier release all values beyond the first 1000 count as unseen.
    """
    counts: dict[Bucket, int] = {item.value: item.count for item in baseline.top}
    counts[None] = baseline.nulls
    if baseline.tail:
        counts |= {place: count for place, count in enumerate(baseline.tail) if count}
        return value_shares(counts, baseline.tail, rows) | _expected_new(baseline, rows)
    shares = {value: count / rows for value, count in counts.items()}
    shares[UNSEEN] = max(0.0, 1.0 - sum(shares.values()))
    return shares


def value_shares(counts: Mapping[Bucket, int], tail: Sequence[int] = (), rows: int = 0) -> dict[Bucket, float]:
    """Return the share of each value, of those beyond the first ones by hash; and of new ones.

    Where these cannot be told, it has that of all beyond the first ones in their place.

    Args:
        counts: By value, hash, unseen and missing.
        tail: The baseline's counts by hash; empty: it has none.
        rows: Of which they are shares; 0: of all that are counted.
    """
    total = rows or sum(counts.values()) or 1
    shares = {value: count / total for value, count in counts.items()}
    if not tail:
        return shares
    beyond = {value: share for value, share in shares.items() if isinstance(value, int)}
    if (room := room_of(tail)) == 1:
        return shares | {BEYOND: sum(beyond.values())}
    free = sum(share for value, share in beyond.items() if not tail[value])
    return shares | {UNSEEN: min(sum(beyond.values()), free / room)}


def _expected_new(baseline: CategoricalStatistics, rows: int) -> dict[Bucket, float]:
    """Return which share of rows, were they drawn again, would have a new value; nothing where that cannot be told."""
    room = room_of(baseline.tail)
    # A single row's hash is its own as often as a hash is free.
    single = sum(item.count == 1 for item in baseline.top) + baseline.tail.count(1) / room
    return {UNSEEN: min(1.0, single / rows)} if room < 1 else {}


def room_of(tail: Sequence[int]) -> float:
    """Return the share of hashes that no value of the baseline has: 1, where that tells of no new value."""
    free = tail.count(0) / len(tail) if tail else 1.0
    return free if free >= _LEAST_ROOM else 1.0


def _baseline_of_counts(label: Label | AuxiliaryLabel, counted: AnswerCounts) -> AnswerBaseline:
    """Return the answers that the evaluation counted, of any kind of label."""
    total = sum(counted.counts)
    levels = label.quantiles if label.kind == "regression" else ()
    outputs = {"binary": "score", "multiclass": "scores", "regression": "quantiles" if levels else "prediction"}
    return AnswerBaseline(
        name=label.name,
        output=outputs[label.kind],
        classes=0 if counted.edges else len(counted.counts),
        edges=counted.edges,
        place=levels.index(MEDIAN) if levels else 0,
        shares=tuple(count / total for count in counted.counts) if total else (),
        rows=total,
        counted=counted,
    )


def _baseline_of_earlier_release(
    spec: ModelSpec, train: SplitStatistics, scores: Scores | None, rows: int
) -> AnswerBaseline | None:
    """Return what an evaluation of an earlier release tells, or none does."""
    if spec.label.kind == "multiclass":
        return _baseline_of_classes(spec, train, scores)
    return (
        _baseline_of_numbers(spec, scores, rows)
        if spec.label.kind == "regression"
        else _baseline_of_scores(spec, scores)
    )


def _baseline_of_classes(spec: ModelSpec, train: SplitStatistics, scores: Scores | None) -> AnswerBaseline:
    """Return the likeliest classes of the test days; of over 100 classes, which have no confusion, the labels'."""
    confusion = scores.confusion if scores else None
    counts = [sum(column) for column in zip(*confusion, strict=True)] if confusion else list(train.label.counts or ())
    total = sum(counts)
    return AnswerBaseline(
        name=spec.label.name,
        output="scores",
        classes=len(train.label.counts or ()) or len(counts),
        shares=tuple(count / total for count in counts) if total else (),
        rows=total,
    )


def _baseline_of_numbers(spec: ModelSpec, scores: Scores | None, rows: int) -> AnswerBaseline | None:
    if spec.label.kind != "regression" or scores is None or scores.answers is None:
        return None
    levels = spec.label.quantiles
    edges = sorted(set(scores.answers.quantiles))
    return AnswerBaseline(
        name=spec.label.name,
        output="quantiles" if levels else "prediction",
        edges=tuple(edges),
        place=levels.index(MEDIAN) if levels else 0,
        shares=tuple(quantile_shares(scores.answers.quantiles, edges)),
        rows=rows,
    )


def _baseline_of_scores(spec: ModelSpec, scores: Scores | None) -> AnswerBaseline:
    calibration = scores.curves.calibration if scores and scores.curves else ()
    edges = tuple(index / EQUAL_BINS for index in range(EQUAL_BINS))
    counts = [0] * (EQUAL_BINS + 1)
    for item in calibration:
        counts[min(int(item.score * EQUAL_BINS), EQUAL_BINS - 1) + 1] += item.rows
    total = sum(counts)
    return AnswerBaseline(
        name=spec.label.name,
        output="score",
        edges=edges,
        shares=tuple(count / total for count in counts) if total else (),
        rows=total,
    )


_DECILES = 10


def shift_of_answers(spec: ModelSpec, new: Sequence[float], old: Sequence[float]) -> Distance:
    """Return the divergence of two versions' answers; 0 where either has none."""
    if not new or not old:
        return Distance(measure="jensen_shannon", value=0.0, low=0.0, high=1.0)
    rows = len(old), len(new)
    if spec.label.kind == "multiclass":
        classes = sorted({*new, *old})
        return between_bins(_shares_of_answers(old, classes), _shares_of_answers(new, classes), rows)
    edges = _decile_edges([answer for answer in (*new, *old) if not math.isnan(answer)])
    bins = range(len(edges) + 2)  # the last one is of NaN, which no order has a place for
    old_bins, new_bins = (_bins_of_answers(edges, answers) for answers in (old, new))
    return between_bins(_shares_of_answers(old_bins, bins), _shares_of_answers(new_bins, bins), rows)


def shift_from_promise(spec: ModelSpec, counted: AnswerCounts, answers: Sequence[float]) -> Distance | None:
    """Return the divergence of a version's answers from those to its own test split; None: there are none to compare.

    Args:
        spec: The model.
        counted: What the evaluation counted of the version.
        answers: Numbers, or the likeliest classes.
    """
    baseline = _baseline_of_counts(spec.label, counted)
    if not baseline.shares or not answers:
        return None
    rows = baseline.rows, len(answers)
    if baseline.classes:
        found = _shares_of_answers(answers, [float(index) for index in range(baseline.classes)])
        return between_bins([*baseline.shares, 0.0], [*found, max(0.0, 1 - sum(found))], rows)
    bins = _bins_of_answers(baseline.edges, answers)
    return between_bins([*baseline.shares, 0.0], _shares_of_answers(bins, range(len(baseline.edges) + 2)), rows)


def _bins_of_answers(edges: Sequence[float], answers: Sequence[float]) -> list[int]:
    """Return each answer's bin: 0 lies below all edges, the one behind the last is of NaN."""
    return [len(edges) + 1 if math.isnan(answer) else bisect.bisect_right(edges, answer) for answer in answers]


def _decile_edges(answers: Sequence[float]) -> list[float]:
    """Return where bins begin: at the deciles, and behind each answer that is more than one of them.

    Were it not for those, a champion that says one thing would share its bin with whatever a small share says above it.
    """
    if not answers:
        return []
    ordered = sorted(answers)
    deciles = Counter(ordered[len(ordered) * part // _DECILES] for part in range(1, _DECILES))
    behind = {math.nextafter(decile, math.inf) for decile, number in deciles.items() if number > 1}
    return sorted(behind.union(deciles))


def _shares_of_answers(answers: Sequence[float], values: Iterable[float]) -> list[float]:
    counts = Counter(answers)
    return [counts[value] / len(answers) for value in values]
