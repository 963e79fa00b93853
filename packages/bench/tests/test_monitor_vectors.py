"""The monitor's verdicts beside those of TensorFlow Data Validation on 180 random columns (`make monitor-vectors`)."""

from __future__ import annotations

import json

import pytest

from bench import monitor_vectors
from bench.checkout import REPOSITORY_PATH
from bench.monitor_vectors import Vector, distance_of

KNOWN = json.loads(monitor_vectors.RESULT_PATH.read_text(encoding="utf-8"))
VECTORS = {vector.name: vector for vector in monitor_vectors.draw_vectors()}
NEAR = 0.07
"""Two ways to make bins of one sample differ by so much, and say different things of what is so near a limit."""


def test_there_are_as_many_as_promised() -> None:
    assert len(VECTORS) >= 120
    assert set(KNOWN["values"]) == set(VECTORS)
    assert set(KNOWN["pbtxt"]) == {name for name, vector in VECTORS.items() if vector.is_number}


def agrees(vector: Vector, theirs: float) -> bool:
    """Whether both say the same at each limit, of the values that are there."""
    ours = distance_of(vector, without_missing=True).value
    return all((ours > limit) == (theirs > limit) or abs(ours - limit) <= NEAR for limit in monitor_vectors.LIMITS)


@pytest.mark.parametrize("name", KNOWN["pbtxt"])
def test_comparators_say_of_a_runs_statistics_what_the_monitor_says(name: str) -> None:
    """Of every kind of number: `statistics.pbtxt` has histograms that they can read."""
    assert agrees(VECTORS[name], KNOWN["pbtxt"][name])


@pytest.mark.parametrize("name", [name for name in VECTORS if VECTORS[name].kind not in monitor_vectors.DIFFERING])
def test_of_values_both_say_the_same_but_for_what_the_page_names(name: str) -> None:
    assert agrees(VECTORS[name], KNOWN["values"][name])


@pytest.mark.parametrize("kind", ["zero_inflated", "constant", "heavy_tailed"])
def test_where_they_differ_it_is_by_its_bins_and_not_by_a_shift(kind: str) -> None:
    """Unchanged columns: its ten bins of equal width differ from sample to sample, the monitor's do not."""
    unchanged = [name for name in VECTORS if VECTORS[name].kind == kind and int(name.split()[-1]) % 4 == 0]
    assert max(distance_of(VECTORS[name]).value for name in unchanged) < 0.02
    if kind != "constant":
        assert max(KNOWN["values"][name] for name in unchanged) > 0.15


def test_the_page_has_how_often_they_agree() -> None:
    page = (REPOSITORY_PATH / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for row in monitor_vectors.table_rows(KNOWN, list(VECTORS.values())):
        assert row in page
