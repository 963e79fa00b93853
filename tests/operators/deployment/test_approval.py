"""Asking a person: how long, and what no answer means, on the newest Airflow and on the floor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import pytest
from airflow.providers.standard.operators import hitl

from retraining.operators.deployment import approval
from retraining.operators.deployment.approval import RequestApprovalOperator
from tests.support.fakes.cloud import FakeCloud


class FakeRecord:
    """A run's record that has every document."""

    def __init__(self, *_: object) -> None:
        pass

    def read_document(self, kind: type) -> object:
        """Return something of that kind."""
        return SimpleNamespace(kind=kind, model="flight_delays")


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> RequestApprovalOperator:
    """The task of a run whose decision is to promote."""
    monkeypatch.setattr(RequestApprovalOperator, "record", lambda *_: FakeRecord())
    monkeypatch.setattr(approval, "reason_against", lambda *_: None)
    monkeypatch.setattr(hitl, "upsert_hitl_detail", create_autospec(vars(hitl)["upsert_hitl_detail"]))
    return RequestApprovalOperator(
        task_id="approve", subject="Deploy?", answer_within=timedelta(hours=12), run_uri="x", cloud=FakeCloud
    )


def waits_until(stopped: Any) -> datetime:
    """When the wait ends that the operator asked for: parked (3.3) or deferred to a trigger (before)."""
    if hasattr(stopped, "trigger"):
        return stopped.trigger.timeout_datetime
    return datetime.now(UTC) + stopped.timeout


def test_it_waits_as_long_as_it_was_told_and_no_longer(ask: RequestApprovalOperator) -> None:
    """Not forever: the next run of the model would wait behind it."""
    context: Any = {"task_instance": SimpleNamespace(id="1"), "ti": SimpleNamespace(id="1")}
    with pytest.raises(BaseException) as stopped:  # noqa: PT011 - TaskAwaitingInput or TaskDeferred, by release
        ask.execute(context)
    assert type(stopped.value).__name__ in ("TaskAwaitingInput", "TaskDeferred")
    left = waits_until(stopped.value) - datetime.now(UTC)
    assert timedelta(hours=11, minutes=59) < left <= timedelta(hours=12)
    assert ask.defaults == ["Reject"]
