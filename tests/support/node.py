"""Programs for Node that a test brings, with the packages of their lock."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# A download that stands still is begun again after half a minute; npm itself would wait for five.
NPM_CI = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-timeout=30000", "--fetch-retries=5")
ENVIRONMENT = dict(os.environ)
"""Of the process when tests were collected: a local cloud lays its own over it, whose proxy knows no registry."""


def install_program(source: Path, folder: Path) -> Path:
    """Return a copy of a program's folder with what its lock names."""
    shutil.copytree(source, folder)
    subprocess.run(NPM_CI, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, timeout=300)
    return folder
