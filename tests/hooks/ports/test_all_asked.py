"""Nothing is promised by a port that no test of this folder asks for."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from retraining.hooks import ports

PORTS = [kind for _, kind in inspect.getmembers(ports, inspect.isclass) if kind.__module__ == ports.__name__]
SUITE = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
def test_each_method_is_asked(port: Any) -> None:
    """By its service and its name; of the whole cloud, each service."""
    service = re.sub("(?<!^)(?=[A-Z])", "_", port.__name__.removesuffix("Port")).lower()
    names = [name for name in vars(port) if not name.startswith("_")]
    prefix = "cloud" if service == "cloud" else f"cloud.{service}"
    assert names
    assert [name for name in names if f"{prefix}.{name}" not in SUITE] == []
