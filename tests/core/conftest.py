"""Fixtures of the core's tests; the values they give are made in `tests/support/small_model.py`."""

from __future__ import annotations

import pytest

from tests.support import small_model


@pytest.fixture
def small_plan():
    """A live run of the small model."""
    return small_model.make_plan()
