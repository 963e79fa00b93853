"""A ramp on the run's page and in the shell: each share with its gates and their numbers."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from retraining.core.documents import Deployment, ShadowTraffic
from retraining.core.promotion import ramp, shadow
from retraining.core.report.page import render
from retraining.core.spec.deployment import Canary
from tests.support.contracts import EXAMPLES

NOON = datetime(2013, 11, 20, 12, tzinfo=UTC)


def test_the_page_shows_each_gate_of_each_share() -> None:
    """With what was seen; what was not judged says so."""
    documents = {
        kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text())
        for kind, what in (("plan", "scheduled"), ("deployment", "champion"))
    }
    page = render(documents)
    assert '<td class="n">10 %</td><td>03:57</td><td>requests</td><td>passed</td>' in page
    assert "<td>answers</td><td>not judged</td>" in page
    assert "1.03 times that of before" in page
    assert "Tried before on <code>late-staging</code>" in page


def test_the_page_shows_what_requests_of_the_last_day_came_to() -> None:
    """Before the first share; nothing where none were sent."""
    documents = {
        kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text())
        for kind, what in (("plan", "scheduled"), ("deployment", "champion"))
    }
    assert "Requests of the last day" not in render(documents)
    found = ShadowTraffic(until=NOON, last_sent=NOON, requests=0, missing="there is no request log (p.d.t)")
    shown = shadow.judged(found, shadow.judge_shadow(Canary(), found)).model_dump(mode="json", by_alias=True)
    documents["deployment"]["staging"]["shadow"] = shown
    page = render(documents)
    assert "Requests of the last day, without a user" in page
    assert "<td>requests</td><td>not judged</td>" in page
    assert "not judged: there is no request log (p.d.t)" in page


def test_the_shell_has_a_share_on_a_line() -> None:
    """The names of its gates, and what came of them."""
    stored = Deployment.parse((EXAMPLES / "deployment__champion.json").read_bytes())
    found = [ramp.outcomes(step) for step in stored.steps]
    assert [each.split(", ") for each in found] == [
        ["requests passed", "errors passed", "latency passed", "answers not judged"]
    ]
