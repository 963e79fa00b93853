"""Log lines of a job from Cloud Logging: every one once, the new ones first known.

In: a job id and a cursor. Out: lines and the next cursor. A line may become visible after a younger one, so each read
goes back `OVERLAP_S` and leaves out what was seen.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.types import LogEntry

OVERLAP_S = 30
PAGE_SIZE = 1000
_CRITICAL = dict.fromkeys(("CRITICAL", "ALERT", "EMERGENCY"), logging.CRITICAL)
_LEVELS = {"WARNING": logging.WARNING, "ERROR": logging.ERROR, **_CRITICAL}
MAX_LINES = 10_000
MAX_BYTES = 20_000_000
"""Of one read, in a worker's memory; the next read goes on behind them."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a job. `task` is the replica (`workerpool0-0`) or the service itself."""

    time: datetime
    severity: str
    task: str
    text: str

    @property
    def level(self) -> int:
        """The severity as a level of `logging`; what says less than a warning is INFO, which Airflow shows."""
        return _LEVELS.get(self.severity, logging.INFO)


@dataclass(kw_only=True)
class Cursor:
    """How far a job's lines were read: the newest time, and which of the last `OVERLAP_S` seconds were seen."""

    newest: datetime | None = None
    seen: dict[str, datetime] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as text, to be kept between two pokes."""
        newest = self.newest.isoformat() if self.newest else None
        return json.dumps({"newest": newest, "seen": {key: time.isoformat() for key, time in self.seen.items()}})

    @classmethod
    def from_json(cls, text: str | bytes) -> Cursor:
        """Read what `to_json` gave.

        Raises:
            ContractError: It is something else.
        """
        where = "the cursor of a job's lines"
        values = read_object(text, where)
        try:
            newest = datetime.fromisoformat(values["newest"]).astimezone(UTC) if values["newest"] else None
            seen = {key: datetime.fromisoformat(time).astimezone(UTC) for key, time in values["seen"].items()}
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ContractError(where, f"no cursor ({error!r})", "newest and seen") from error
        return cls(newest=newest, seen=seen)

    def take(self, key: str, time: datetime) -> bool:
        """Note an entry; False when it was noted before."""
        if key in self.seen:
            return False
        self.seen[key] = time
        self.newest = max(self.newest or time, time)
        return True

    def knows(self, key: str) -> bool:
        """Return whether an entry was noted before."""
        return key in self.seen

    def since(self) -> datetime | None:
        """Return where the next read begins; forgets what lies before it."""
        if self.newest is None:
            return None
        start = self.newest - timedelta(seconds=OVERLAP_S)
        self.seen = {key: time for key, time in self.seen.items() if time >= start}
        return start


class JobLogs:
    """Cloud Logging, for the lines of Vertex AI's jobs.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def read_new(self, job_id: str, cursor: Cursor) -> list[Line]:
        """Return the lines that were not read before, in order of time.

        Moves the cursor. At most `MAX_LINES` or `MAX_BYTES`.

        Args:
            job_id: Last part of the job's name.
            cursor: Of this job; a new one begins with the first line.
        """
        conditions = ['resource.type="ml_job"', f'resource.labels.job_id="{job_id}"']
        since = cursor.since()
        if since is not None:
            conditions.append(f'timestamp>="{since.isoformat()}"')
        entries = call(lambda: self._unread(" AND ".join(conditions), cursor))
        return [_line(entry) for entry in entries if cursor.take(_key(entry), _time(entry))]

    def _unread(self, condition: str, cursor: Cursor) -> list[Any]:
        entries, size = [], 0
        for entry in self._entries(condition):
            if cursor.knows(_key(entry)):
                continue
            entries.append(entry)
            size += len(entry.text_payload or str(entry.json_payload or ""))
            if len(entries) >= MAX_LINES or size >= MAX_BYTES:
                break
        return entries

    def _entries(self, condition: str) -> Iterator[Any]:
        request = {
            "resource_names": [f"projects/{self._session.project}"],
            "filter": condition,
            "order_by": "timestamp asc",
            "page_size": PAGE_SIZE,
        }
        yield from self._client.list_log_entries(request=request, retry=None)

    @cached_property
    def _client(self) -> LoggingServiceV2Client:
        from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

        from retraining.hooks.transports import grpc_client

        client: LoggingServiceV2Client = grpc_client(LoggingServiceV2Client, self._session)
        return client


def _key(entry: LogEntry) -> str:
    text = f"{entry.log_name}|{_time(entry).isoformat()}|{entry.insert_id}"
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def _time(entry: LogEntry) -> datetime:
    time: datetime = entry.timestamp
    return datetime.fromtimestamp(time.timestamp(), UTC)


def _line(entry: LogEntry) -> Line:
    labels = entry.resource.labels
    payload = dict(entry.json_payload or {})
    text = entry.text_payload or payload.get("message") or json.dumps(payload, default=str)
    return Line(
        time=_time(entry), severity=_severity(entry), task=labels.get("task_name", "service"), text=str(text).rstrip()
    )


def _severity(entry: LogEntry) -> str:
    from google.logging.type.log_severity_pb2 import LogSeverity

    return str(LogSeverity.Name(int(entry.severity)))  # an enum in some releases of the library, a number in others
