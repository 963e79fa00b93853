"""Findings on features that are too good to be true."""

from __future__ import annotations

import numpy as np
import pytest

from retraining.core.checks import leaks


@pytest.mark.parametrize(
    ("shares", "days"),
    [
        ([0.1, 0.3, 0.6, *[0.95] * 20], 3),
        ([0.0, *[0.95] * 20], 1),
        ([0.6, *[0.95] * 20], 0),
        ([0.8, 0.8, *[0.95] * 20], 2),
        ([0.9, 0.9, *[0.95] * 20], 0),
        ([0.0] * 20, 0),
        ([*[0.0] * 12, *[0.9] * 12], 12),
        ([*[0.9] * 12, *[0.0] * 12], 0),
        ([0.2, 0.2, *([0.9] * 5 + [0.2] * 2) * 4], 0),
        ([0.0, 0.0, *[0.95] * 11], 0),
        ([], 0),
    ],
    ids=[
        "comes within three days",
        "the newest day has none",
        "the newest day alone has fewer",
        "two days have fewer",
        "hardly fewer",
        "never there",
        "ended half-way",
        "began half-way",
        "weekends have fewer",
        "too few days",
        "always there",
    ],
)
def test_days_whose_values_may_come_later(shares, days):
    assert leaks.days_without(shares) == days


def test_a_share_that_only_varies_is_hardly_ever_found():
    """Of 2,000 features whose days have 20 rows each, every one with its own chance to be filled."""
    random = np.random.default_rng(20131120)
    shares = random.beta(2, 2, 2000)
    found = [leaks.days_without((random.binomial(20, share, 60) / 20).tolist()) for share in shares]
    assert sum(map(bool, found)) / len(found) < 0.005
