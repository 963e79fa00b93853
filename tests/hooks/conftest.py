"""The hooks against the local cloud, through Google's own clients."""

from __future__ import annotations

import os
import tempfile
import uuid

import pytest

# Before the first import of Airflow: nothing of this machine's Airflow is read or written.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-home-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"


@pytest.fixture(scope="session")
def local_hooks(local_cloud):
    """All hooks, with the credentials of the local cloud's Airflow connection; the dataset of the settings is there."""
    from google.cloud import bigquery

    from retraining.hooks.cloud import Cloud

    bigquery.Client(project=local_cloud.project).create_dataset(local_cloud.dataset, exists_ok=True)
    return Cloud()


@pytest.fixture
def cloud(local_hooks):
    """The same."""
    return local_hooks


@pytest.fixture
def folder(local_cloud) -> str:
    """A folder of this test's own."""
    return f"gs://{local_cloud.bucket}/tests/{uuid.uuid4().hex}"


@pytest.fixture
def unique() -> str:
    """A name of this test's own."""
    return f"t{uuid.uuid4().hex[:12]}"
