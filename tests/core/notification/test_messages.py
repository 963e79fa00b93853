"""What people read: plain words, links and a way out; nothing of the data, of a person, or of a template's marks."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import Decision, Deployment, Ledger, Plan, Rollback
from retraining.core.notification import notices
from retraining.core.notification.messages import MOST_SUBJECT, render_message
from retraining.core.notification.notices import DagRun, Notice
from retraining.core.spec.notify import EVENTS
from tests.support.contracts import EXAMPLES

RUN = DagRun(base_url="https://airflow.example.com/", dag_id="retrain__flight_delays", run_id="manual__2013+1/2")
DOCS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


def example(name: str, **changes: Any) -> bytes:
    """A document of the contract's examples, with changes."""
    return json.dumps({**json.loads((EXAMPLES / f"{name}.json").read_text()), **changes}).encode()


PLAN = Plan.parse(example("plan__scheduled"))
DECISION = Decision.parse(example("decision__promote"))
LEDGER = {
    "outcome": "warn",
    "because": "skew",
    "cause": "skew:carrier",
    "causes": ["skew:carrier", "performance:carrier=UA"],
    "words": "secret words",
}


def ledger(**changes: Any) -> Ledger:
    """A row of the ledger."""
    return Ledger.parse(example("ledger__retrain", **{**LEDGER, **changes}))


def all_notices() -> dict[str, Notice]:
    """One of each kind that there is."""
    reject = Decision.parse(example("decision__reject"))
    stopped = Deployment.parse(example("deployment__nothing_changed", steps=[turned_back()]))
    made = {
        "failed": notices.of_failure("flight_delays", RUN, ["train"], ["evaluate"], "DataError", PLAN.run_uri),
        "died": notices.of_failure("flight_delays", RUN, ["train"], [], None, PLAN.run_uri),
        "ended": notices.of_failure("flight_delays", RUN, [], ["train"], None, ""),
        "maintain": notices.of_failure(None, RUN, ["delete"], [], "SettingsError", ""),
        "refused": notices.of_failure("flight_delays", RUN, ["plan"], [], "BudgetError", ""),
        "promoted": notices.of_decision(PLAN, DECISION, RUN),
        "rejected": notices.of_decision(PLAN, reject, RUN),
        "asked": notices.of_approval(PLAN, ["one"], RUN, "approve", timedelta(hours=12)),
        "turned_back": notices.of_deployment(PLAN, stopped, RUN),
        "rolled_back": notices.of_rollback(Rollback.parse(example("rollback__previous")), RUN),
        "stopped": notices.of_rollback(Rollback.parse(example("rollback__stopped")), RUN),
        "warned": notices.of_ledger(ledger(), RUN, "gs://bucket/m/monitor/x/ledger.json"),
        "ordered": notices.of_ledger(ledger(outcome="retrain"), RUN, "gs://bucket/m/monitor/x/ledger.json"),
        "spent": notices.of_ledger(ledger(outcome="warn", because="budget"), RUN, "gs://bucket/m/ledger.json"),
        "loop": notices.of_ledger(ledger(outcome="warn", because="loop_guard"), RUN, "gs://bucket/m/ledger.json"),
        "trial": notices.of_trial("flight_delays"),
    }
    return {name: notice for name, notice in made.items() if notice is not None}


def turned_back() -> dict[str, Any]:
    """A step of a ramp, whose gate failed."""
    return {
        "percent": 10,
        "start": "2013-11-20T03:00:00Z",
        "gates": [{"name": "errors", "passed": False, "words": "2.00% of 500 requests"}],
    }


def test_there_is_a_notice_of_each_event() -> None:
    """And a template that somebody uses."""
    assert len(all_notices()) == 16
    assert {notice.event for notice in all_notices().values()} == set(EVENTS)


def test_links_lead_to_airflow_and_nowhere_else() -> None:
    """Whichever cloud is behind it: run pages and ledger rows are pages of Airflow, for who may read the DAG."""
    addresses = {name: [link.address for link in notice.links] for name, notice in all_notices().items()}
    assert all(each.startswith("https://airflow.example.com/") for links in addresses.values() for each in links)
    page = "https://airflow.example.com/retraining/models"
    path = PLAN.run_uri.removeprefix(f"gs://{PLAN.bucket}/")
    for name in ("failed", "promoted", "asked", "turned_back"):
        assert f"{page}/{path}/report.html" in addresses[name]
    assert f"{page}/m/monitor/x/ledger.json" in addresses["warned"]


@pytest.mark.parametrize("name", all_notices())
def test_each_is_readable(name: str) -> None:
    """A short subject that names the model, a text, a way out, a heading of the run-book that is there; valid JSON."""
    notice = all_notices()[name]
    message = render_message(notice)
    assert message.subject.startswith(f"{notice.model or 'all models'}: ")
    assert len(message.subject) <= MOST_SUBJECT
    assert "\n" not in message.subject
    assert message.html.count("<p>") >= 4
    assert f"docs/operations.md#{notice.runbook}" in message.html
    headings = [line.lstrip("# ").lower().replace("?", "").replace(" ", "-") for line in DOCS.read_text().splitlines()]
    assert notice.runbook in headings
    assert message.post["text"] == message.subject
    assert [block["type"] for block in message.post["blocks"]] == ["header", "section", "context"]


def test_a_failure_says_what_and_where() -> None:
    """The task, what kind of error it was, and the run in Airflow."""
    message = render_message(all_notices()["failed"], "https://git.example.com/operations.md")
    assert "Failed: train." in message.html
    assert "examples are not fit" in message.html
    page = "https://airflow.example.com/dags/retrain__flight_delays/runs/manual__2013%2B1%2F2"
    assert f'<a href="{page}">DAG run</a>' in message.html
    assert "report.html" in message.html
    assert '<a href="https://git.example.com/operations.md#what-a-red-run-means">' in message.html
    assert f"<{page}|DAG run>" in message.post["blocks"][2]["elements"][0]["text"]


def test_an_approval_leads_to_its_answer() -> None:
    """Straight to the question, with the time there is."""
    message = render_message(all_notices()["asked"])
    answer = "/runs/manual__2013%2B1%2F2/tasks/approve/required_actions"
    assert answer in message.html
    assert "within 12 hours" in message.html
    assert "1 warning:" in message.html


def test_nothing_of_the_data_or_of_a_person_is_told() -> None:
    """No value of a slice, no sentence of the ledger, not who rolled back and why."""
    for name, notice in all_notices().items():
        message = render_message(notice)
        text = message.subject + message.html + json.dumps(message.post)
        for private in ("=UA", "secret words", "ada", "complaints", "manual by"):
            assert private not in text, (name, private)


def test_what_is_shown_is_no_template_and_no_mark() -> None:
    """Braces, HTML, Slack's mentions and line breaks come out as they went in."""
    evil = "{{ 7 * 7 }} <!channel> <script>alert(1)</script> & \r\nBcc: eve@example.com"
    notice = notices.of_failure("flight_delays", RUN, [evil], [], "DataError", "")
    message = render_message(notice)
    assert "<script>" not in message.html
    assert "{{ 7 * 7 }} &lt;!channel&gt;" in message.html
    shown = message.post["blocks"][1]["text"]["text"]
    assert "<!channel>" not in shown
    assert "&lt;!channel&gt;" in shown
    named = render_message(notices.of_failure("m", DagRun(base_url="", dag_id=evil, run_id=""), ["a"], [], None, ""))
    assert "\n" not in named.subject
    assert "\r" not in named.subject


def test_long_texts_are_cut_to_what_slack_takes() -> None:
    """150 letters in a heading, 3,000 in a section."""
    notice = notices.of_failure("flight_delays", RUN, ["t" * 5000], [], None, "")
    message = render_message(notice)
    assert len(message.post["blocks"][0]["text"]["text"]) <= 150
    assert len(message.post["blocks"][1]["text"]["text"]) <= 3000


def test_a_backfill_tells_nothing() -> None:
    """It records, and changes nothing."""
    assert notices.of_decision(PLAN, Decision.parse(example("decision__record")), RUN) is None


@pytest.mark.parametrize("because", ["hysteresis", "cooldown", "quiet_hours", "paused", "no_signal"])
def test_what_is_held_back_is_not_told(because: str) -> None:
    """It is when it is acted on."""
    for outcome in ("none", "warn") if because != "no_signal" else ("none",):
        assert notices.of_ledger(ledger(outcome=outcome, because=because), RUN, "gs://bucket/x") is None


def test_a_cause_is_over_when_nothing_is_exceeded() -> None:
    """Not when it is held back, and not when there was too little to judge."""
    assert notices.is_over(ledger(outcome="none", because="no_signal", cause=None, causes=[]))
    assert not notices.is_over(ledger(outcome="none", because="cooldown"))
    assert not notices.is_over(ledger(outcome="none", because="too_few_requests", cause=None, causes=[]))


def test_a_deployment_that_was_refused_by_a_person_is_no_rollback() -> None:
    """Nobody rolled anything back."""
    rejected = Deployment.parse(example("deployment__nothing_changed"))
    assert notices.of_deployment(PLAN, rejected, RUN) is None
