"""The page of a walk-forward: what it answers, what is missing, and nothing of a model's texts as HTML."""

from __future__ import annotations

import json

import pytest

from retraining.core.documents import Plan, WalkForward, WalkForwardPlan
from retraining.core.report.walk_forward import matrix, render_walk_forward
from tests.support.contracts import EXAMPLES
from tests.support.scenes.deployment import example


def read(name: str) -> tuple[WalkForwardPlan, WalkForward]:
    """The two documents of an example."""
    values = [
        json.loads((EXAMPLES / f"{kind}__{name}.json").read_text()) for kind in ("walk_forward_plan", "walk_forward")
    ]
    return WalkForwardPlan.parse(json.dumps(values[0])), WalkForward.parse(json.dumps(values[1]))


@pytest.fixture
def plan() -> Plan:
    """Of the run that exported the days."""
    return Plan.parse(json.dumps(example("plan")))


def test_the_page_answers_and_says_how_it_happens_by_itself(plan) -> None:
    page = render_walk_forward(plan, *read("quarter"))
    assert "Retrain every 7 days" in page
    assert f"max_age_days: {7 + plan.spec.data.label_lag_days}" in page, "the age is that of its data"
    assert page.count("<td>28 days</td>") == 1
    assert page.count("not judged") == 0


def test_what_is_missing_or_not_judged_is_said(plan) -> None:
    """A version that failed has no row among the days, and a line of its own."""
    walked, found = read("not_judged")
    page = render_walk_forward(plan, walked, found)
    assert ">Not judged</h1>" in page
    assert "max_age_days" not in page
    assert "task train [1]: failed; its log says why" in page
    assert len(matrix(found)[1]) == len(found.versions) - 1


def test_what_a_task_left_is_text(plan) -> None:
    walked, found = read("not_judged")
    versions = [version.model_copy(update={"missing": "<script>x</script>"}) for version in found.versions[1:2]]
    page = render_walk_forward(plan, walked, found.model_copy(update={"versions": (*found.versions[:1], *versions)}))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_days_best_is_light_and_its_worst_dark() -> None:
    """By the metric's own direction; a day with one version has no shade."""
    found = read("quarter")[1]
    first = found.versions[0].days[0]
    worse = first.model_copy(update={"quality": first.quality + 0.1})
    versions = (
        found.versions[0].model_copy(update={"days": (first,)}),
        found.versions[1].model_copy(update={"days": (worse,)}),
    )
    for metric, shades in (("log_loss", [0, 6]), ("auc", [6, 0])):
        days, rows = matrix(found.model_copy(update={"versions": versions, "metric": metric}))
        assert days == (first.day,)
        assert [row.cells[0].shade for row in rows] == shades
    alone = matrix(found.model_copy(update={"versions": versions[:1]}))[1]
    assert alone[0].cells[0].shade is None
