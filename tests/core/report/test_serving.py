"""What the evaluation job found of the challenger as serving loads it, on the run's page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.report.page import render
from tests.support.contracts import EXAMPLES


@pytest.fixture
def documents() -> dict[str, dict[str, Any]]:
    """A plan and a judged run."""
    names = (("plan", "scheduled"), ("evaluation", "duel"))
    return {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in names}


def test_the_page_has_the_distances_and_the_latency_beside_the_champions(documents) -> None:
    page = render(documents)
    assert "200 test rows alone (largest distance from their scores 1.2e-07), for 1000 at once (6e-08)" in page
    assert "13 times with missing or unknown values (0 without a finite answer)" in page
    assert "0.42 ms, 0.9 ms at the 99th percentile; the champion 0.4 and 0.8 ms, so 1.05 times as long" in page


def test_without_a_champion_there_is_no_ratio(documents) -> None:
    documents["evaluation"]["serving"]["champion_latency"] = None
    assert "inside the evaluation job" in render(documents)


def test_what_was_not_looked_at_says_why(documents) -> None:
    documents["evaluation"]["serving"] = {"skipped": "its trainer asks it itself"}
    assert "trainer asks it itself" in render(documents)


@pytest.mark.parametrize("serving", [None, {"signature": ["no output 'score'"]}])
def test_without_answers_nothing_is_said(documents, serving) -> None:
    """The table of gates names what is wrong."""
    documents["evaluation"]["serving"] = serving
    assert "s serving loads it" not in render(documents)
