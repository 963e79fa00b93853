"""A program's line on its way to an entry, as Cloud Logging's agent reads it.

In: the line's text. Out: what the entry says, with the severity and the time that the line names for it. Fields of a
JSON line with a meaning of their own: https://cloud.google.com/logging/docs/agent/logging/configuration#special-fields.
Taken are `severity` and the time, as `time` (RFC 3339), `timestamp` (`seconds` and `nanos`) or `timestampSeconds` with
`timestampNanos`; a field that is taken is in the payload no more.
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from localcloud.logs.store import SEVERITIES

Message = str | dict[str, Any]
_AHEAD_NS = 24 * 3600 * 10**9
"""Cloud Logging takes no entry that is further in the future."""


class Line(NamedTuple):
    """What an entry is made of; None: the line does not say it."""

    message: Message
    severity: str | None = None
    timestamp_ns: int | None = None


def read_line(text: str) -> Line:
    """Return what a line says: a JSON object with a `message` is structured, everything else is text."""
    document: Any = None
    if text.startswith("{") and text.endswith("}"):
        try:
            document = json.loads(text)
        except ValueError:
            return Line(text)
    if not isinstance(document, dict) or not isinstance(document.get("message"), str):
        return Line(text)
    severity = str(document.pop("severity", "")).upper()
    return Line(document, severity if severity in SEVERITIES else None, _take_time(document))


def _take_time(document: dict[str, Any]) -> int | None:
    """Take the time out of a payload, in nanoseconds since 1970; what is none that an entry can have stays there."""
    for names in (("timestamp",), ("timestampSeconds", "timestampNanos"), ("time",)):
        moment = _moment(*map(document.get, names))
        if moment is not None and 0 <= moment <= time.time_ns() + _AHEAD_NS:
            for name in names:
                del document[name]
            return moment
    return None


def _moment(*values: object) -> int | None:
    try:
        match values:
            case [str(text)]:
                read = Timestamp()
                read.FromJsonString(text)
                return int(read.ToNanoseconds())
            case [{"seconds": int(seconds), "nanos": int(nanos)}] | [int(seconds), int(nanos)]:
                return int(Timestamp(seconds=seconds, nanos=nanos).ToNanoseconds())
    except ValueError:  # of another form, or out of range
        return None
    return None
