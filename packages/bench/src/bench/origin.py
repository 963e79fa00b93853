"""When and where something was measured, as results keep it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def with_origin(measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what is measured, when and where, and the seconds that it took."""
    start = time.monotonic()
    return measured() | {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "seconds": round(time.monotonic() - start),
    }


def measure_and_keep(
    about: str | None, measure: Callable[[], dict[str, Any]], table: Callable[[Mapping[str, Any]], str], path: Path
) -> int:
    """Be a program without options: measure, keep the result with its origin, and print its table.

    Args:
        about: For `--help`.
        measure: Gives the result.
        table: Makes the docs' table of it.
        path: Of the JSON file.
    """
    argparse.ArgumentParser(description=about).parse_args()
    found = with_origin(measure)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(found))
    return 0
