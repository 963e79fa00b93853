"""Two versions' shares of bad answers in the same minutes: evidence that may be looked at as often as one likes.

In: counts of both versions, block by block (some minutes each), and a margin. Out: two e-values. One speaks against
"the new share is at most the old one plus the margin", the other against "it is at least that". An e-value of 1 / a
comes at most with probability a where the sentence is true, however often and whenever one looks (Ville 1939).

A block's e-value is that of Turner, Ly, Grünwald, "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping" (2024), with the linear bound of Turner, Grünwald, "Exact anytime-valid confidence intervals for
contingency tables and beyond" (2023): the likelihood of an alternative over that of the null's point that is nearest to
it by Kullback-Leibler divergence. The alternative is chosen before the block is seen, by the blocks before it, so both
shares may change from minute to minute: an outage that meets both versions alike is evidence of nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GAPS = (0.001, 0.004, 0.016, 0.064, 0.256)
"""How far beyond the margin a worse version may be: each is an alternative, and all count alike."""

BETTER = (0.98, 0.94, 0.85, 0.65, 0.35, 0.1)
"""How much of the old share and the margin a version that is as good may have; as above."""

KEPT = 0.1
"""Of its wealth a block cannot take more than the rest: the minute of an outage does not silence all that follow."""

REMEMBERED = 0.9
"""How much of a block's weight the old share's estimate keeps with each further block."""

PRIOR_HITS, PRIOR_ROWS = 0.5, 25.0
"""Before anything is seen: 2 %, as from so many requests."""

_SMALLEST = 1e-9
_STEPS, _EXACT = 60, 1e-12


@dataclass(frozen=True, kw_only=True)
class Block:
    """What both versions answered in the same minutes: answers, and bad ones among them (of the old also in parts)."""

    new: int
    new_bad: float
    old: int
    old_bad: float


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Natural logarithms of the e-values.

    `worse` speaks against a new share of at most the old one and the margin, `as_good` against one of at least that.
    """

    worse: float = 0.0
    as_good: float = 0.0


class Scales:
    """The evidence of a ramp, block by block.

    A version may be as good under a small share, and break under a large one. So the evidence is the mean over tests
    that begin with each of the steps, those to come included, which stand at 1.

    Args:
        margin: Of the new share over the old one, 0 to 1.
        steps: Of the ramp in all.
        before: Answers of the old version before all blocks, and bad ones among them.
    """

    def __init__(self, margin: float, steps: int, before: tuple[float, float] = (0.0, 0.0)) -> None:
        self._margin = margin
        self._rows, self._bad = before
        self._worse = [[0.0] * len(GAPS) for _ in range(steps)]
        self._as_good = [[0.0] * len(BETTER) for _ in range(steps)]

    def add(self, step: int, block: Block) -> None:
        """Put a block of a step, from 0 on, into the balance: every test that has begun bets on it."""
        if block.new and block.old:
            share = (self._bad + PRIOR_HITS) / (self._rows + PRIOR_ROWS)
            both = (self._worse, self._as_good)
            for sums, chosen in zip(both, _alternatives(share, self._margin), strict=True):
                for index, new_share in enumerate(chosen):
                    gain = _floored(_log_e_value(block, share, new_share, self._margin))
                    for start in range(step + 1):
                        sums[start][index] += gain
        self._rows = REMEMBERED * self._rows + block.old
        self._bad = REMEMBERED * self._bad + block.old_bad

    @property
    def evidence(self) -> Evidence:
        """What all blocks so far come to."""
        worse, as_good = (_log_mean([_log_mean(logs) for logs in sums]) for sums in (self._worse, self._as_good))
        return Evidence(worse=worse, as_good=as_good)


def weigh(
    steps: Sequence[Sequence[Block]], margin: float, starts: int, before: tuple[float, float] = (0.0, 0.0)
) -> Evidence:
    """Return what the blocks of all steps so far come to.

    Args:
        steps: Blocks by step, oldest first.
        margin: As of `Scales`.
        starts: Steps of the ramp in all, at least as many as there are.
        before: As of `Scales`.
    """
    scales = Scales(margin, starts, before)
    for step, blocks in enumerate(steps):
        for block in blocks:
            scales.add(step, block)
    return scales.evidence


def answers_needed(old_share: float, new_share: float, margin: float, old_per_new: float, enough: float) -> float:
    """Return about how many answers of the new version it takes until both shares are told apart from the margin.

    By the growth of the evidence per answer, if the alternative is known; what its choice costs is added.

    Args:
        old_share: Of bad answers.
        new_share: Below it and the margin for a version that is as good, above for one that is worse.
        margin: As of `weigh`.
        old_per_new: Answers of the old version to each of the new one.
        enough: Logarithm of the e-value that is wanted.

    Returns:
        `inf` where no number is enough.
    """
    old_share, new_share = (min(1 - _SMALLEST, max(_SMALLEST, share)) for share in (old_share, new_share))
    nearest = _nearest(old_share, new_share, margin, old_per_new, 1.0)
    growth = old_per_new * _divergence(old_share, nearest) + _divergence(new_share, nearest + margin)
    return (enough + math.log(len(BETTER))) / ((1 - KEPT) * growth) if growth > _SMALLEST else math.inf


def _alternatives(share: float, margin: float) -> tuple[list[float], list[float]]:
    most = 1 - _SMALLEST
    bound = min(most, share + margin)
    return [min((bound + most) / 2, bound + gap) for gap in GAPS], [bound * part for part in BETTER]


def _log_e_value(block: Block, old_share: float, new_share: float, margin: float) -> float:
    nearest = _nearest(old_share, new_share, margin, block.old, block.new)
    return _log_ratio(block.old, block.old_bad, old_share, nearest) + _log_ratio(
        block.new, block.new_bad, new_share, nearest + margin
    )


def _nearest(old_share: float, new_share: float, margin: float, old: float, new: float) -> float:
    """Return the old share of the point `new = old + margin` that is nearest to two shares, by their answers."""
    if margin <= 0.0:
        return (old * old_share + new * new_share) / (old + new)
    low, high = sorted((old_share, new_share - margin))
    low, high = max(_SMALLEST, low), min(1 - margin - _SMALLEST, high)
    place = min(high, max(low, old_share))
    for _ in range(_STEPS):  # Newton's, kept between two bounds of the root: the slope rises
        shifted, rest = place + margin, 1 - place - margin
        slope = old * (place - old_share) / (place * (1 - place)) + new * (shifted - new_share) / (shifted * rest)
        low, high = (place, high) if slope < 0 else (low, place)
        bend = old * (old_share / place**2 + (1 - old_share) / (1 - place) ** 2)
        bend += new * (new_share / shifted**2 + (1 - new_share) / rest**2)
        following = place - slope / bend
        following = following if low < following < high else (low + high) / 2
        if abs(following - place) <= _EXACT * place:
            return following
        place = following
    return place


def _log_ratio(rows: float, bad: float, share: float, null: float) -> float:
    return bad * math.log(share / null) + (rows - bad) * math.log((1 - share) / (1 - null))


def _divergence(share: float, null: float) -> float:
    return share * math.log(share / null) + (1 - share) * math.log((1 - share) / (1 - null))


def _floored(log_value: float) -> float:
    if log_value > 0:
        return log_value + math.log(1 - KEPT + KEPT * math.exp(-log_value))
    return math.log(KEPT + (1 - KEPT) * math.exp(log_value))


def _log_mean(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(sum(math.exp(value - most) for value in logs) / len(logs))
