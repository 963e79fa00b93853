"""Where the links beside tasks lead: to pages that Airflow itself shows, whichever cloud is behind it."""

from __future__ import annotations

import json
import re

import pytest

from retraining.core.documents import Spending
from retraining.core.naming import storage
from retraining.operators.report.page import ReportOperator
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import here
from tests.support.scenes.deployment import example
from tests.support.scenes.planned_run import FORM, plan

AIRFLOW = "https://airflow.example/under/"
MODELS = "https://airflow.example/under/retraining/models"
KEY = "20131118t030000z-0a1b2c3d4e5f"
URI = storage.run_uri("bucket", "flight_delays", KEY)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> FakeCloud:
    """A cloud with a run, below an Airflow whose address is known."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", AIRFLOW)
    made = FakeCloud()
    document = {**here(example("plan")), "run_key": KEY, "as_of": "2013-11-18T03:00:00Z", "run_uri": URI}
    made.artifacts.objects[f"{URI}/plan.json"] = json.dumps(document).encode()
    return made


def test_the_report_and_all_runs_are_pages_of_airflow(cloud, make_run) -> None:
    """Beside the task, and from one page to the other."""
    run = make_run()
    run.execute(ReportOperator(task_id="report", run_uri=URI, cloud=cloud.connect))
    assert run.xcoms["report", "link_report"] == f"{MODELS}/flight_delays/runs/{KEY}/report.html"
    assert run.xcoms["report", "link_all_runs"] == f"{MODELS}/flight_delays/runs.html"
    page, all_runs = (cloud.artifacts.objects[uri].decode() for uri in (f"{URI}/report.html", _all_runs()))
    assert f'href="{MODELS}/flight_delays/runs.html"' in page
    assert f'href="{MODELS}/flight_delays/runs/{KEY}/report.html"' in all_runs
    assert not re.search(r'href="https://storage.cloud.google.com', page + all_runs)


def test_the_report_notes_what_the_run_cost_in_its_month(cloud, make_run) -> None:
    """Once, however often it is made; as the page has it."""
    run = make_run()
    for _ in range(2):
        run.execute(ReportOperator(task_id="report", run_uri=URI, cloud=cloud.connect))
    uri = storage.spending_uri("bucket", f"{cloud.clock.now():%Y-%m}", "flight_delays")
    spending = Spending.parse(cloud.artifacts.objects[uri])
    assert list(spending.spent) == [KEY]
    assert spending.spent[KEY].ended
    assert spending.spent[KEY].work == "run"


def test_the_documents_of_a_run_are_a_page_of_airflow(cloud, make_run) -> None:
    """From the first task on."""
    run = make_run(params=FORM)
    result = plan(cloud, run)
    path = result["run_uri"].removeprefix("gs://bucket/")
    assert run.xcoms["plan", "link_run_documents"] == f"{MODELS}/{path}"


def test_without_a_configured_address_a_link_is_relative_to_airflow(cloud, make_run, monkeypatch) -> None:
    """And in a stored page, which is read elsewhere too, it leads to Google's browser of the bucket."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "")
    run = make_run()
    run.execute(ReportOperator(task_id="report", run_uri=URI, cloud=cloud.connect))
    assert run.xcoms["report", "link_report"] == f"/retraining/models/flight_delays/runs/{KEY}/report.html"
    page = cloud.artifacts.objects[f"{URI}/report.html"].decode()
    assert 'href="https://storage.cloud.google.com/bucket/flight_delays/runs.html"' in page


def _all_runs() -> str:
    return storage.all_runs_page_uri("bucket", "flight_delays")
