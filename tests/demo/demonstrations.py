"""Looking at running demonstrations: their processes, and what they print."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


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


def read_until(demo: subprocess.Popen[str], marker: str) -> list[str]:
    """Return the lines that it prints up to the first with the marker."""
    lines: list[str] = []
    assert demo.stdout is not None
    for line in demo.stdout:
        lines.append(line.rstrip())
        if marker in line:
            return lines
    pytest.fail(f"no line with {marker!r} in:\n" + "\n".join(lines))
