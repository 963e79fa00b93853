"""The job's log: from `logging`'s records to lines that Cloud Logging takes from a container.

Progress goes to standard output, warnings and errors to standard error: a JSON object per line, which becomes an entry
with that severity (https://cloud.google.com/logging/docs/structured-logging); plain text where a person reads along on
a terminal. Modules ask `logging.getLogger(__name__)`, and know nothing of this.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime, timezone

_MOST_CHARACTERS = 30_000  # an entry of Cloud Logging takes 256 KB


class CloudFormatter(logging.Formatter):
    """Makes a record one line of JSON, with a traceback in its message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return severity, message and time as Cloud Logging names them."""
        message = super().format(record)
        entry = {
            "severity": record.levelname,
            "message": message if len(message) <= _MOST_CHARACTERS else message[: _MOST_CHARACTERS - 1] + "…",
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
        }
        return json.dumps(entry)


@contextlib.contextmanager
def log_to_streams() -> Iterator[None]:
    """Write the trainer's records to this process's streams inside the block."""
    logger = logging.getLogger("trainer")
    progress, trouble = logging.StreamHandler(sys.stdout), logging.StreamHandler(sys.stderr)
    progress.addFilter(lambda record: record.levelno < logging.WARNING)
    trouble.setLevel(logging.WARNING)
    for handler in (progress, trouble):
        handler.setFormatter(logging.Formatter() if handler.stream.isatty() else CloudFormatter())
        logger.addHandler(handler)
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False  # TensorFlow's libraries may have a handler of their own at the root
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        logger.removeHandler(progress)
        logger.removeHandler(trouble)
