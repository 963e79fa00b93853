"""What `make bench-ramp` promises: small cells of it, and the page's table of all."""

from __future__ import annotations

import json

import numpy as np

from bench.ramp import CANARY, CASES, RESULT_PATH, Times, earlier_rule, measure, play, table_rows
from tests.support.product import REPOSITORY


def test_equal_ramps_go_back_seldom_where_the_release_before_rolled_most_of_them_back() -> None:
    """At 2 % errors on both sides; what is judged is judged as good."""
    assert earlier_rule(0.02, 100, 300) > 0.8
    assert measure(CASES["equal, 2 % errors"], 100, 12)["back"] <= 1 / 12


def test_a_version_that_is_worse_goes_back_within_minutes() -> None:
    """At 100 requests a second: ten times the errors below the limit of before, and answers half as long again."""
    draw = np.random.default_rng(1)
    for name in ("0.09 % → 0.9 %", "1.5 times as slow", "2 % → 3 %"):
        ended = [play(CASES[name], 6000, draw) for _ in range(5)]
        assert [each.how for each in ended] == ["back"] * 5, name


def test_slow_answers_are_drawn_as_the_product_counts_them() -> None:
    """Of the version before as many as of the new one, if its answers were longer by the margin."""
    times = Times(CANARY)
    counted = times.over + times.part * times.within
    assert abs(counted - times.new(CANARY.max_latency_ratio)) < 0.02
    assert times.new(1.0) < counted < times.new(1.5)


def test_the_page_shows_what_was_measured() -> None:
    """Each row of the table; and every equal ramp's promise held."""
    known = json.loads(RESULT_PATH.read_text())
    page = (REPOSITORY / "docs" / "deployment.md").read_text()
    for row in table_rows(known):
        assert row in page, row
    for name, by_traffic in known["cases"].items():
        if name.startswith("equal"):
            assert all(found["back"] <= 0.05 for found in by_traffic.values()), name
