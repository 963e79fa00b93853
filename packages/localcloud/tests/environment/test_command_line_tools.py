"""gcloud and bq, where they are installed, by the environment alone."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from google.cloud import bigquery, storage

pytestmark = [
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]


def run(local_cloud, *command: str) -> str:
    environ = {name: value for name, value in {**os.environ, **local_cloud.env}.items() if value}
    return subprocess.run(command, env=environ, text=True, capture_output=True, check=True, timeout=120).stdout


def test_gcloud_storage(local_cloud):
    """Lists and reads an object."""
    storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob("tools/a.txt").upload_from_string(
        "hello"
    )
    assert f"gs://{local_cloud.bucket}/tools/a.txt" in run(
        local_cloud, "gcloud", "storage", "ls", f"gs://{local_cloud.bucket}/tools/"
    )
    assert run(local_cloud, "gcloud", "storage", "cat", f"gs://{local_cloud.bucket}/tools/a.txt") == "hello"


def test_gcloud_storage_leaves_what_is_excluded(local_cloud, tmp_path):
    """What `--exclude` names is neither brought nor removed: a repository's script of deployment rests on it."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    for name in ("models/gone.yaml", "teams/growth/models/a.yaml", "old/teams/b.yaml"):
        bucket.blob(f"synced/{name}").upload_from_string("there")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "new.yaml").write_text("new")
    options = ("--recursive", "--delete-unmatched-destination-objects", "--exclude", "^teams/")
    run(local_cloud, "gcloud", "storage", "rsync", *options, str(tmp_path), f"gs://{local_cloud.bucket}/synced")
    left = sorted(blob.name.removeprefix("synced/") for blob in bucket.list_blobs(prefix="synced/"))
    assert left == ["models/new.yaml", "teams/growth/models/a.yaml"]


@pytest.mark.skipif(shutil.which("bq") is None, reason="bq is not installed")
def test_bq_query(local_cloud):
    """Runs a query."""
    bigquery.Client(project=local_cloud.project).create_dataset("tools", exists_ok=True)
    answer = run(local_cloud, "bq", "--format=csv", "query", "--nouse_legacy_sql", "SELECT 6 * 7 AS answer")
    assert answer.split() == ["answer", "42"]
