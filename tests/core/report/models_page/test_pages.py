"""What the page tells of a model at a glance, and where its links lead."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core.documents import Failure, ModelOverview
from retraining.core.documents.overview import ModelSummary, MonthBudget, MonthCost
from retraining.core.report.models_page.all_models import AllModels, ModelRow, describe_age
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.models_page.places import in_airflow, in_bucket
from retraining.core.report.models_page.reading import ReadModels
from retraining.core.report.models_page.rendering import render_all, render_one, style
from retraining.core.report.readiness.facts import Facts
from retraining.core.report.readiness.score import score_model
from retraining.core.report.rendering import render_template
from tests.support.contracts import EXAMPLES
from tests.support.scenes.models_page import HOSTILE, NOW, all_models, drifting, hostile, one_model, summary
from tests.support.small_model import make_spec

ROOT_STYLE = re.compile(r":root \{[^}]*\}")


def row(model: ModelSummary) -> ModelRow:
    """A model's row, at the time of its summary."""
    return ModelRow(summary=model, now=NOW, address="")


@pytest.mark.parametrize(
    ("model", "tone", "watched"),
    [
        (summary(), "good", "nothing over its limit"),
        (drifting(), "warn", "skew:carrier, skew:origin"),
        (summary(endpoint_name=None, traffic=()), "bad", "nothing over its limit"),
        (summary(problem="flights.yaml: unknown key"), "bad", "nothing over its limit"),
        (summary(champion=None, traffic=(), watch=None, decision=None), "calm", "not watched yet"),
        (summary(watch=summary().watch.model_copy(update={"named": ("no_traffic", "too_few")})), "warn", "no traffic"),
        (
            summary(champion=None, traffic=(), watch=summary().watch.model_copy(update={"named": ("no_endpoint",)})),
            "calm",
            "nothing over its limit",
        ),
        (
            summary(watch=summary().watch.model_copy(update={"named": ("too_few", "no_labels"), "unjudged": 2})),
            "good",
            "nothing over its limit, 2 not judged",
        ),
    ],
    ids=["healthy", "drifting", "endpoint deleted by hand", "broken file", "new", "no traffic", "no champion", "waits"],
)
def test_a_glance_tells_how_a_model_stands(model, tone, watched) -> None:
    """What needs a look has a colour, and comes first."""
    assert (row(model).tone, row(model).watched) == (tone, watched)


def failure(**changes: Any) -> Failure:
    """Why a run came to no plan."""
    values = json.loads((EXAMPLES / "failure__final.json").read_text())
    folder = "gs://bucket/flight_delays/unplanned/20260101t000000z-0123abcd"
    return Failure.parse(
        json.dumps({**values, "model": "flight_delays", "task": "plan", "folder_uri": folder, **changes})
    )


def test_a_run_that_failed_is_the_first_thing_that_is_said() -> None:
    """In the row of all models in a line; on the model's page in four parts, with what to do, its page and its log."""
    failed = summary(failure=failure())
    assert row(failed).tone == "warn"
    everything = render_all(AllModels(models=ReadModels(rows=(failed,)), now=NOW, places=in_airflow()))
    assert "Failed at plan" in everything
    assert "Google Cloud, PermissionDenied: Permission" in everything
    page = render_one(OneModel(overview=one_model(failed), now=NOW, places=in_airflow("flight_delays")))
    top = page.partition('class="facts"')[0]
    shown = (
        "Failed at plan",
        "denied",
        "an answer",
        "Give the connection&#39;s account the role",
        "Nothing was paid for",
    )
    for text in shown:
        assert text in top
    address = "flight_delays/unplanned/20260101t000000z-0123abcd/report.html"
    assert re.findall(r'<a href="([^"]+)">(?:Run page|Log of plan)<', top) == [address, failed.failure.log]
    in_file = render_one(OneModel(overview=one_model(failed), now=NOW, places=in_bucket("bucket", "https://a.example")))
    assert f"https://storage.cloud.google.com/bucket/{address}" in in_file


@pytest.mark.parametrize(
    "changes",
    [
        {"folder_uri": "gs://bucket/departures/runs/20260101t000000z-0123456789ab"},
        {"folder_uri": "gs://bucket/flight_delays/spans/x"},
        {"folder_uri": None},
    ],
    ids=["another model's", "no run's", "of an earlier release"],
)
def test_a_folder_that_is_no_runs_is_no_link(changes) -> None:
    """Nor is an address that no browser opens."""
    failed = summary(failure=failure(log="javascript:alert(1)", **changes))
    for places in (in_airflow("flight_delays"), in_bucket("bucket", "https://a.example")):
        page = render_one(OneModel(overview=one_model(failed), now=NOW, places=places))
        assert "Run page" not in page
        assert "javascript:" not in page


def test_what_needs_a_look_comes_first() -> None:
    """Then by name."""
    page = AllModels(models=ReadModels(rows=all_models(60).models), now=NOW, places=in_airflow())
    assert [each.summary.model for each in page.rows][:3] == ["model_040", "model_003", "model_020"]
    assert page.looks == 5


def test_a_row_that_nobody_brings_up_to_date_says_so() -> None:
    """After over a day: `maintain` does not run."""
    old = summary(refreshed=NOW - timedelta(hours=27))
    page = render_all(AllModels(models=ReadModels(rows=(old,)), now=NOW, places=in_airflow()))
    assert "since 2026-05-19 09:00" in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "2026-05-21 03:00"),
        ({"schedule": "*/30 * * * *"}, "2026-05-20 12:30"),
        ({"schedule": None}, "not by the clock"),
        ({"paused_until": NOW + timedelta(days=3)}, "2026-05-24 03:00"),
        ({"schedule": "every day"}, "unknown schedule"),
        ({"schedule": "0 3 * * 1", "paused_until": datetime(9999, 12, 31, tzinfo=UTC)}, "never"),
    ],
)
def test_the_next_run_is_the_next_tick(changes, words) -> None:
    """After the pause, where there is one."""
    assert row(summary(**changes)).next_run == words


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(minutes=50), "1 hour"),
        (timedelta(hours=30), "30 hours"),
        (timedelta(days=21, hours=5), "21 days"),
        (-timedelta(hours=1), ""),
    ],
)
def test_an_age_is_said_as_people_do(age, words) -> None:
    """In one unit."""
    assert describe_age(age) == words


def test_a_page_in_the_bucket_leads_to_the_bucket_and_to_airflow() -> None:
    """To Airflow where its address is known, else nowhere."""
    page = render_one(OneModel(overview=one_model(), now=NOW, places=in_bucket("b", "https://airflow.example/x/")))
    assert 'href="https://airflow.example/x/dags/retrain__flight_delays"' in page
    assert 'href="https://storage.cloud.google.com/b/models.html"' in page
    unknown = render_one(OneModel(overview=one_model(), now=NOW, places=in_bucket("b", "/")))
    assert "dags/" not in unknown


def test_hostile_names_stay_text_in_the_bucket_too() -> None:
    """The same template, with whole addresses."""
    page = render_one(OneModel(overview=hostile(), now=NOW, places=in_bucket("b", "javascript:alert(1)")))
    assert HOSTILE not in page
    assert "<script" not in page
    assert 'href="javascript' not in page


def test_a_loss_is_turned_so_that_right_is_better() -> None:
    """Of an error a smaller one is a gain."""
    better = one_model().runs[3].difference.model_copy(update={"metric": "mae", "mean": -1, "low": -2, "high": -0.5})
    changed = one_model(runs=(one_model().runs[3].model_copy(update={"difference": better}),))
    (shown,) = OneModel(overview=changed, now=NOW, places=in_airflow("flight_delays")).runs
    assert (shown.gain.mean, shown.gain.low, shown.gain.high, shown.gain.tone) == (1, 0.5, 2, "good")


def test_a_model_without_a_past_has_a_page() -> None:
    """It says of each part why it is empty."""
    empty = one_model(summary(champion=None, decision=None, watch=None, cost=None), versions=(), runs=(), watches=())
    page = render_one(OneModel(overview=empty, now=NOW, places=in_airflow("flight_delays")))
    for words in ("No run came to a score yet", "left no measurement yet", "has not run yet", "There was no run yet"):
        assert words in page


def test_the_page_has_the_colours_of_the_page_of_a_run() -> None:
    """Its templates lie elsewhere, where the web server finds them; the colours are the same, dark and light."""
    dark_and_light = ROOT_STYLE.findall(style())[:2]
    assert len(dark_and_light) == 2
    assert ROOT_STYLE.findall(render_template("report/layout.html.j2"))[:2] == dark_and_light


class Counted(tuple):
    """Signals that count how often one of them is looked at."""

    __slots__ = ()
    looked = 0

    def __iter__(self):
        """Give each, counted."""
        for each in super().__iter__():
            Counted.looked += 1
            yield each


def watched(features: int) -> ModelOverview:
    """A model whose monitor watches so many features, in a dozen windows."""
    pattern = one_model().watches[0].signals[0]
    signals = tuple(pattern.model_copy(update={"subject": f"feature_{number}"}) for number in range(features))
    rows = one_model().watches[:12]
    return one_model().model_copy(
        update={"watches": tuple(row.model_copy(update={"signals": Counted(signals)}) for row in rows)}
    )


def test_a_page_looks_at_each_signal_so_many_times_however_many_there_are() -> None:
    """Four times the features are at most four times the work."""
    looked = {}
    for features in (100, 400):
        Counted.looked = 0
        render_one(OneModel(overview=watched(features), now=NOW, places=in_airflow("flight_delays")))
        looked[features] = Counted.looked
    assert looked[400] <= 4 * looked[100]


def test_signals_that_are_not_drawn_are_counted_and_where_they_are_is_said() -> None:
    """Also those that the task that wrote the object left out."""
    overview = watched(400)
    newest = overview.watches[0].model_copy(update={"left_out": 60})
    overview = overview.model_copy(update={"watches": (newest, *overview.watches[1:])})
    page = render_one(OneModel(overview=overview, now=NOW, places=in_airflow("flight_delays")))
    assert "360 more signals" in page
    assert f"gs://my-bucket/flight_delays/monitor/{newest.key}/signals.json" in page
    assert page.count('<figure class="multiple">') == 100


def test_of_a_thousand_models_two_hundred_are_drawn_and_the_others_are_a_link_away() -> None:
    """Each is on one of the pages; those that need attention on the first."""
    read, drawn = ReadModels(rows=all_models(1000).models), []
    for number in range(1, 6):
        page = render_all(AllModels(models=read, now=NOW, places=in_airflow(), page=number))
        assert "800 of 1000 models" in page
        assert page.count('href="models?page=') == 8
        drawn += re.findall(r'href="models/(model_\d+)"', page)
        assert ('class="looks"' in page) == (number == 1)
    assert sorted(drawn) == sorted(row.model for row in read.rows)


def test_a_file_of_all_models_says_where_the_others_are() -> None:
    """It has no further pages."""
    read = ReadModels(rows=all_models(201).models)
    page = render_all(AllModels(models=read, now=NOW, places=in_bucket("b", ""), source="gs://b/overview.json"))
    assert "1 of 201 models" in page
    assert "<code>gs://b/overview.json</code>" in page


def test_costs_of_several_months_are_not_called_those_of_one() -> None:
    """A model whose newest run is old counts the month of that run."""
    old = MonthCost(month="2026-03", usd=1.0, runs=1, unpriced=0)
    page = AllModels(models=ReadModels(rows=(summary(), summary("old", cost=old))), now=NOW, places=in_airflow())
    assert page.cost.startswith("4.21 USD")
    assert page.cost.endswith("(2026-03 to 2026-05)")


@pytest.mark.parametrize(("warned", "tone"), [(True, "warn"), (False, "good")])
def test_a_models_month_budget_stands_beside_its_cost(warned: bool, tone: str) -> None:
    """With what is expected of runs under way; without a budget nothing is said of one."""
    budget = MonthBudget(month="2026-05", usd=40.0, spent=30.0, reserved=3.5, unknown=1, warned=warned)
    read = ReadModels(rows=(summary().model_copy(update={"budget": budget}),))
    page = render_all(AllModels(models=read, now=NOW, places=in_airflow()))
    assert f'<small class="{tone}">budget: at least 33.50 of 40.00 USD in 2026-05</small>' in page
    assert "budget:" not in render_all(AllModels(models=ReadModels(rows=(summary(),)), now=NOW, places=in_airflow()))


def test_data_of_this_hour_are_named_by_their_time() -> None:
    """Where data ended, a champion of the newest data is as old as the page."""
    now = summary()
    assert row(now).data == "data of 3 days ago"
    assert row(now.model_copy(update={"moment": now.champion.as_of})).data == "data up to 2026-05-17 12:00"


def scored(where: str) -> Any:
    """A model's score, with one test that a person made by hand."""
    review = {"test": "privacy", "by": "Ada <b>", "day": "2026-05-01", "where": where}
    return score_model(make_spec(reviews=[review]), Facts(day=NOW.date()))


def test_the_ml_test_score_has_all_tests_with_what_satisfies_them_and_what_would() -> None:
    """Escaped, with a link where the result is written down at an address."""
    score = scored('https://example.com/"><b>')
    page = render_one(OneModel(overview=one_model(readiness=score), now=NOW, places=in_airflow()))
    _, _, section = page.partition("<h2>ML Test Score</h2>")
    assert "<b>0 of 7</b>, the least of its sections: research, and no product yet. data 1.5, model 0, " in section
    for test in score.tests:
        _, found, row = section.partition(f"<code>{test.name}</code>")
        assert found, test.name
        row = html.unescape(row.partition("</tr>")[0])
        assert f'<td class="n">{test.points:g}</td>' in row
        assert (test.satisfied_by or "<td>-</td>") in row
        assert (test.would_be_satisfied_by or "<td>-</td>") in row
    assert 'href="https://example.com/&#34;&gt;&lt;b&gt;"' in section
    assert "Ada &lt;b&gt; made it by hand on 2026-05-01" in section
    assert "<b>" not in section.partition("</b>")[2]


def test_a_path_is_no_link_and_a_model_may_have_no_score_yet() -> None:
    """A path of the repository leads nowhere from here."""
    page = render_one(OneModel(overview=one_model(readiness=scored("docs/a.md")), now=NOW, places=in_airflow()))
    assert "<code>docs/a.md</code>" in page
    assert 'href="docs/a.md"' not in page
    assert "It was not scored yet" in render_one(OneModel(overview=one_model(), now=NOW, places=in_airflow()))
