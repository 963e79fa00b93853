"""What is broken of one model keeps no other from being shown, and is said to nobody who may not see it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import Overview
from retraining.core.errors import ContractError
from retraining.core.report.models_page.all_models import AllModels
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.models_page.places import in_airflow
from retraining.core.report.models_page.reading import read_model, read_models
from retraining.core.report.models_page.rendering import render_all, render_one
from tests.support.refusals import refuses
from tests.support.scenes.models_page import NOW, drifting, one_model, summary

URI = "gs://bucket/overview.json"


def stored(*changes: dict[str, Any]) -> bytes:
    """The object of all models: one that is whole, and others with changed fields."""
    rows = [summary("whole").model_dump(mode="json")]
    rows += [{**summary(f"changed_{number}").model_dump(mode="json"), **each} for number, each in enumerate(changes)]
    return json.dumps({"kind": "overview", "schema_version": 1, "models": rows}).encode()


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "secret-metric"},
        {"moment": "yesterday"},
        {"scores": [float("nan")]},
        {"description": "\ud800", "owner": "\udfff"},
        {"traffic": None},
        {"of_a_later_release": 1},
    ],
    ids=["metric", "time", "not finite", "half a character", "null", "later release"],
)
def test_a_broken_row_is_unknown_and_the_others_are_shown(change) -> None:
    """And the page can be sent: it is text."""
    read = read_models(stored(change), URI)
    assert ([row.model for row in read.rows], list(read.broken)) == (["whole"], ["changed_0"])
    page = render_all(AllModels(models=read, now=NOW, places=in_airflow()))
    assert page.encode()
    assert page.count(">unknown</td>") == 7
    assert 'href="models/whole"' in page
    assert "2 models, 1 needs attention" in page


def test_of_a_model_that_one_may_not_read_nothing_is_read_or_said() -> None:
    """Neither its name nor what is wrong with it."""
    read = read_models(stored({"metric": "secret-metric"}), URI, readable={"whole"})
    assert ([row.model for row in read.rows], read.broken) == (["whole"], {})


@pytest.mark.parametrize("row", [None, [], {}, {"model": 7}, {"model": "../x"}], ids=repr)
def test_what_is_no_models_row_is_nobodys(row) -> None:
    """It takes nothing away."""
    data = json.loads(stored())
    data["models"].append(row)
    read = read_models(json.dumps(data).encode(), URI)
    assert ([each.model for each in read.rows], read.broken) == (["whole"], {})


def test_a_row_that_cannot_be_drawn_is_unknown(monkeypatch) -> None:
    """Whatever the reason is."""

    def fail(self: object) -> str:
        raise OverflowError("secret text")

    monkeypatch.setattr("retraining.core.report.models_page.all_models.ModelRow.outcome", property(fail))
    read = read_models(Overview(models=(drifting(), summary())).to_bytes(), URI)
    page = render_all(AllModels(models=read, now=NOW, places=in_airflow()))
    assert page.count(">unknown</td>") == 14
    assert "OverflowError" in page
    assert "secret text" not in page


def test_a_part_of_a_models_page_that_cannot_be_drawn_is_unknown(monkeypatch) -> None:
    """The others are shown."""

    def fail(self: object) -> str:
        raise OverflowError("secret text")

    monkeypatch.setattr("retraining.core.report.models_page.one_model.OneModel.scores", property(fail))
    page = render_one(OneModel(overview=one_model(), now=NOW, places=in_airflow("flight_delays")))
    assert '<h2>Score over time</h2>\n<p class="bad">Unknown: OverflowError' in page
    assert "<h2>Runs and comparisons</h2>" in page
    assert "secret text" not in page


def test_a_broken_row_of_a_models_own_page_is_named_and_the_others_are_shown() -> None:
    """Of runs, versions and monitor runs alike."""
    data = json.loads(one_model().to_bytes())
    data["runs"][0]["score"] = "high"
    data["watches"][1] = None
    read = read_model(json.dumps(data).encode(), URI, "flight_delays")
    assert (len(read.runs), len(read.watches)) == (20, 95)
    assert list(read.unreadable) == ["runs[0]", "watches[1]"]


def test_another_models_object_is_refused() -> None:
    """Wherever it lies."""
    with refuses(ContractError, found="object of flight_delays"):
        read_model(one_model().to_bytes(), URI, "departures")
