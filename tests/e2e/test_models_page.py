"""The Models page in a real Airflow, clicked through in a real browser: `make test-browser`.

The pictures stay in the test's folder; their paths are printed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from google.cloud import storage as cloud_storage

from demo.system import LaptopSystem
from retraining.core.documents import ModelOverview, Overview
from retraining.core.naming import storage
from retraining.core.report.all_runs import render_all_runs
from retraining.core.report.page import render
from retraining_laptop.airflow import USERNAME
from retraining_laptop.dag_run import wait_for_dag
from retraining_laptop.progress import follow_run
from tests.support.contracts import EXAMPLES
from tests.support.node import ENVIRONMENT, install_program
from tests.support.scenes.models_page import drifting, hostile, one_model, run, summary

BROWSER_FILES = Path(__file__).with_name("browser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium (Debian: apt-get install --no-install-recommends chromium)"
    ),
    pytest.mark.skipif(shutil.which("npm") is None, reason="no Node with npm"),
]
SHOWN = "flight_delays"
ATTACK = "document.title = 'attacked'; fetch('/api/v2/variables')"


def store(uri: str, document: Overview | ModelOverview) -> None:
    """Store a document in the local cloud's bucket."""
    cloud_storage.Blob.from_uri(uri, cloud_storage.Client()).upload_from_string(document.to_bytes())


def store_run_pages(airflow: str) -> None:
    """Store a run's page, plan and the page of all runs; into the run's page a job has written a script."""
    bucket, shown = os.environ["RETRAINING_BUCKET"], run(1)
    plan = json.loads((EXAMPLES / "plan__scheduled.json").read_text())
    uri = storage.run_uri(bucket, SHOWN, shown.run_key)
    plan |= {"model": SHOWN, "bucket": bucket, "run_key": shown.run_key, "run_uri": uri}
    page = render({"plan": plan}, airflow=airflow).replace("</title>", f"</title><script>{ATTACK}</script>")
    html = "text/html; charset=utf-8"
    for address, text, kind in (
        (storage.document_uri(uri, "plan"), json.dumps(plan), "application/json"),
        (storage.report_page_uri(uri), page, html),
        (storage.all_runs_page_uri(bucket, SHOWN), render_all_runs(SHOWN, [], {}, [shown.run_key], airflow), html),
    ):
        cloud_storage.Blob.from_uri(address, cloud_storage.Client()).upload_from_string(text, kind)


def read(uri: str) -> bytes:
    """Read an object of the local cloud's bucket."""
    data: bytes = cloud_storage.Blob.from_uri(uri, cloud_storage.Client()).download_as_bytes()
    return data


@pytest.fixture(scope="module")
def seen(laptop: LaptopSystem, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a walk through the page saw: a model with a past, one that drifts, a hostile one, and one of a real task."""
    bucket, api = os.environ["RETRAINING_BUCKET"], laptop.airflow.api()
    now = datetime.now(UTC).replace(microsecond=0)
    rows = (drifting("departures").model_copy(update={"refreshed": now}), summary(SHOWN, refreshed=now))
    store(storage.overview_uri(bucket), Overview(models=rows))
    store(storage.model_overview_uri(bucket, SHOWN), one_model())
    store_run_pages(laptop.airflow.url)
    wait_for_dag(api, "monitor__digits")
    api.unpause("monitor__digits")
    run_id = api.trigger("monitor__digits")
    state, _ = follow_run(api, "monitor__digits", run_id, say=print, timeout_s=300)
    assert state == "success"
    folder = tmp_path_factory.mktemp("browser")
    program = install_program(BROWSER_FILES, folder / "walk")
    pictures = Path(os.environ.get("PICTURES") or folder)
    arguments = [laptop.airflow.url, USERNAME, laptop.airflow.password, str(pictures), str(CHROMIUM), SHOWN]
    walk = ["node", str(program / "walk.mjs"), *arguments]
    done = subprocess.run(walk, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    print(f"pictures: {pictures}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_reader_clicks_through(seen) -> None:
    """From the login to the models, into one by the keyboard, to its DAG, and in from Airflow's menu in a tab."""
    steps = seen["steps"]
    assert "login" in steps["login"]
    assert steps["back"] == "/retraining/models"
    assert steps["models"] == 3
    assert steps["looks"] == 1
    assert steps["first"] == "Skip to the content"
    assert steps["model"] == SHOWN
    assert steps["drawn"] > 10
    assert steps["dag"] == f"/dags/retrain__{SHOWN}"
    assert (steps["tab"], steps["title"]) == ("/retraining/models", "Models")


def test_a_reader_reads_the_pages_of_runs_and_their_documents(seen) -> None:
    """From the model's page; a script that a job wrote into a run's page does nothing."""
    steps = seen["steps"]
    assert "attacked" not in steps["runTitle"]
    assert SHOWN in steps["runTitle"]
    assert any("script" in message.lower() for message in seen["blocked"]), seen["blocked"]
    assert steps["allRuns"] == f"/retraining/models/{SHOWN}/runs.html"
    assert steps["plan"] == SHOWN


def test_nothing_goes_wrong_and_nobody_else_is_asked(seen) -> None:
    """No error in the console, no request outside of Airflow."""
    assert seen["errors"] == []
    assert seen["outside"] == []


def test_nobody_is_shut_out(seen) -> None:
    """By axe-core, wide, narrow and dark; and no page is wider than a telephone."""
    assert seen["serious"] == []
    assert {name: over for name, over in seen["steps"].items() if name.endswith("-over") and over > 0} == {}


def test_the_monitors_task_wrote_its_row(laptop: LaptopSystem, seen) -> None:
    """A model without a champion: the monitor names it, and the row says so."""
    rows = {
        row.model: row for row in Overview.parse(read(storage.overview_uri(os.environ["RETRAINING_BUCKET"]))).models
    }
    assert list(rows) == ["departures", "digits", SHOWN]
    watch = rows["digits"].watch
    assert watch is not None
    assert watch.outcome == "none"
    assert rows["digits"].champion is None


def test_who_has_no_login_gets_nothing(laptop: LaptopSystem, seen) -> None:
    """Neither without a token, nor with a made-up one."""
    url = f"{laptop.airflow.url}/retraining/models"
    assert requests.get(url, timeout=30, headers={"accept": "application/json"}).status_code == 401
    assert requests.get(url, timeout=30, headers={"authorization": "Bearer x"}).status_code in (401, 403)


def test_a_hostile_model_harms_nobody(laptop: LaptopSystem, seen) -> None:
    """Its page is served, as text."""
    bucket = os.environ["RETRAINING_BUCKET"]
    store(storage.model_overview_uri(bucket, SHOWN), hostile())
    answer = requests.post(
        f"{laptop.airflow.url}/auth/token",
        json={"username": USERNAME, "password": laptop.airflow.password},
        timeout=30,
    )
    headers = {"authorization": f"Bearer {answer.json()['access_token']}"}
    page = requests.get(f"{laptop.airflow.url}/retraining/models/{SHOWN}", headers=headers, timeout=30)
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
