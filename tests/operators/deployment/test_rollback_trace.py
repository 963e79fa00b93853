"""A way back leaves its trace: on the model's page, and with each run that was ordered before and deploys after."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.documents import ModelOverview, Rollback
from retraining.core.naming import storage
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.models_page.places import in_airflow
from retraining.core.report.models_page.rendering import render_one
from retraining.operators.airflow.params import rollback_params
from retraining.operators.deployment.rollback_end import EndRollbackOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.report.models_refresh import refresh_model
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.deployment import FOLDER, Scene, deploy, example, register

ORDERED = datetime(2013, 11, 20, 3, 0, tzinfo=UTC)


def went_back(cloud: FakeCloud, time: str, came_from: str = "4", to: str = "3", **values: Any) -> None:
    """Store what a rollback did."""
    name = f"{time}-0beec7b5"
    versions = {"version_name": f"projects/p/locations/r/models/flight_delays@{to}"}
    versions["from_version_name"] = f"projects/p/locations/r/models/flight_delays@{came_from}"
    document = {**example("rollback__previous"), "model": "flight_delays", "name": name, **versions, **values}
    uri = storage.document_uri(storage.rollback_uri("bucket", "flight_delays", name), "rollback")
    cloud.artifacts.objects[uri] = Rollback.model_validate(document, strict=False).to_bytes()


def shown(cloud: FakeCloud) -> str:
    """The model's page, brought up to date."""
    refresh_model(cloud, "flight_delays")
    overview = ModelOverview.parse(cloud.artifacts.objects[storage.model_overview_uri("bucket", "flight_delays")])
    return render_one(OneModel(overview=overview, now=ORDERED, places=in_airflow()))


def test_the_models_page_says_who_went_back_when_and_why() -> None:
    """Newest first, and beside the version that was left; what a person wrote is text."""
    cloud = FakeCloud()
    for key in ("20131118t030000z-0123456789ab", "20131119t030000z-0123456789ab"):
        cloud.registry.add(key)
    went_back(cloud, "20131120t033000z", "2", "1", reason="<b>complaints</b>")
    went_back(cloud, "20131120t053000z", "9", "1", stopped=True, reason="")
    page = shown(cloud)
    assert "&lt;b&gt;complaints&lt;/b&gt;" in page
    assert "gone back from 2013-11-20 03:30 by ada" in page
    assert "no reason given" in page
    assert page.index("9, whose deployment was stopped") < page.rindex("by ada</td><td>&lt;b&gt;")
    went_back(cloud, "20131121t033000z", "1", "2")
    assert "gone back from 2013-11-20 03:30" not in shown(cloud)


@pytest.mark.parametrize("task", [RollBackOperator, EndRollbackOperator])
def test_who_may_take_one_model_back_takes_no_other(make_run, task: Any) -> None:
    """Airflow's roles are per DAG: a form that names another model changes nothing, its pause neither."""
    cloud = FakeCloud()
    params = {"model": "flight_delays", "to": "previous", "reason": "", "pause_until": "7 days", "from_version": None}
    run = make_run(dag_id="rollback__parcels", params=params)
    with pytest.raises(AirflowFailException, match="Param model of rollback__parcels: 'flight_delays'"):
        run.execute(task(task_id="roll_back", cloud=cloud.connect))
    assert cloud.artifacts.objects == {}


def test_a_broken_document_hides_no_other() -> None:
    """It is named; the others are there."""
    cloud = FakeCloud()
    went_back(cloud, "20131120t033000z")
    uri = storage.document_uri(storage.rollback_uri("bucket", "flight_delays", "20131120t043000z-0beec7b5"), "rollback")
    cloud.artifacts.objects[uri] = b"{}"
    page = shown(cloud)
    assert "complaints" in page
    assert "rollback 20131120t043000z-0beec7b5" in page


@pytest.mark.parametrize(
    ("time", "said"), [("20131120t033000z", True), ("20131120t020000z", False)], ids=["after the order", "before it"]
)
def test_a_run_that_was_ordered_before_says_so_before_it_takes_traffic(
    make_run, capsys, caplog, time: str, said: bool
) -> None:
    """In the log of deploy and on its page, which is there at the first poke."""
    scene = Scene()
    went_back(scene.cloud, time)
    run = make_run(run_after=ORDERED)
    register(scene, run)
    with caplog.at_level(logging.WARNING):
        deploy(scene, run)
    message = "This run was ordered before somebody went back from version 4 to version 3"
    assert (message in capsys.readouterr().out + caplog.text) is said
    page = scene.cloud.artifacts.objects.get(f"{FOLDER}/report.html", b"").decode()
    assert (message in page) is said
    if said:
        assert "by ada: complaints" in page


def test_the_form_proposes_a_pause() -> None:
    """By the number of days; a date is taken as before."""
    param = rollback_params(["flight_delays"])["pause_until"]
    assert "7 days" in param.schema["examples"]
    for value in ("7 days", "1 day", "2026-12-01", None):
        param.resolve(value)
    for value in ("0 days", "next week", "7days"):
        with pytest.raises(Exception, match=r"does not match|Invalid"):
            param.resolve(value)
