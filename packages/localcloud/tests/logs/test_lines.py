"""A JSON line's severity and time become the entry's, in every form that Cloud Logging's agent reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from localcloud.logs.lines import Line, read_line

HALF_PAST_NS = 1_602_487_850_123_456_789
"""2020-10-12T07:30:50.123456789Z."""


@pytest.mark.parametrize(
    "fields",
    [
        {"time": "2020-10-12T07:30:50.123456789Z"},
        {"time": "2020-10-12T09:30:50.123456789+02:00"},
        {"timestamp": "2020-10-12T07:30:50.123456789Z"},
        {"timestamp": {"seconds": 1602487850, "nanos": 123456789}},
        {"timestampSeconds": 1602487850, "timestampNanos": 123456789},
    ],
    ids=str,
)
def test_a_time_becomes_the_entrys(fields: dict) -> None:
    """And is in the payload no more."""
    line = json.dumps({"message": "step 1", "loss": 0.5, **fields})
    assert read_line(line) == Line({"message": "step 1", "loss": 0.5}, None, HALF_PAST_NS)


@pytest.mark.parametrize(
    "fields",
    [
        {"time": "soon"},
        {"time": "2020-10-12T07:30:50"},
        {"time": 1602487850.5},
        {"time": "0001-01-01T00:00:00Z"},
        {"time": (datetime.now(UTC) + timedelta(days=2)).isoformat()},
        {"timestamp": {"seconds": "1602487850", "nanos": 0}},
        {"timestamp": {"seconds": 1602487850}},
        {"timestampSeconds": 1602487850},
        {"timestampSeconds": 10**30, "timestampNanos": 0},
        {"timestampSeconds": 1, "timestampNanos": -5},
    ],
    ids=str,
)
def test_what_is_no_time_that_an_entry_can_have_stays_in_the_payload(fields: dict) -> None:
    """The entry has the time at which the line came."""
    document = {"message": "step 1", **fields}
    assert read_line(json.dumps(document)) == Line(document)


def test_the_first_of_two_times_is_taken() -> None:
    """Of the agent's order; the other is payload."""
    fields = {"time": "2013-11-20T03:00:00Z", "timestamp": {"seconds": 1602487850, "nanos": 123456789}}
    assert read_line(json.dumps({"message": "x", **fields})) == Line(
        {"message": "x", "time": fields["time"]}, None, HALF_PAST_NS
    )


@pytest.mark.parametrize(
    ("text", "severity"),
    [('{"message": "x", "severity": "warning"}', "WARNING"), ('{"message": "x", "severity": "loud"}', None)],
)
def test_a_severity_becomes_the_entrys(text: str, severity: str | None) -> None:
    """If it is one."""
    assert read_line(text) == Line({"message": "x"}, severity)


@pytest.mark.parametrize("text", ["epoch 1", "{", "{}", "{x}", '{"loss": 1}', '{"message": 1}'])
def test_all_else_is_text(text: str) -> None:
    """As it was written."""
    assert read_line(text) == Line(text)
