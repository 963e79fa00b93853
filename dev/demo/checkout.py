"""Where the demonstration finds what it runs."""

import os
from pathlib import Path

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
CLOUD_CONFIG_PATH = Path(__file__).with_name("localcloud.json")
PACKAGES_PATH = os.pathsep.join(
    str(REPOSITORY_PATH / folder) for folder in ("dev", "packages/localcloud/src", "packages/laptop/src")
)
"""PYTHONPATH of a process of the demonstration or of the local cloud."""
