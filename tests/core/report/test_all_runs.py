"""The page with all runs of a model: from documents alone, escaped, in every order, whatever is missing."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.documents import Checks, Failure
from retraining.core.naming import storage
from retraining.core.report.all_runs import KINDS, SORTINGS, Beside, render_all_runs
from retraining.core.report.failures import ENDED_BY_PLAN
from retraining.core.report.run import Run, read_reported_run
from tests.core.report.test_page import ATTACK, WHOLE_RUN
from tests.support.contracts import EXAMPLES

DOCUMENTS = {kind: json.loads((EXAMPLES / f"{kind}__{WHOLE_RUN[kind]}.json").read_text()) for kind in KINDS}


def make_run(day: int, *, without: tuple[str, ...] = (), rate: float = 0.01, auc: float = 0.7) -> Run:
    """A run of a day in November, with a learning rate and what came of it."""
    documents: dict[str, Any] = copy.deepcopy({kind: DOCUMENTS[kind] for kind in KINDS if kind not in without})
    plan = documents["plan"]
    plan["as_of"] = f"2013-11-{day:02d}T03:00:00Z"
    key = f"201311{day:02d}t030000z-0a1b2c3d4e5f"
    plan["run_uri"], plan["run_key"] = plan["run_uri"].replace(plan["run_key"], key), key
    if "report" in documents:
        documents["report"]["hyperparameters"] = {"learning_rate": rate, "hidden_units": [8, 4], "note": ATTACK}
    if "evaluation" in documents:
        documents["evaluation"]["challenger"]["metrics"]["auc"] = auc
    return read_reported_run(documents)


def rows_of(page: str) -> list[str]:
    """Rows of runs, newest first."""
    return re.findall(r'<tr role="row" class="is-.*?</tr>', page, re.DOTALL)


def test_a_row_says_what_the_documents_say() -> None:
    """Data, what is not alike, metrics with the interval, decision, price and time; the link is the run's page."""
    page = render_all_runs("flight_delays", [make_run(20, rate=0.02), make_run(19, rate=0.01)], {}, [])
    first, second = rows_of(page)
    assert "20131120t030000z-0a1b2c3d4e5f/report.html" in first
    for words in ("2013-11-20 03:00", "1,624 train", "0.7000</b> auc", "+0.0100", "-0.0020 to +0.0210", "Promoted"):
        assert words in first
    assert "learning_rate <code>0.02</code>" in first
    assert "learning_rate <code>0.01</code>" in second
    alike = page.split("Alike in all of them")[1]
    assert "hidden_units <code>8, 4</code>" in alike
    assert "learning_rate" not in alike
    assert re.search(r"\d+ min \d\d s<small>0\.\d{4} USD", first)


def test_what_is_written_in_documents_is_text() -> None:
    page = render_all_runs("flight_delays", [make_run(20)], {"20131101t000000z-0a1b2c3d4e5f": ATTACK}, [])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 2


def test_nothing_is_fetched_and_the_same_documents_give_the_same_bytes() -> None:
    pages = [render_all_runs("flight_delays", [make_run(20), make_run(19)], {}, ["x"]) for _ in range(2)]
    assert pages[0] == pages[1]
    assert not re.search(r"<(script|link|img|iframe)|src=|@import|url\(", pages[0])


def test_each_sorting_has_a_control_and_a_place_for_every_row() -> None:
    """Radio buttons, which the keyboard reaches; what has no number comes last."""
    runs = [make_run(20, auc=0.6), make_run(19, auc=0.8, without=("timings",)), make_run(18, without=KINDS[1:])]
    page = render_all_runs("flight_delays", runs, {}, [])
    for sorting in SORTINGS:
        assert f'<input type="radio" name="sort" id="sort-{sorting}"' in page
        assert f"main:has(#sort-{sorting}:checked) .runs tbody tr {{ order: var(--{sorting}); }}" in page
    places = [re.findall(r"--(\w+): (\d+);", row) for row in rows_of(page)]
    assert [dict(each)["newest"] for each in places] == ["0", "1", "2"]
    assert [dict(each)["metric"] for each in places] == ["1", "0", "2"]
    assert [dict(each)["usd"] for each in places] == ["0", "1", "2"]


def failure(task: str, **changes: Any) -> Failure:
    """What a try of a task left."""
    values = {"dag_run_id": "scheduled__1", "task": task, "attempt": 1, "retried": False, "error": "JobError"}
    parts = {"where": "job 7", "found": f"exit code 1:\n{ATTACK}", "expected": "", "way_out": "Look", "quotes": True}
    failed_at = datetime(2013, 11, 21, 3, 10, tzinfo=UTC)
    return Failure(**{"model": "flight_delays", **values, **parts, "failed_at": failed_at, **changes})


def test_a_row_says_how_the_run_stands_and_why() -> None:
    """Failed, tried again, under way, stopped by the data checks, skipped by its plan: in a line, with a link."""
    only_plan = make_run(18, without=KINDS[1:])
    bad = json.loads((EXAMPLES / "checks__blocked.json").read_text())
    runs = [
        make_run(20),
        dataclasses.replace(make_run(19, without=KINDS[1:]), failures=(failure("train"),)),
        dataclasses.replace(only_plan, failures=(failure("snapshot", retried=True),)),
        make_run(17, without=KINDS[1:]),
        dataclasses.replace(make_run(16, without=KINDS[1:]), checks=Checks.parse(json.dumps(bad))),
    ]
    root = "gs://bucket/flight_delays/unplanned"
    unplanned = {
        f"{root}/20131121t030000z-0123abcd": (failure("plan"),),
        f"{root}/20131115t030000z-0123abcd": (failure("plan", error=ENDED_BY_PLAN, found="paused until Monday"),),
    }
    reported = [storage.report_page_uri(run.plan.run_uri) for run in (runs[0], runs[1], runs[4])]
    beside = Beside(unplanned=unplanned, reported=reported)
    page = render_all_runs("flight_delays", runs, {}, [], "https://airflow.example", beside)
    rows = rows_of(page)
    expected = [
        ("failed", "Failed at plan", "/unplanned/20131121t030000z-0123abcd/report.html"),
        ("promote", "Promoted", f"{runs[0].plan.run_key}/report.html"),
        ("failed", "Failed at train", f"{runs[1].plan.run_key}/report.html"),
        ("working", "snapshot failed and is tried again", f'{runs[2].plan.run_key}"'),
        ("working", "Under way, at the task snapshot", f'{runs[3].plan.run_key}"'),
        ("failed", "Stopped by the data checks", f"{runs[4].plan.run_key}/report.html"),
        ("skipped", "Skipped", "/unplanned/20131115t030000z-0123abcd/report.html"),
    ]
    assert len(rows) == len(expected)
    for row, (tone, headline, address) in zip(rows, expected, strict=True):
        assert row.startswith(f'<tr role="row" class="is-{tone}"')
        assert headline in row
        assert address in row
        assert "No decision" not in row
    assert "job 7: exit code 1: &lt;script&gt;" in rows[2]
    assert "paused until Monday" in rows[6]
    assert re.findall(r'id="only-(\w+)"', page) == ["all", "failed", "working", "promote", "skipped"]
    places = [dict(re.findall(r"--(\w+): (\d+);", row)) for row in rows]
    assert [each["newest"] for each in places] == [str(number) for number in range(7)]


@pytest.mark.parametrize("runs", [[], [make_run(20)]], ids=["none", "one"])
def test_older_runs_are_named(runs) -> None:
    page = render_all_runs("flight_delays", runs, {}, ["20121101t000000z-0a1b2c3d4e5f"])
    assert "20121101t000000z-0a1b2c3d4e5f" in page
    assert f"{len(runs)} of {len(runs) + 1} runs" in page
