"""What the page tells of a model at a glance, and where its links lead."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from retraining.core.documents import Overview
from retraining.core.documents.overview import ModelSummary
from retraining.core.report.models_page.all_models import AllModels, ModelRow, age_words
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.models_page.places import in_airflow, in_bucket
from retraining.core.report.models_page.rendering import render_all, render_one, style
from tests.support.scenes.models_page import HOSTILE, NOW, all_models, drifting, hostile, one_model, summary

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


def test_what_needs_a_look_comes_first() -> None:
    """Then by name."""
    page = AllModels(overview=all_models(60), now=NOW, places=in_airflow(of_model=False))
    assert [each.summary.model for each in page.rows][:3] == ["model_040", "model_003", "model_020"]
    assert page.looks == 5


def test_a_row_that_nobody_brings_up_to_date_says_so() -> None:
    """After over a day: `maintain` does not run."""
    old = summary(refreshed=NOW - timedelta(hours=27))
    page = render_all(AllModels(overview=Overview(models=(old,)), now=NOW, places=in_airflow(of_model=False)))
    assert "not brought up to date since 2026-05-19 09:00" in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "2026-05-21 03:00"),
        ({"schedule": "*/30 * * * *"}, "2026-05-20 12:30"),
        ({"schedule": None}, "not by the clock"),
        ({"paused_until": NOW + timedelta(days=3)}, "2026-05-24 03:00"),
        ({"schedule": "every day"}, "unknown schedule"),
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
        (-timedelta(hours=1), "0 hours"),
    ],
)
def test_an_age_is_said_as_people_do(age, words) -> None:
    """In one unit."""
    assert age_words(age) == words


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
    (shown,) = OneModel(overview=changed, now=NOW, places=in_airflow(of_model=True)).runs
    assert (shown.gain.mean, shown.gain.low, shown.gain.high, shown.gain.tone) == (1, 0.5, 2, "good")


def test_a_model_without_a_past_has_a_page() -> None:
    """It says of each part why it is empty."""
    empty = one_model(summary(champion=None, decision=None, watch=None, cost=None), versions=(), runs=(), watches=())
    page = render_one(OneModel(overview=empty, now=NOW, places=in_airflow(of_model=True)))
    for words in ("No run came to a score yet", "left no measurement yet", "has not run yet", "There was no run yet"):
        assert words in page


def test_the_page_has_the_colours_of_the_page_of_a_run() -> None:
    """It lies elsewhere, where the web server finds it; the colours are the same, dark and light."""
    from retraining.core.settings import include_path

    other = (include_path() / "templates" / "report" / "style.css").read_text(encoding="utf-8")
    assert ROOT_STYLE.findall(style())[:2] == ROOT_STYLE.findall(other)[:2]
