"""The page's section on the search for hyperparameters."""

from __future__ import annotations

import json

import pytest

from retraining.core.documents import Tuning
from retraining.core.report.study import importances, study_chart
from tests.support.contracts import EXAMPLES

EXAMPLE = EXAMPLES / "tuning__study.json"


@pytest.fixture
def tuning() -> Tuning:
    """The example with twelve trials: the score follows the rate, and the number of layers does nothing."""
    values = json.loads(EXAMPLE.read_text())
    trial = values["trials"][0]
    values["space"].append({"name": "layers", "kind": "discrete", "values": [1, 2], "scale": "linear"})
    values["trials"] = [
        {
            **trial,
            "trial_id": f"search-{number}",
            "hyperparameters": {"learning_rate": 0.001 * number, "layers": 1 + number % 2},
            "value": 0.6 + 0.01 * number,
        }
        for number in range(1, 13)
    ]
    values["trials"].append({**trial, "trial_id": "search-13", "state": "INFEASIBLE", "value": None})
    return Tuning.parse(json.dumps(values))


def test_best_so_far_never_falls(tuning: Tuning) -> None:
    """And every trial with a score has its dot; one without has none."""
    chart = study_chart(tuning)
    assert chart is not None
    assert len(chart.dots) == 12
    heights = [float(point.split(",")[1]) for point in chart.best.split()]
    assert heights == sorted(heights, reverse=True)  # y grows downwards
    assert chart.best.split()[-1].split(",")[0] == f"{max(tick.at for tick in chart.x_ticks):g}"


def test_the_parameter_that_decides_is_the_important_one(tuning: Tuning) -> None:
    """A share near one for it, near nothing for the other."""
    first, second = importances(tuning)
    assert (first.name, second.name) == ("learning_rate", "layers")
    assert first.share is not None
    assert second.share is not None
    assert first.share > 0.8
    assert second.share < 0.1
    assert first.width > 5 * second.width
    assert first.y < second.y


def test_few_trials_say_nothing() -> None:
    """Three trials are no evidence."""
    assert [item.share for item in importances(Tuning.parse(EXAMPLE.read_bytes()))] == [None]


def test_without_scores_there_is_no_chart(tuning: Tuning) -> None:
    """Only infeasible trials leave nothing to draw."""
    nothing = tuning.model_copy(update={"trials": tuning.trials[-1:]})
    assert study_chart(nothing) is None
