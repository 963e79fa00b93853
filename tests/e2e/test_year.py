"""Two months of the replay under a real scheduler: what is missing is named, a drift is answered once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest

from demo.bundle import change_spec, copy_bundle
from demo.dag_run import MODEL
from demo.year import Year, scores, year_lines
from demo.year_picture import render_year
from demo.year_scenario import DRIFT, OUTAGE, SILENCE, merge, read_scenario
from tests.e2e.conftest import running_laptop

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    """Played."""
    base = tmp_path_factory.mktemp("year")
    scenario = read_scenario()
    dags_path = copy_bundle(base / "bundle")
    change_spec(dags_path, MODEL, lambda spec: merge(spec, scenario.spec))
    with running_laptop(base, dags_path) as system:
        project = os.environ["RETRAINING_PROJECT"]
        played = Year(api=system.airflow.api(), scenario=scenario, months=2, project=project, say=print)
        played.play()
        yield played
    print("\n".join(year_lines(played)))


def test_the_outage_is_a_named_state_and_orders_nothing(year: Year) -> None:
    """The column is missing in every request of whole windows."""
    outage = [step for step in year.steps if any(event.kind == OUTAGE for event in step.events)]
    assert len(outage) == 2
    assert all("feature_gone" in step.states for step in outage)
    assert [step.retrained for step in outage] == [None, None]


def test_silence_is_a_named_state_and_orders_nothing(year: Year) -> None:
    """Nobody asks in a whole window."""
    silent = [step for step in year.steps if any(event.kind == SILENCE for event in step.events)]
    assert [(step.answers, step.auc, step.retrained) for step in silent] == [(0, None, None)]
    assert all("no_traffic" in step.states for step in silent)


def test_the_drift_orders_retrainings_and_nothing_before(year: Year) -> None:
    """The first in the second window that shows it; its version takes the traffic.

    It learned the drift in part: at most one more follows, once there are at least twice as many days of it.
    """
    drifted = [step for step in year.steps if any(event.kind == DRIFT for event in step.events)]
    ordered = [step for step in year.steps if step.retrained]
    assert len(ordered) in (1, 2), year_lines(year)
    assert ordered[0] is drifted[1]
    assert ordered[0].cause is not None
    assert ordered[0].cause.partition(":")[0] in ("skew", "performance")
    assert ordered[0].retrained.promoted, ordered[0].retrained.message
    assert all(step.as_of - ordered[0].as_of >= timedelta(days=10) for step in ordered[1:])
    assert {step.version_id for step in year.steps if step.as_of <= ordered[0].as_of} == {"1"}
    promoted = [step.retrained for step in ordered if step.retrained and step.retrained.promoted]
    assert year.steps[-1].version_id == promoted[-1].version_id


def test_the_score_falls_with_the_drift_and_comes_back(year: Year) -> None:
    """As customers meet it: over all answers of the steps."""
    before, during, after = scores(year)
    assert during < before - 0.05
    assert after > during + 0.03


def test_the_picture_tells_it(year: Year) -> None:
    """Self-contained: each step is a row, each order a mark; nothing is asked of the network."""
    page = render_year(year, "two months")
    assert page.count("<tr>") == len(year.steps) + 1
    assert page.count('class="retrain"') == sum(bool(step.retrained) for step in year.steps)
    assert "http://www.w3.org/2000/svg" in page
    assert page.count("http") == page.count("http://www.w3.org/2000/svg")
    assert "<script" not in page
