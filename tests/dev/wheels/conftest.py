"""The packages, built once for the session from this checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wheels.build import WHEELS, build_all

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def uv() -> str:
    """The program that builds and installs."""
    found = shutil.which("uv") or str(ROOT / ".venv" / "uv" / "bin" / "uv")
    assert Path(found).is_file(), f"{found}: no such program. Run make setup"
    return found


@pytest.fixture(scope="session")
def wheels(uv: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each package."""
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("not a git checkout")
    return dict(zip(WHEELS, build_all(uv, tmp_path_factory.mktemp("wheels")), strict=True))


def run(command: list[str], folder: Path, **environ: str) -> str:
    """Run a program that sees nothing of this session's paths; return its output."""
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", **environ}
    done = subprocess.run(command, cwd=folder, env=clean, text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


PYTHON = sys.executable
