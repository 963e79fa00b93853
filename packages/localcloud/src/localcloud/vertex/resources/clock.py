"""The time that predictions are stamped with: the wall clock's, or one that was given.

A replay of the past asks an endpoint now and wants its request log, and what Cloud Monitoring measures of it, to say
when it was asked then. Everything else keeps the wall clock: a resource, a job and an operation are made when they are.

Comes in: documents from `/clock`, `{"now": "2013-11-20T03:00:00Z"}`. Goes out: the time. It stands still until another
one is given; a file keeps it over a restart.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from localcloud.vertex.resources.store import now
from localcloud.vertex.wire.errors import InvalidArgument

_EXAMPLE = '{"now": "2013-11-20T03:00:00Z"}'


class PredictionClock:
    """The clock of the endpoints' log and measurements.

    Args:
        path: A JSON file; there is none while the wall clock holds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._given = _parse(json.loads(path.read_bytes())) if path.exists() else None

    def now(self) -> datetime.datetime:
        """Return the time that holds, UTC."""
        return self._given or now()

    def set_time(self, document: object) -> dict[str, Any]:
        """Let a given time hold; return what holds.

        Raises:
            InvalidArgument: The document names no time with a zone.
        """
        self._given = _parse(document)
        self._path.write_text(json.dumps({"now": self._given.isoformat()}) + "\n")
        return self.describe()

    def reset(self) -> None:
        """Let the wall clock hold again."""
        self._path.unlink(missing_ok=True)
        self._given = None

    def describe(self) -> dict[str, Any]:
        """Return the time, and whether it was given."""
        return {"now": self.now().isoformat(), "given": self._given is not None}


def _parse(document: object) -> datetime.datetime:
    text = document.get("now") if isinstance(document, dict) else None
    try:
        given = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        given = None
    if given is None or given.tzinfo is None:
        raise InvalidArgument(
            f"clock: found {document!r}. Expected an instant with a zone, as in {_EXAMPLE}.", field="now"
        )
    return given.astimezone(datetime.UTC)
