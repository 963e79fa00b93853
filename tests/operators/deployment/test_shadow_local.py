"""Shadow traffic on the local cloud, through Google's clients: what customers asked the champion is asked once more.

Nobody but this test asks, so nobody may meet the new version before the replay is judged.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud import aiplatform_v1
from google.cloud import bigquery as google_bigquery

from retraining.core.documents import Deployment, ShadowTraffic
from retraining.core.naming import bigquery, vertex
from retraining.core.naming.vertex import staging_of
from retraining.hooks.cloud import Cloud
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import INSTANCE, save_models

GOOD, BAD = 0.25, 0.75
ASKED, SAME = 120, 20
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def second_run(local_cloud, make_run, tmp_path, request) -> Callable[[float], DeployedRun]:
    """Makes a version after a champion whom customers have asked."""
    del local_cloud
    save_models(tmp_path, GOOD, BAD)
    cloud, dag_id = Cloud(), f"retrain__shadow_{uuid.uuid4().hex[:8]}"
    cloud.clock = Waiting()

    def make(score: float, *, asked: bool = True) -> DeployedRun:
        first = night(20, GOOD)
        first.deploy()
        if asked:
            ask(first)
        made = night(21, score, staging=True, shadow={"max_minutes": 1})
        request.addfinalizer(made.retire)
        return made

    def night(day: int, score: float, **deployment: Any) -> DeployedRun:
        run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
        return DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), tmp_path / str(score), **deployment)

    return make


def table_of(night: DeployedRun) -> str:
    """The model's request log."""
    return bigquery.request_log_table(night.cloud.settings.project, night.cloud.settings.dataset, night.model)


def ask(night: DeployedRun) -> None:
    """Customers ask the champion, and it is written down.

    Two instances in a request: one of as many as a smoke request has, within seconds of it, is taken for one.
    """
    region = night.cloud.settings.region
    client = aiplatform_v1.PredictionServiceClient(
        client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"}
    )
    name = vertex.endpoint_name(night.cloud.settings.project, region, night.model)
    for number in range(ASKED):
        distances = (float(number % SAME), number % SAME + 0.5)
        client.predict(endpoint=name, instances=[INSTANCE | {"distance": distance} for distance in distances])
    until = time.monotonic() + 60
    while logged(night) < ASKED:
        assert time.monotonic() < until, f"{logged(night)} of {ASKED} requests are logged"
        time.sleep(0.5)


def logged(night: DeployedRun) -> int:
    """How many requests of customers stand in the log."""
    if night.cloud.warehouse.table_schema(table_of(night)) is None:
        return 0
    client = google_bigquery.Client(project=night.cloud.settings.project)
    customers = f"`{table_of(night)}` WHERE ARRAY_LENGTH(request_payload) = 2"
    (found,) = client.query(f"SELECT COUNT(*) AS number FROM {customers}").result()
    return int(found["number"])


def ended(night: DeployedRun) -> tuple[Deployment, ShadowTraffic]:
    """How the deployment ended, and what the replay saw."""
    document = Deployment.parse(night.cloud.artifacts.read_object(f"{night.folder}/deployment.json"))
    assert document.staging is not None
    assert document.staging.shadow is not None
    return document, document.staging.shadow


def require_left(night: DeployedRun) -> None:
    """Nothing stays on the endpoint for tries."""
    staging = night.cloud.endpoints.get(staging_of(night.model))
    assert staging is not None
    assert (staging.deployed, staging.traffic) == ({}, {})


def test_what_customers_asked_is_asked_once_more_and_the_version_serves(second_run) -> None:
    night = second_run(GOOD)
    calls = night.deploy()
    assert calls.count("predict_once") == ASKED
    document, replay = ended(night)
    assert document.deployed
    assert (replay.requests, replay.values, replay.answered, replay.errors) == (ASKED, SAME, ASKED, 0)
    outcomes = {gate.name: gate.passed for gate in replay.gates}
    assert (outcomes["requests"], outcomes["answers"]) == (True, True)
    assert False not in outcomes.values()
    require_left(night)
    assert night.answer() == (GOOD, "2")


def test_who_dies_in_the_midst_of_it_sends_nothing_again(second_run) -> None:
    """What was not answered to anybody is named, and the version goes its way."""
    night = second_run(GOOD)
    calls = night.deploy("predict_once", nth=7, after=True)
    assert night.died
    document, replay = ended(night)
    assert document.deployed
    assert replay.sent == ASKED
    assert calls.count("predict_once") == replay.answered + 7
    assert f"{ASKED - replay.answered} were lost with the process that sent them" in replay.gates[0].message
    require_left(night)


def test_a_version_that_answers_otherwise_is_stopped_before_any_user(second_run) -> None:
    """Its smoke requests are what its report says; its answers are not those of before, nor of its test split."""
    night = second_run(BAD)
    before = night.cloud.endpoints.get(night.model)
    night.deploy()
    document, replay = ended(night)
    assert not document.deployed
    assert "sent to it without a user, answers: " in document.message
    assert {gate.name: gate.passed for gate in replay.gates}["answers"] is False
    assert replay.answered == ASKED
    assert night.cloud.endpoints.get(night.model) == before
    require_left(night)
    assert night.answer() == (GOOD, "1")


def test_without_a_request_log_the_version_serves_and_says_so(second_run) -> None:
    """The table is gone: nobody's requests could be sent."""
    night = second_run(BAD, asked=False)
    google_bigquery.Client(project=night.cloud.settings.project).delete_table(table_of(night), not_found_ok=True)
    night.deploy()
    document, replay = ended(night)
    assert document.deployed
    (gate,) = replay.gates
    assert (gate.name, gate.passed) == ("requests", None)
    assert f"there is no request log ({table_of(night)})" in gate.message
    assert night.answer() == (BAD, "2")
