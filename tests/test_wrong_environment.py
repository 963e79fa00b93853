"""A test that is started with a Python that cannot run it says which one can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_message_has_the_command_that_works() -> None:
    """Not an ImportError out of a conftest; the command names the environment and the test."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/trainer/test_task.py"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode == 4
    assert "Traceback" not in done.stdout + done.stderr
    assert "this Python has no tensorflow" in done.stderr
    assert "make test-one TEST=tests/trainer/test_task.py" in done.stderr
