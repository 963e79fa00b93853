"""When and where something was measured, as results keep it."""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable
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
