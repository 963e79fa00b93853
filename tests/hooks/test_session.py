"""Patience with transient errors, one clear message for the others."""

from __future__ import annotations

import pytest
import requests
from google.api_core import exceptions

from retraining.core.errors import SettingsError
from retraining.hooks import session


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits are noted, not waited."""
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    return waits


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ServiceUnavailable("503"),
        exceptions.DeadlineExceeded("504"),
        exceptions.TooManyRequests("429"),
        exceptions.InternalServerError("500"),
        exceptions.BadGateway("502"),
        exceptions.Unknown("Stream removed"),
        ConnectionResetError("reset"),
        requests.exceptions.ConnectionError("refused"),
        requests.exceptions.ReadTimeout("slow"),
        requests.exceptions.ChunkedEncodingError("cut off"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_transient_errors_are_retried_with_growing_waits(no_waiting, error) -> None:
    """Two failures, then the answer."""
    answers = iter([error, error])

    def ask() -> str:
        if failure := next(answers, None):
            raise failure
        return "answer"

    assert session.call(ask) == "answer"
    assert all(0 <= wait_s <= longest_s for wait_s, longest_s in zip(no_waiting, (0.5, 1.0), strict=True))


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (exceptions.DeadlineExceeded("504"), True),
        (exceptions.ServiceUnavailable("503"), True),
        (exceptions.InternalServerError("500"), True),
        (exceptions.DataLoss("lost"), True),
        (exceptions.Cancelled("499"), True),
        (ConnectionResetError("reset"), True),
        (exceptions.TooManyRequests("429"), False),
        (exceptions.InvalidArgument("400"), False),
        (exceptions.PermissionDenied("403"), False),
        (exceptions.Aborted("409"), False),
        (ValueError("no such field"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_only_a_refusal_is_sure_to_have_changed_nothing(error, may) -> None:
    """A create without an answer, or with one of trouble, may be done yet."""
    assert session.may_have_worked(error) is may


def test_other_errors_are_not_retried(no_waiting) -> None:
    """Asking again would say the same."""

    def ask() -> None:
        raise exceptions.PermissionDenied("no")

    with pytest.raises(exceptions.PermissionDenied):
        session.call(ask)
    assert no_waiting == []


def test_patience_ends() -> None:
    """The last transient error surfaces."""

    def ask() -> None:
        raise exceptions.ServiceUnavailable("down")

    with pytest.raises(exceptions.ServiceUnavailable):
        session.call(ask, timeout_s=0.1)


@pytest.mark.parametrize(
    ("error", "way_out"),
    [
        (exceptions.Forbidden("role missing"), "role"),
        (exceptions.NotFound("no dataset"), "RETRAINING_DATASET"),
        (exceptions.InvalidArgument("bad machine"), "clear the task"),
    ],
)
def test_permanent_errors_have_a_way_out(error, way_out: str) -> None:
    """What Google said, and what to do."""
    explained = session.explain(error)
    assert isinstance(explained, SettingsError)
    assert error.message in str(explained)
    assert way_out in str(explained)


@pytest.mark.parametrize(
    "error",
    [exceptions.ServiceUnavailable("x"), exceptions.TooManyRequests("x"), KeyError("x"), exceptions.Conflict("x")],
)
def test_what_may_pass_later_is_not_explained_away(error) -> None:
    """Airflow's retry gets its chance."""
    assert session.explain(error) is None
