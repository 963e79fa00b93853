"""Programs of other environments, run against the local cloud by its environment variables alone."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.support.local_cloud import REPOSITORY_PATH, LocalCloud

PATIENCE_S = 300


def run_program(local_cloud: LocalCloud, program: str, *command: str, cwd: Path | None = None, **more: str) -> str:
    """Run a program below `.venv` (or, with a whole path, of this machine); return its output.

    Args:
        more: Further environment variables.
    """
    path = REPOSITORY_PATH / ".venv" / program
    if not path.exists():
        pytest.skip(f"{path} is not there: make test-clients makes it")
    environ = {name: value for name, value in {**os.environ, **local_cloud.env, **more}.items() if value}
    done = subprocess.run([path, *command], env=environ, text=True, capture_output=True, timeout=PATIENCE_S, cwd=cwd)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout


def run_script(local_cloud: LocalCloud, environment: str, script: str) -> None:
    """Run Python of an environment, with PROJECT, REGION, BUCKET, FOLDER in it, and an ID of its own."""
    identity = uuid.uuid4().hex[:12]
    names = {"PROJECT": local_cloud.project, "REGION": local_cloud.region, "BUCKET": local_cloud.bucket}
    names |= {"ID": identity, "FOLDER": f"clients/{identity}"}
    begin = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    run_program(local_cloud, f"{environment}/bin/python", "-c", begin + script)
