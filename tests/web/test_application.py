"""The Models page as people ask for it: who sees what, what it asks of the cloud, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from google.api_core.exceptions import Forbidden

from retraining.core.documents import Overview
from retraining.core.jobs.places import Cause, Entry, Places, Wish
from retraining.core.naming import storage
from retraining.core.report.models_page.rendering import render_all
from retraining.web import application
from retraining.web.application import make_application
from retraining.web.stored import MOST_BYTES, Stored
from tests.support.scenes.models_page import HOSTILE, all_models, drifting, hostile, one_model, summary
from tests.support.scenes.models_site import REGION

BROWSER = {"accept": "text/html,application/xhtml+xml"}


def test_a_reader_sees_the_models_whose_dags_he_may_read_and_no_others(site) -> None:
    """Nor its page, whose answer is that of a model that is not there."""
    site.store(Overview(models=(drifting(), summary())), one_model())
    site.log_in("retrain__departures", "monitor__flight_delays", "maintain")
    page = site.client.get("/models")
    assert page.status_code == 200
    assert "departures" in page.text
    assert "flight_delays" not in page.text
    secret, missing = site.client.get("/models/flight_delays"), site.client.get("/models/flights")
    assert (secret.status_code, secret.text) == (404, missing.text)


def test_who_may_read_the_dag_sees_the_model(site) -> None:
    """With its runs, versions and signals."""
    site.store(Overview(models=(summary(),)), one_model())
    site.log_in("retrain__flight_delays")
    assert 'href="models/flight_delays"' in site.client.get("/models").text
    page = site.client.get("/models/flight_delays").text
    for title in ("Score over time", "What is watched", "Skew over time", "Ledger", "Runs and comparisons", "Versions"):
        assert f">{title}</h" in page
    assert 'href="../../dags/retrain__flight_delays/runs/scheduled__2026-05-19T03%3A00%3A00%2B00%3A00"' in page
    assert 'href="flight_delays/runs/20260519t030000z-0123456789ab/report.html"' in page
    assert 'href="flight_delays/runs/20260519t030000z-0123456789ab"' in page
    assert 'href="flight_delays/runs/20260519t030000z-0123456789ab/model_card.json"' in page
    assert 'href="flight_delays/monitor/20260520t110000z-0123abcd"' in page
    assert 'href="flight_delays/runs.html"' in page
    assert "storage.cloud.google.com" not in page
    assert "https://console.cloud.google.com/vertex-ai/locations/us-central1/endpoints/flight-delays" in page


def test_who_is_not_logged_in_goes_to_the_login_and_comes_back(site) -> None:
    """A program gets 401; either way nothing is read."""
    site.store(all_models(3))
    for path, login in (("/models", "../api/v2/auth/login"), ("/models/model_000", "../../api/v2/auth/login")):
        answer = site.client.get(path, headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (303, f"{login}?next={path.replace('/', '%2F')}")
        assert site.client.get(path, headers={"accept": "application/json"}).status_code == 401
    assert site.bucket.asked == []


def test_a_hundred_models_cost_two_reads_at_once_and_no_other_call(site) -> None:
    """The time is printed; who reads this page often pays these reads each."""
    site.store(all_models(100))
    site.log_in(*(f"retrain__model_{number:03d}" for number in range(100)))
    assert site.client.get("/models").status_code == 200  # templates are compiled once
    site.bucket.asked.clear()
    site.bucket.calls = 0
    started = time.perf_counter()
    page = site.client.get("/models").text
    print(f"\n100 models: {(time.perf_counter() - started) * 1000:.0f} ms, {len(page) / 1000:.0f} kB")
    assert page.count('<tr role="row" class="') == 100
    assert site.bucket.asked == [storage.overview_uri("bucket"), storage.places_uri("bucket", REGION)]
    assert site.bucket.calls == 1


def test_a_models_page_costs_two_reads_at_once(site) -> None:
    """Of its own object, with the region's queue of jobs beside it."""
    site.store(Overview(models=()), one_model())
    site.log_in("retrain__flight_delays")
    site.client.get("/models/flight_delays")
    own = storage.model_overview_uri("bucket", "flight_delays")
    assert (site.bucket.asked, site.bucket.calls) == ([own, storage.places_uri("bucket", REGION)], 1)


def wait_for_room(site: Any, **tasks: str) -> datetime:
    """Let a job of each model wait in the region, the first one since an hour ago; return since when."""
    now = datetime.now(UTC)
    entries = {}
    for place, (model, task) in enumerate(tasks.items()):
        wish = Wish(model=model, task=task, cause=Cause.RUN, priority=5, needs={"machines": 2})
        since = now - timedelta(minutes=60 - place)
        entries[model] = Entry(wish=wish, since=since, heard=now)
    site.bucket.objects[storage.places_uri("bucket", REGION)] = Places(entries=entries).to_bytes()
    return now - timedelta(hours=1)


def test_who_waits_for_room_is_said_to_those_who_may_know_of_the_model(site) -> None:
    """On the row and on the model's page, with how many are before it; of other models nothing."""
    site.store(all_models(3), one_model())
    since = wait_for_room(site, model_000="evaluate", model_001="train", flight_delays="export")
    site.log_in("retrain__model_001", "retrain__model_002", "retrain__flight_delays")
    page = site.client.get("/models").text
    said = "3 models, 1 of them without a run that has ended, 1 job waits for room"
    assert said in page.replace("2 need attention, ", "")
    words = f"train waits since {since + timedelta(minutes=1):%Y-%m-%d %H:%M} UTC for room in {REGION}, 1 before it"
    assert page.count("for room in") == page.count(words) == 1
    assert "evaluate waits" not in page
    assert "export waits" in site.client.get("/models/flight_delays").text


TOO_LARGE = b" " * (MOST_BYTES + 1)


@pytest.mark.parametrize(
    "stored",
    [b"", b"{}", b'{"entries": {"x": 1}, "closed": null}', b"\xff", TOO_LARGE],
    ids=["empty", "nothing in it", "no entry", "no text", "too large"],
)
def test_a_queue_that_cannot_be_read_keeps_no_page_from_being_shown(site, stored) -> None:
    """Jobs find it themselves, and begin none until it is known again."""
    site.store(all_models(1))
    site.bucket.objects[storage.places_uri("bucket", REGION)] = stored
    site.log_in("retrain__model_000")
    page = site.client.get("/models").text
    assert "model_000" in page
    assert "for room" not in page


def test_what_documents_say_stays_text(site) -> None:
    """In elements, attributes and addresses; and no policy would let it run."""
    page = hostile()
    site.store(Overview(models=(page.summary,)), page)
    wait_for_room(site, flight_delays=HOSTILE)
    site.log_in("retrain__flight_delays")
    for path in ("/models", "/models/flight_delays"):
        answer = site.client.get(path)
        assert answer.status_code == 200, answer.text
        assert HOSTILE not in answer.text
        assert not re.search(r"<(script|img|iframe|object)", answer.text)
        assert not re.search(r"\son[a-z]+=", re.sub(r"&[a-z#0-9]+;|&#34;|&#39;", "", _tags(answer.text)))
        for address in re.findall(r'(?:href|src)="([^"]*)"', answer.text):
            assert address.startswith(("https://", "models", "../", "flight_delays/", "data:,", "#content")), address
            assert "javascript:" not in address.partition("://")[0]


def _tags(html: str) -> str:
    """The names and attributes of all elements, without the attributes' values."""
    return re.sub(r'"[^"]*"', '""', "".join(re.findall(r"<[a-z][^>]*>", html)))


def test_nothing_runs_and_nothing_is_loaded(site) -> None:
    """The policy allows one style by its digest; the page has no script, no handler, no style attribute."""
    site.store(all_models(3), one_model())
    site.log_in("retrain__model_000", "retrain__flight_delays")
    for path in ("/models", "/models/flight_delays"):
        answer = site.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"<script|<link rel=.stylesheet|\sstyle=|\son[a-z]+=", answer.text)


def test_a_model_of_which_nothing_has_ended_yet_is_named_with_its_dag(site) -> None:
    """To who may read it, as long as the DAG is there."""
    site.gone.add("bags")
    for stored in (None, Overview(models=(summary(),))):
        if stored:
            site.store(stored)
        site.log_in("retrain__flight_delays", "retrain__delays_by_gate", "retrain__bags", "monitor__taxi")
        page = site.client.get("/models").text
        assert '<a href="../dags/retrain__delays_by_gate">delays_by_gate</a>' in page
        assert ("retrain__flight_delays" in page) == (stored is None)
        assert "bags" not in page
        assert "taxi" not in page
    site.log_in("retrain__flight_delays")
    assert "delays_by_gate" not in site.client.get("/models").text


def test_what_is_there_is_what_airflow_has_not_lost() -> None:
    """Asked of its database."""
    from airflow import settings
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    import_all_models()
    Base.metadata.create_all(settings.engine)
    with create_session() as session:
        session.add(DagBundleModel(name="files"))
        session.flush()
        for name, is_stale in (("retrain__here", False), ("retrain__gone", True), ("monitor__here", False)):
            session.add(DagModel(dag_id=name, is_stale=is_stale, bundle_name="files"))
    assert application._current(frozenset({"here", "gone", "never"})) == {"here"}


def test_before_the_first_task_the_page_says_what_to_do(site) -> None:
    """It is no error."""
    site.log_in("monitor__flight_delays")
    answer = site.client.get("/models")
    assert answer.status_code == 200
    assert "Nothing to show yet" in answer.text
    assert "maintain" in answer.text


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (b"{", "not JSON"),
        (b'{"kind": "plan"}', "kind is &#39;plan&#39;"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"kind": "overview", "schema_version": 1}', "no list of models"),
    ],
    ids=["cut off", "another document", "no text", "deep", "without models"],
)
def test_a_broken_object_is_a_page_with_the_way_out(site, stored, words) -> None:
    """And no stack trace."""
    site.bucket.objects[storage.overview_uri("bucket")] = stored
    site.log_in("retrain__flight_delays")
    answer = site.client.get("/models")
    assert answer.status_code == 500
    assert words in answer.text
    assert "gs://bucket/overview.json" in answer.text
    assert "Traceback" not in answer.text


def test_a_broken_row_is_shown_to_who_may_read_its_dag_alone(site) -> None:
    """And takes the page from nobody."""
    site.store(Overview(models=(drifting(), summary())), one_model())
    uri = storage.overview_uri("bucket")
    site.bucket.objects[uri] = site.bucket.objects[uri].replace(b'"metric": "mae"', b'"metric": "secret-metric"')
    site.log_in("retrain__flight_delays")
    answer = site.client.get("/models")
    assert (answer.status_code, "secret" in answer.text, "departures" in answer.text) == (200, False, False)
    assert 'href="models/flight_delays"' in answer.text
    site.log_in("retrain__flight_delays", "retrain__departures")
    answer = site.client.get("/models")
    assert (answer.status_code, "secret-metric" in answer.text) == (200, True)
    assert 'href="models/flight_delays"' in answer.text


def test_a_page_is_drawn_while_the_event_loop_answers_others(site, monkeypatch) -> None:
    """The execution API has the same loop: a heartbeat of a task is answered before a long page is."""
    drawing, answered = threading.Event(), threading.Event()

    def draw(page: Any) -> str:
        drawing.set()
        assert answered.wait(30), "nobody else was answered meanwhile"
        return render_all(page)

    monkeypatch.setattr(application, "render_all", draw)
    site.store(all_models(3))
    site.log_in("retrain__model_000")

    async def both() -> tuple[int, int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site.app), base_url="http://airflow") as client:
            page = asyncio.create_task(client.get("/models"))
            assert await asyncio.to_thread(drawing.wait, 30)
            heartbeat = await client.get("/nothing")
            answered.set()
            return heartbeat.status_code, (await page).status_code

    assert asyncio.run(both()) == (404, 200)


def test_a_model_may_be_called_models(site) -> None:
    """Its page leads to Airflow's login and back to all models as any other model's."""
    answer = site.client.get("/models/models", headers=BROWSER)
    assert answer.headers["location"] == "../../api/v2/auth/login?next=%2Fmodels%2Fmodels"
    site.log_in("retrain__flight_delays")
    answer = site.client.get("/models/models")
    assert answer.status_code == 404
    assert 'href="../models"' in answer.text


def test_an_address_below_another_path_is_as_deep(site) -> None:
    """Airflow mounts the application, and may itself lie in a folder of a site."""
    outer = FastAPI()
    outer.mount("/airflow/retraining", site.app)
    client = TestClient(outer, follow_redirects=False)
    for path, login in (("/models", "../api"), ("/models/a", "../../api"), ("/models/models", "../../api")):
        answer = client.get(f"/airflow/retraining{path}", headers=BROWSER)
        assert answer.headers["location"].startswith(f"{login}/v2/auth/login"), path


def test_what_google_refuses_is_said_with_the_way_out(site, monkeypatch) -> None:
    """A role is missing."""

    def refuse(uri: str) -> bytes:
        raise Forbidden("no storage.objects.get")

    monkeypatch.setattr(site.bucket, "read_ranges", refuse)
    site.log_in("retrain__flight_delays")
    answer = site.client.get("/models")
    assert answer.status_code == 500
    assert "no storage.objects.get" in answer.text
    assert "role" in answer.text


def test_what_nobody_explains_is_told_without_its_text(site, monkeypatch) -> None:
    """It may hold what is not for readers; the log has it."""

    def fail(uri: str) -> bytes:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(site.bucket, "read_ranges", fail)
    site.log_in("retrain__flight_delays")
    answer = site.client.get("/models")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.text
    assert "hunter2" not in answer.text


def test_a_cloud_that_does_not_answer_is_given_up(site) -> None:
    """After the time-out, with a page."""
    ever = threading.Event()

    def connect() -> Any:
        ever.wait(30)

    app = make_application(Stored(connect, timeout_s=0.05))
    app.dependency_overrides = site.app.dependency_overrides
    site.log_in("retrain__flight_delays")
    answer = TestClient(app, raise_server_exceptions=False).get("/models")
    ever.set()
    assert answer.status_code == 504
    assert "Try again" in answer.text


def test_no_other_address_answers(site) -> None:
    """Neither documentation of an API nor anything that changes something."""
    site.log_in("retrain__flight_delays")
    for path in ("/docs", "/openapi.json", "/redoc", "/", "/models/../x", "/models/a/b"):
        assert site.client.get(path).status_code == 404
    assert site.client.post("/models").status_code == 405


@pytest.mark.parametrize(
    "name",
    [
        "%2e%2e%2foverview",
        "..%2Fflight_delays%2Fmodel",
        "flight_delays%00",
        "flight_delays%2f..",
        "x" * 50_000,
        "%F0%9F%92%A9",
    ],
    ids=["parent", "encoded", "null", "itself", "long", "no ascii"],
)
def test_a_forged_name_reaches_no_bucket(site, name) -> None:
    """Only a name that the reader's DAGs have is looked up."""
    site.store(Overview(models=()), one_model())
    site.log_in("retrain__flight_delays")
    assert site.client.get(f"/models/{name}").status_code == 404
    assert not site.bucket.asked
