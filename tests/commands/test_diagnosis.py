"""What a check comes to: by what it returns, and by what goes wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.api_core import exceptions

from retraining.commands.diagnosis import Check, MendableError, NotKnownError, Project, State, UnansweredError, examine
from retraining.commands.shell import Shell
from retraining.core.errors import SettingsError
from tests.support.fakes.cloud import FakeCloud

MEND = {"create": "create {project}", "grant": "grant {bucket}"}


def disabled(name: str) -> Exception:
    """What Google's APIs answer where one is not enabled."""
    reason = "type.googleapis.com/google.rpc.ErrorInfo"
    detail = {"@type": reason, "reason": "SERVICE_DISABLED", "metadata": {"service": name}}
    info = exceptions.error_details_pb2.ErrorInfo(reason="SERVICE_DISABLED", metadata={"service": name})
    return exceptions.Forbidden("not enabled", details=[detail], error_info=info)


def come_to(outcome: object, **mend: str):
    """What a check comes to that returns this, or raises it."""
    cloud = FakeCloud()

    def look(_: Project) -> str | None:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome  # type: ignore[return-value]  # what a row below has

    project = Project(Shell(connect=lambda: cloud, find_include=Path), Path())
    (finding,) = examine(project, [Check(name="it", look=look, **mend)])
    return (
        finding.state,
        finding.text,
        finding.command.replace(cloud.settings.project, "P").replace(cloud.settings.bucket, "B"),
    )


@pytest.mark.parametrize(
    ("outcome", "state", "text", "command"),
    [
        ("well", State.OK, "well", ""),
        (None, State.HIDDEN, "the account may not look", ""),
        (NotKnownError("ask another"), State.HIDDEN, "ask another", ""),
        (UnansweredError("no such permission"), State.UNKNOWN, "no such permission", ""),
        (MendableError("a", "b", "c", "mend it"), State.WRONG, "a: b. Expected c.", "mend it"),
        (SettingsError("a", "b", "c"), State.WRONG, "a: b. Expected c.", "create P"),
        (exceptions.NotFound("gone"), State.WRONG, "gone", "create P"),
        (exceptions.Forbidden("no"), State.WRONG, "no", "grant B"),
        (
            disabled("iam.googleapis.com"),
            State.WRONG,
            "not enabled",
            "gcloud services enable iam.googleapis.com --project=P",
        ),
        (exceptions.ServiceUnavailable("away"), State.UNKNOWN, "ServiceUnavailable", ""),
        (ValueError("of ours"), State.UNKNOWN, "ValueError: of ours", ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_a_check_comes_to(outcome, state, text, command):
    """With the command of what is wrong, and none for what is only not known."""
    found = come_to(outcome, **MEND)
    assert (found[0], found[2]) == (state, command)
    assert text in found[1]


def test_what_failed_blocks_what_needs_it():
    """What cannot be known does not."""

    def wrong(_: Project) -> str:
        raise SettingsError("a", "b")

    checks = [
        Check(name="hidden", look=lambda _: None),
        Check(name="wrong", look=wrong),
        Check(name="after hidden", look=lambda _: "well", needs=("hidden",)),
        Check(name="after wrong", look=lambda _: "well", needs=("hidden", "wrong")),
        Check(name="after that", look=lambda _: "well", needs=("after wrong",)),
    ]
    cloud = FakeCloud()
    found = examine(Project(Shell(connect=lambda: cloud, find_include=Path), Path()), checks)
    assert [each.state for each in found] == ["hidden", "wrong", "ok", "unknown", "unknown"]
    assert found[3].text == "not asked: needs wrong"
