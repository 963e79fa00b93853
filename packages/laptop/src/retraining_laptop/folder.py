"""The folder that a story keeps everything in: one story at a time, and room on its disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from localcloud.errors import LocalCloudError

NEEDED_DISK_BYTES = 2 * 1024**3
ENDING_TIMEOUT_S = 60.0


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Be the only story of a folder, which is made if need be.

    Raises:
        LocalCloudError: Another one runs there, or the disk is nearly full.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / "demo.lock").open("a+") as lock:
        _hold(lock, path)
        _require_disk(path)
        yield


def _hold(lock: TextIO, path: Path) -> None:
    """Take the lock; that of a story whose starter is gone already is waited for while it ends."""
    deadline = time.monotonic() + ENDING_TIMEOUT_S
    while not _locked(lock):
        lock.seek(0)
        holder = lock.read().strip()
        if not _is_gone(holder) or time.monotonic() > deadline:
            raise LocalCloudError(
                str(path),
                found=f"a demonstration is already running here (pid {holder or '?'})",
                expected="one at a time",
                way_out="Use its Airflow, or end it with Ctrl-C where it runs, then try again.",
            )
        time.sleep(0.2)
    lock.truncate(0)
    lock.write(f"{os.getppid()}\n")
    lock.flush()


def _locked(lock: TextIO) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _is_gone(pid: str) -> bool:
    return pid.isdigit() and not Path(f"/proc/{pid}").exists()


def _require_disk(path: Path) -> None:
    free = shutil.disk_usage(path).free
    if free < NEEDED_DISK_BYTES:
        raise LocalCloudError(
            str(path),
            found=f"{free / 1e9:.1f} GB free on its disk",
            expected=f"at least {NEEDED_DISK_BYTES / 1e9:.0f} GB",
            way_out="Free some space (this folder may be removed whole), then try again.",
        )
