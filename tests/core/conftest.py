"""Fixtures of the core's tests; the values they give are made in `small_model.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

# pytest runs with --import-mode=importlib, which puts no test folder on the path: the shared values are loaded by file.
_SPEC = importlib.util.spec_from_file_location("small_model", Path(__file__).with_name("small_model.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
small_model = importlib.util.module_from_spec(_SPEC)
sys.modules["small_model"] = small_model
_SPEC.loader.exec_module(small_model)


@pytest.fixture
def small_plan():
    """A live run of the small model."""
    return small_model.make_plan()
