"""How traffic goes over to a new version."""

from __future__ import annotations

import pytest

from retraining.core.promotion import ramp


@pytest.mark.parametrize(
    ("before", "percent", "expected"),
    [
        ({}, 1, {"new": 100}),
        ({"old": 100}, 1, {"new": 1, "old": 99}),
        ({"old": 100}, 100, {"new": 100}),
        ({"a": 90, "b": 10}, 10, {"new": 10, "a": 81, "b": 9}),
        ({"a": 50, "b": 50}, 1, {"new": 1, "a": 50, "b": 49}),
        ({"a": 99, "b": 1}, 50, {"new": 50, "a": 50}),
    ],
)
def test_the_others_keep_their_shares_in_proportion(before, percent: int, expected) -> None:
    """And all add up to 100."""
    found = ramp.split(before, "new", percent)
    assert found == expected
    assert sum(found.values()) == 100


def test_only_where_nobody_serves_is_a_version_tried_with_all_traffic() -> None:
    """A request of a customer may meet a broken version once in a hundred."""
    assert ramp.first_percent({"old": 100}) == 1
    assert ramp.first_percent({}) == 100
