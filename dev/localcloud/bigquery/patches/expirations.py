"""When tables expire: a small file beside the database, and the sweep that drops what is due."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


class Expirations:
    """Expiration times by full table name (`project.dataset.table`), in milliseconds since 1970 UTC."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._path = path
        self._now_ms = now_ms
        self._times: dict[str, int] = json.loads(path.read_bytes()) if path.exists() else {}

    def set(self, name: str, expires_ms: int | None) -> None:
        """Note when a table expires; None: never."""
        before = self._times.pop(name, None)
        if expires_ms is not None:
            self._times[name] = expires_ms
        if before != expires_ms:
            self._write()

    def get(self, name: str) -> int | None:
        """Give when a table expires, None for never."""
        return self._times.get(name)

    def take_due(self) -> list[str]:
        """Give the tables whose time has come, and forget them."""
        due = sorted(name for name, time in self._times.items() if time <= self._now_ms())
        for name in due:
            del self._times[name]
        if due:
            self._write()
        return due

    def _write(self) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(self._times, indent=2, sort_keys=True) + "\n")
        temporary.replace(self._path)
