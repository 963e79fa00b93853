"""Evidence of two shares in the same minutes, which may be looked at every minute."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from retraining.core.promotion import two_samples
from retraining.core.promotion.two_samples import Block, Scales, answers_needed, weigh

MARGIN = 0.002


def hits(draw: random.Random, rows: int, share: float) -> int:
    """A binomial number, by the gaps between hits."""
    found, place = 0, 0
    while share > 0 and (place := place + int(math.log(draw.random()) / math.log(1 - share)) + 1) <= rows:
        found += 1
    return found


def blocks(draw: random.Random, number: int, new: tuple[int, float], old: tuple[int, float]) -> list[Block]:
    """Minutes with as many answers of both, and bad ones with a probability."""
    (new_rows, new_share), (old_rows, old_share) = new, old
    return [
        Block(
            new=new_rows,
            new_bad=hits(draw, new_rows, new_share),
            old=old_rows,
            old_bad=hits(draw, old_rows, old_share),
        )
        for _ in range(number)
    ]


@pytest.mark.parametrize(
    ("old_share", "before", "margin"),
    [(0.002, 0.002, MARGIN), (0.02, 0.001, MARGIN), (0.3, 0.3, 0.05), (0.05, 0.05, 0.0), (0.5, 0.01, 0.0)],
)
@pytest.mark.parametrize(("new", "old"), [(3, 297), (20, 20), (1, 1)])
def test_the_expectation_of_a_block_is_one_at_most(old_share, before, margin, new, old) -> None:
    """Exactly, over all counts, at the bound that the sentence allows: also where the estimate is far off."""
    bound = old_share + margin
    moments = [0.0, 0.0]
    for new_bad, old_bad in itertools.product(range(new + 1), range(old + 1)):
        chance = math.comb(new, new_bad) * bound**new_bad * (1 - bound) ** (new - new_bad)
        chance *= math.comb(old, old_bad) * old_share**old_bad * (1 - old_share) ** (old - old_bad)
        if chance < 1e-15:
            continue
        found = weigh([[Block(new=new, new_bad=new_bad, old=old, old_bad=old_bad)]], margin, 1, (1000, 1000 * before))
        moments[0] += chance * math.exp(found.worse)
        moments[1] += chance * math.exp(found.as_good)
    assert all(moment <= 1 + 1e-6 for moment in moments), moments


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.2])
def test_shares_that_change_together_are_no_evidence(share: float) -> None:
    """An outage that meets both versions alike, and a rate that rises through the hour: of 200 ramps 5 % at most."""
    draw, wrong = random.Random(20261126), 0
    for _ in range(200):
        scales = Scales(MARGIN, 1)
        worst = 0.0
        for minute in range(30):
            now = 0.5 if minute == 20 else share * (1 + minute / 30)
            scales.add(0, blocks(draw, 1, (30, now), (270, now))[0])
            worst = max(worst, scales.evidence.worse)
        wrong += worst >= math.log(20)
    assert wrong <= 10


def test_a_version_that_breaks_under_load_is_found_after_long_good_steps() -> None:
    """What it earned at 1 and 10 % does not cover it at 50 %; the minute of an outage takes a tenth part at most."""
    draw = random.Random(1)
    good = [blocks(draw, 60, (60, 0.002), (540, 0.002)) for _ in range(2)]
    broken = blocks(draw, 15, (300, 0.05), (300, 0.002))
    assert weigh(good, MARGIN, 3).worse < 0
    assert weigh([*good, broken], MARGIN, 3).worse > math.log(40)
    outage = Block(new=300, new_bad=300, old=300, old_bad=300)
    assert weigh([*good, [outage, *broken]], MARGIN, 3).worse > math.log(40)


def test_minutes_without_one_of_both_are_no_evidence() -> None:
    """Nobody was there to be held against."""
    empty = [Block(new=0, new_bad=0, old=500, old_bad=5), Block(new=500, new_bad=500, old=0, old_bad=0)]
    assert weigh([empty], MARGIN, 1) == two_samples.Evidence()
    assert weigh([], MARGIN, 3) == two_samples.Evidence()


@pytest.mark.parametrize(("share", "margin"), [(0.0, MARGIN), (0.002, MARGIN), (0.02, 0.01)])
def test_the_number_of_answers_for_a_verdict_is_about_what_it_takes(share: float, margin: float) -> None:
    """Of 40 equal versions, asked as often as the ones before: most have their verdict by twice the number."""
    enough = math.log(20)
    needed = answers_needed(share, share, margin, 1.0, enough)
    draw, minute = random.Random(2), max(1, round(needed / 20))
    proven = 0
    for _ in range(40):
        scales, reached = Scales(margin, 1), False
        for block in blocks(draw, 40, (minute, share), (minute, share)):
            scales.add(0, block)
            reached = reached or scales.evidence.as_good >= enough
        proven += reached
    assert proven >= 32
    assert answers_needed(share, share + margin, margin, 1.0, enough) == math.inf
