"""What `make bench-estimate` counts, of answers that are as right as they say, and the page's table of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench.estimate_coverage import RESULT_PATH as COVERAGE_PATH
from bench.estimate_coverage import coverage_rows, covered, populations
from bench.monitor_estimate import (
    METRICS,
    MONTHS,
    RESULT_PATH,
    compare,
    count,
    count_numbers,
    evaluate,
    evaluate_numbers,
    make_plan,
    table_rows,
)
from retraining.core.spec.files import load_spec
from tests.support.product import REPOSITORY

SPEC = load_spec(REPOSITORY / "include" / "models" / "flight_delays.yaml")


@pytest.mark.parametrize("metric", [name for name in METRICS if name != "mae"])
@pytest.mark.parametrize("moved", [0.0, 0.2])
def test_answers_that_are_as_right_as_before_are_estimated_and_others_are_not(metric: str, moved: float) -> None:
    """The truth follows the labels; the estimate cannot."""
    random = np.random.default_rng(3)
    scores = random.random(20_000)
    labels = (random.random(20_000) < scores).astype(float)
    flipped = np.where(random.random(20_000) < moved, 1 - labels, labels)
    found = compare(SPEC, metric, evaluate(labels, scores), count(flipped, scores))
    off = abs(found["estimate"][0] - found["truth"][0])
    assert off < 0.01 if not moved else off > 0.09
    assert found["estimate"][0] == pytest.approx(found["evaluated"], abs=0.01)


def test_errors_of_numbers_are_estimated_by_the_size_of_the_answer() -> None:
    """Where large answers err more, more of them mean a larger error."""
    random = np.random.default_rng(4)
    answers = random.uniform(0, 100, 20_000)
    labels = answers + random.normal(0, 0.2 * answers + 1)
    evaluation, large = evaluate_numbers(labels, answers), answers > 50
    number = SPEC.model_copy(update={"label": SPEC.label.model_copy(update={"kind": "regression"})})
    found = compare(number, "mae", evaluation, count_numbers(labels[large], answers[large], evaluation))
    assert found["estimate"][0] == pytest.approx(found["truth"][0], rel=0.05)
    assert found["estimate"][0] > 1.3 * found["evaluated"]


def test_nobody_is_trained_on_what_it_is_asked() -> None:
    for each in make_plan():
        assert each["train"][0] < each["train"][1] == each["score"][0] < each["score"][1]
    assert len(make_plan()) == len(MONTHS)


def test_the_page_has_what_was_measured() -> None:
    page = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert [row for row in table_rows(json.loads(RESULT_PATH.read_text(encoding="utf-8"))) if row not in page] == []


def test_the_interval_has_the_truth_where_nothing_changed() -> None:
    """A small cell, in which the answers' own chance is a fraction of the evaluation's."""
    found = covered(SPEC, 500, 5000, populations()["sharp"])
    for metric in ("auc", "log_loss", "accuracy"):
        before, now = found[metric]
        assert before < 0.7
        assert now >= 0.88
    assert found["shifts"] <= 0.05


def test_the_page_has_how_often_it_had_the_truth() -> None:
    """In no cell much less often than it says."""
    page = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
    cells = json.loads(COVERAGE_PATH.read_text(encoding="utf-8"))
    assert [row for row in coverage_rows(cells) if row not in page] == []
    assert min(cell[metric][1] for cell in cells for metric in ("auc", "log_loss", "accuracy")) >= 0.8
