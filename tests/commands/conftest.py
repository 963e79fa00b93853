"""What a shell's tests start from: the small model's files, and this machine's cloud, which is the local one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from retraining.hooks.cloud import OwnCloud
from tests.support.small_model import SPEC_YAML, SQL


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """The small model's files."""
    (tmp_path / "models").mkdir()
    (tmp_path / "sql" / "late").mkdir(parents=True)
    (tmp_path / "models" / "late.yaml").write_text(SPEC_YAML, encoding="utf-8")
    (tmp_path / "sql" / "late" / "examples.sql").write_text(SQL, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def own_cloud(local_cloud):
    """All services, as this machine's own credentials may use them; the dataset of the settings is there."""
    from google.cloud import bigquery

    bigquery.Client(project=local_cloud.project).create_dataset(local_cloud.dataset, exists_ok=True)
    return OwnCloud()


@pytest.fixture
def unique() -> str:
    """A name of this test's own."""
    return f"t{uuid.uuid4().hex[:12]}"
