"""Looking at running demonstrations: their processes, and what they print."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from localcloud.supervision.processes import descendants


def processes_of(home: Path) -> list[str]:
    """Return the command lines of living processes whose command or environment names the folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if folder.name != str(os.getpid()) and str(home).encode() in command + (folder / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it ended while we looked, or is another user's
    return found


def family_of(demo: subprocess.Popen[str]) -> dict[int, str]:
    """Return when each process that descends from it began, by pid.

    The environment does not tell all of them: Airflow's workers write their titles over theirs.
    """
    return {pid: begun for pid in descendants(demo.pid) if (begun := _begun(pid))}


def survivors(family: dict[int, str]) -> list[int]:
    """Return which of them are still there; a pid that another process has by now is not."""
    return [pid for pid, begun in family.items() if _begun(pid) == begun]


def _begun(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None if it is gone, or dead and not yet reaped."""
    try:
        state, *fields = (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if state == "Z" else fields[18]


def read_until(demo: subprocess.Popen[str], marker: str) -> list[str]:
    """Return the lines that it prints up to the first with the marker."""
    lines: list[str] = []
    assert demo.stdout is not None
    for line in demo.stdout:
        lines.append(line.rstrip())
        if marker in line:
            return lines
    pytest.fail(f"no line with {marker!r} in:\n" + "\n".join(lines))
