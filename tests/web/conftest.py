"""A session of tests with an Airflow home of its own, and the page in it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

import pytest

# Before the first import of Airflow: nothing of this machine's Airflow is read or written.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-home-")
atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The application without documents, and a reader who is not logged in."""
    from tests.support.scenes.models_site import Site

    return Site(monkeypatch)
