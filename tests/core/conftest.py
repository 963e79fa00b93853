"""Fixtures of the core's tests; the values they give are made in `small_model.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest runs with --import-mode=importlib, which puts no test folder on the path: shared values lie beside this file.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def small_plan():
    """A live run of the small model."""
    import small_model

    return small_model.make_plan()
