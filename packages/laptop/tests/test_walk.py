"""From a bare environment to a prediction by the two commands of the README, with no file of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_port
from wheels.build import build_all

ROOT = Path(__file__).resolve().parents[3]
UV = ROOT / ".venv" / "uv" / "bin" / "uv"


def run(words: list[str], folder: Path, environ: dict[str, str]) -> str:
    """Run a command; return all that it said."""
    done = subprocess.run(words, cwd=folder, env=environ, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_two_commands_from_nothing_to_a_prediction(tmp_path: Path) -> None:
    """The example of a new repository becomes champion and answers; the same night again runs nothing."""
    wheels = tmp_path / "wheels"
    build_all(str(UV), wheels)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", "--no-project", "--python", sys.executable, tmp_path / "venv"], check=True)
    locked = [UV, "pip", "sync", "--quiet", "--require-hashes", "--python", python, ROOT / "requirements.txt"]
    subprocess.run(locked, check=True)
    installed = [UV, "pip", "install", "--quiet", "--python", python, "--find-links", wheels, "retraining-laptop"]
    subprocess.run(installed, check=True)
    kept = ("HOME", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "TMPDIR")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    environ |= {"PATH": f"{python.parent}:/usr/bin:/bin", "PIP_FIND_LINKS": str(wheels)}

    run(["retraining", "init", "our-models"], tmp_path, environ)
    team = tmp_path / "our-models"
    demo = ["retraining", "demo", "--once", "--port", str(free_port())]
    told = run(demo, team, environ)
    assert "making the environment trainer" in told
    assert "-> it answers 0." in told
    assert "decision   Promoted" in told
    assert not [line for line in told.splitlines() if str(ROOT) in line]

    again = run(demo, team, environ)
    assert "making the environment" not in again
    assert "has succeeded for 2026-01-16T03:00:00Z before" in again
    assert "-> it answers 0." in again
