"""Run pages and documents as Airflow shows them: for who may read the model's DAG, and so that they can do nothing."""

from __future__ import annotations

import json
import re
from urllib.parse import urljoin

import pytest

from retraining.core.documents import KINDS
from retraining.core.naming import pages, storage
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.report.page import render
from retraining.web import stored
from tests.support.contracts import STORED
from tests.support.scenes.deployment import example

KEY = "20131120t030000z-0123456789ab"
LOOK = "20131120t040000z-0123abcd"
RUN = storage.run_uri("bucket", "flight_delays", KEY)
AT = f"/models/flight_delays/runs/{KEY}"
SCRIPT = b"<html><script>fetch('/api/v2/variables')</script><p onclick=alert(1)>page</p></html>"
ELSEWHERE = {
    "failure": "below a run's folder, one per try",
    "golden": "tables of frozen sets, in a folder of their own",
    "span": "examples, in the span store",
    "score_request": "below the folders of scores",
    "scores": "below the folders of scores",
    "rollout": "of the model, not of a run",
    "pause": "of the model, not of a run",
    "spending": "of a model's month, not of a run",
    "notification": "who was told, of all models",
    "maintenance_plan": "of all models",
    "maintenance": "of all models",
    "overview": "the Models page itself",
    "model_overview": "the Models page itself",
}
"""Why a kind of document is not shown."""


@pytest.fixture
def reader(site):
    """A reader of one model, whose run has a plan and a page; another model's run has them, too."""
    for model in ("flight_delays", "departures"):
        uri = storage.run_uri("bucket", model, KEY)
        site.bucket.objects[f"{uri}/plan.json"] = json.dumps({**example("plan"), "model": model}).encode()
        site.bucket.objects[f"{uri}/report.html"] = b"<html>page of " + model.encode() + b"</html>"
        site.bucket.objects[storage.all_runs_page_uri("bucket", model)] = b"<html>runs of " + model.encode()
    site.log_in("retrain__flight_delays")
    return site


def test_who_may_read_the_dag_reads_the_runs_page_and_documents(reader) -> None:
    """Each as it is stored."""
    page, document = reader.client.get(f"{AT}/report.html"), reader.client.get(f"{AT}/plan.json")
    assert (page.status_code, page.text) == (200, "<html>page of flight_delays</html>")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert document.json()["model"] == "flight_delays"
    assert document.headers["content-type"] == "application/json; charset=utf-8"
    assert reader.client.get("/models/flight_delays/runs.html").text == "<html>runs of flight_delays"


def test_of_another_model_nothing_is_shown_and_nothing_read(reader) -> None:
    """Its answer is that of a model that is not there."""
    for path in ("runs.html", f"runs/{KEY}", f"runs/{KEY}/report.html", f"runs/{KEY}/plan.json"):
        secret = reader.client.get(f"/models/departures/{path}")
        missing = reader.client.get(f"/models/nobody/{path}")
        assert (secret.status_code, secret.text) == (404, missing.text)
    assert reader.bucket.asked == []


def test_who_is_not_logged_in_goes_to_airflows_login(site) -> None:
    """From however deep an address."""
    for path in ("/models/a/runs.html", AT, f"{AT}/report.html"):
        answer = site.client.get(path, headers={"accept": "text/html"})
        login = urljoin(f"http://a/retraining{path}", answer.headers["location"])
        assert login.startswith("http://a/api/v2/auth/login?next=%2Fmodels")
        assert site.client.get(path, headers={"accept": "application/json"}).status_code == 401
    assert site.bucket.asked == []


FAILED_TRIES = [
    f"runs/{KEY}/failures/train-1.json",
    f"runs/{KEY}/failures/train-2-end.json",
    f"unplanned/{LOOK}/failures/plan-1.json",
]


@pytest.mark.parametrize("path", FAILED_TRIES)
def test_messages_of_failed_tries_are_documents_like_others(reader, path) -> None:
    """Listed with them, and shown as they are stored; refused of another kind or model, and to other readers."""
    document = {"kind": "failure", "model": "flight_delays", "found": "<script>"}
    for model in ("flight_delays", "departures"):
        reader.bucket.objects[f"gs://bucket/{model}/{path}"] = json.dumps({**document, "model": model}).encode()
    answer = reader.client.get(f"/models/flight_delays/{path}")
    assert answer.json() == document
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    folder, _, name = path.partition("/failures/")
    listing = reader.client.get(f"/models/flight_delays/{folder}")
    assert f'href="{folder.partition("/")[2]}/failures/{name}"' in listing.text
    assert reader.client.get(f"/models/departures/{path}").status_code == 404
    for wrong in ({**document, "kind": "plan"}, {**document, "model": "departures"}):
        reader.bucket.objects[f"gs://bucket/flight_delays/{path}"] = json.dumps(wrong).encode()
        assert reader.client.get(f"/models/flight_delays/{path}").status_code == 500
    del reader.bucket.objects[f"gs://bucket/flight_delays/{path}"]
    assert "Not written" in reader.client.get(f"/models/flight_delays/{path}").text


def test_the_page_of_a_run_without_a_plan_is_shown_as_that_of_others(reader) -> None:
    """Also its folder, which has nothing else."""
    reader.bucket.objects[f"gs://bucket/flight_delays/unplanned/{LOOK}/report.html"] = b"<html>failed at plan</html>"
    answer = reader.client.get(f"/models/flight_delays/unplanned/{LOOK}/report.html")
    assert (answer.status_code, answer.text) == (200, "<html>failed at plan</html>")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert f'href="{LOOK}/report.html"' in reader.client.get(f"/models/flight_delays/unplanned/{LOOK}").text


@pytest.mark.parametrize("path", ["runs.html", f"runs/{KEY}/report.html", f"runs/{KEY}/plan.json", *FAILED_TRIES])
def test_what_a_job_wrote_can_do_nothing_in_airflow(reader, path) -> None:
    """It has an origin of its own, runs no script, sends no form and loads nothing."""
    kind = "failure" if "/failures/" in path else "plan"
    document = json.dumps({"kind": kind, "model": "flight_delays", "x": SCRIPT.decode()}).encode()
    uri = f"gs://bucket/flight_delays/{path}"
    reader.bucket.objects[uri] = document if path.endswith("json") else SCRIPT
    answer = reader.client.get(f"/models/flight_delays/{path}")
    assert answer.status_code == 200
    policy = {part.split()[0]: part.split()[1:] for part in answer.headers["content-security-policy"].split(";")}
    assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == ["'none'"]
    assert policy["frame-ancestors"] == ["'none'"]
    assert not {"allow-scripts", "allow-same-origin", "allow-forms", "allow-top-navigation"} & set(policy["sandbox"])
    assert not {"script-src", "script-src-elem", "connect-src", "font-src", "object-src"} & set(policy)
    assert policy.get("img-src", []) in ([], ["data:"])
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "private, no-store"


def test_the_pages_that_the_system_writes_need_no_more_than_that(reader) -> None:
    """No script, nothing loaded but pictures that are in them."""
    plan = {**example("plan"), "bucket": "bucket", "model": "flight_delays"}
    html = render({"plan": plan}, airflow="https://airflow.example/x")
    assert not re.search(r"<script|<link|<iframe|<form|\ssrc=\"(?!data:)", html)
    assert 'href="https://airflow.example/x/retraining/models/flight_delays/runs.html"' in html


@pytest.mark.parametrize(
    "path",
    [
        f"runs/{KEY}/overview.json",
        f"runs/{KEY}/upload.json",
        f"runs/{KEY}/failures/train.json",
        f"runs/{KEY}/failures/train-0.json",
        f"runs/{KEY}/failures/train-1.html",
        f"runs/{KEY}/failures/..%2f..%2fx-1.json",
        f"runs/{KEY}/failures/train-1.json%0a",
        f"monitor/{LOOK}/failures/plan-1.json",
        f"unplanned/{LOOK}/plan.json",
        f"runs/{KEY}/submit/train.json",
        f"runs/{KEY}/training%2Fmodel%2Ftrainer.json",
        f"runs/{KEY}/..%2f..%2f..%2fdepartures%2fruns%2f{KEY}%2fplan.json",
        f"runs/{KEY}/plan.json%00.html",
        f"runs/{KEY}/PLAN.json",
        f"runs/{KEY}/plan.html",
        f"runs/{KEY}/ledger.json",
        f"runs/..%2f..%2fdepartures%2fruns%2f{KEY}/plan.json",
        "runs/%2e%2e/plan.json",
        f"runs/{KEY}%0a/plan.json",
        f"runs/{KEY.replace('2013', '٢٠١٣')}/plan.json",
        f"spans/{KEY}/plan.json",
        f"golden/{KEY}/plan.json",
        f"../departures/runs/{KEY}/plan.json",
        f"monitor/{LOOK}/report.html",
        f"monitor/{LOOK}/plan.json",
        f"runs/{'2' * 10_000}/plan.json",
    ],
)
def test_a_forged_name_reaches_no_bucket(reader, path) -> None:
    """What is shown is a list of names; all other addresses are none."""
    assert reader.client.get(f"/models/flight_delays/{path}").status_code == 404
    assert reader.bucket.asked == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no document of that kind"),
        (b'{"kind": "decision", "model": "flight_delays"}', "no document of that kind"),
        (b'{"kind": "plan", "model": "departures", "secret": 1}', "a document of another model"),
        (b'{"kind": "plan"}', "a document of another model"),
        (b" " * (stored.MOST_BYTES + 1), "more than 16,000,000 bytes"),
    ],
    ids=["cut off", "deep", "a list", "another kind", "another model", "of nobody", "large"],
)
def test_a_document_that_is_not_what_its_name_says_is_refused_by_name(reader, data, words) -> None:
    """And nothing of it is shown."""
    reader.bucket.objects[f"{RUN}/plan.json"] = data
    answer = reader.client.get(f"{AT}/plan.json")
    assert answer.status_code == 500
    assert words in answer.text
    assert f"{RUN}/plan.json" in answer.text
    assert "secret" not in answer.text


def test_a_folder_names_what_is_there_and_leads_to_it(reader) -> None:
    """And back to the model."""
    page = reader.client.get(AT)
    assert page.status_code == 200
    assert "unsafe" not in page.headers["content-security-policy"]
    links = [urljoin(f"http://a{AT}", each) for each in re.findall(r'<li><a href="([^"]*)"', page.text)]
    assert links == [f"http://a{AT}/report.html", f"http://a{AT}/plan.json"]
    for link in links:
        assert reader.client.get(link.removeprefix("http://a")).status_code == 200
    over = [urljoin(f"http://a{AT}", each) for each in re.findall(r'href="(\.\.[^"]*)"', page.text)]
    assert over == ["http://a/models", "http://a/models/flight_delays"]


def test_what_was_not_written_is_said(reader) -> None:
    """A run that failed early has no page, a model without a run none of all runs."""
    del reader.bucket.objects[f"{RUN}/report.html"]
    del reader.bucket.objects["gs://bucket/flight_delays/runs.html"]
    for path in (f"{AT}/report.html", "/models/flight_delays/runs.html", f"/models/flight_delays/monitor/{LOOK}"):
        answer = reader.client.get(path)
        assert answer.status_code == 404
        for address in re.findall(r'href="(\.\.[^"]*)"', answer.text):
            assert urljoin(f"http://a{path}", address) in ("http://a/models", "http://a/models/flight_delays")


@pytest.mark.parametrize(
    ("folder", "kind"), [(folder, kind) for folder, kinds in pages.KINDS.items() for kind in kinds]
)
def test_each_document_is_shown_where_it_is_stored(reader, folder, kind) -> None:
    """As an earlier release stored it, too."""
    folders = {
        "runs": RUN,
        "monitor": f"{storage.monitors_uri('bucket', 'flight_delays')}/{LOOK}",
        "scoring": storage.scoring_uri("bucket", "flight_delays", KEY),
        "rollbacks": storage.rollback_uri("bucket", "flight_delays", LOOK),
        "walk_forward": storage.walk_forward_uri("bucket", "flight_delays", KEY),
    }
    uri = storage.document_uri(folders[folder], kind)
    (path,) = STORED.glob(f"{kind}.json")
    values = {**json.loads(path.read_text()), "model": "flight_delays"}
    reader.bucket.objects[uri] = json.dumps(values).encode()
    assert pages.path_of(uri).removeprefix("retraining") == f"/models/{ObjectAddress.parse(uri).path}"
    answer = reader.client.get(pages.path_of(uri).removeprefix("retraining"))
    assert answer.json() == values


def test_every_kind_of_document_is_shown_or_has_a_reason() -> None:
    """A new kind needs one of both."""
    shown = {kind for kinds in pages.KINDS.values() for kind in kinds}
    assert shown.isdisjoint(ELSEWHERE)
    assert shown | set(ELSEWHERE) == set(KINDS)
