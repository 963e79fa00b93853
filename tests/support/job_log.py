"""What the trainer logs: collected in this process, or read back from the lines of another one."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def collect_messages(lines: list[str]) -> Iterator[None]:
    """Append the message of each record of the trainer to `lines`."""
    handler, logger = logging.Handler(logging.INFO), logging.getLogger("trainer")
    handler.emit = lambda record: lines.append(record.getMessage())
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def messages(text: str) -> list[str]:
    """Return the messages of a process's output; a line that is no JSON object, as of a library, stays as it is."""
    return [json.loads(line)["message"] if line.startswith('{"severity"') else line for line in text.splitlines()]
