"""Where the benchmarks find what they measure."""

import os
from pathlib import Path

REPOSITORY_PATH = Path(__file__).resolve().parents[4]
PACKAGE_DATA = REPOSITORY_PATH / "plugins" / "retraining" / "package_data"
PACKAGES_PATH = os.pathsep.join(
    str(REPOSITORY_PATH / folder)
    for folder in ("dev", "packages/localcloud/src", "packages/laptop/src", "packages/bench/src")
)
"""PYTHONPATH of a process that needs the demonstration, the local cloud or the benchmarks."""
CHECKOUT_PATH = os.pathsep.join((PACKAGES_PATH, str(REPOSITORY_PATH)))
"""The same with the trainer."""
