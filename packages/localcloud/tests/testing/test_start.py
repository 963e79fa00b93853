"""A local cloud from Python and from pytest: its own projects, its reset, and nothing left when its starter dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.local_cloud import LOCALCLOUD_PYTHON, localcloud_environ

PROGRAM = """
import os, sys, time
from localcloud.errors import LocalCloudError
from localcloud.testing import start
with start(spare_projects=2) as cloud:
    os.environ.update(cloud.environ)
    from google.cloud import bigquery, storage
    first, second = cloud.take_project(), cloud.take_project()
    bigquery.Client(project=first).create_dataset("sales")
    storage.Client(project=first).create_bucket("of-the-first")
    print("datasets", [each.dataset_id for each in bigquery.Client(project=first).list_datasets()],
          [each.dataset_id for each in bigquery.Client(project=second).list_datasets()], flush=True)
    storage.Client(project=cloud.project).bucket(cloud.bucket).blob("one").upload_from_string("1")
    cloud.reset()
    print("after", [each.dataset_id for each in bigquery.Client(project=first).list_datasets()],
          [each.name for each in storage.Client(project=first).list_buckets()],
          [each.name for each in storage.Client(project=cloud.project).list_blobs(cloud.bucket)], flush=True)
    try:
        cloud.take_project()
    except LocalCloudError as error:
        print("refused", error, flush=True)
    print("state", cloud.state_path, flush=True)
    if sys.argv[1:] == ["stay"]:
        time.sleep(600)
"""
TESTS = """
import os
import pytest
from google.cloud import bigquery, storage

@pytest.mark.parametrize("number", [1, 2])
def test_a_project_of_ones_own(localcloud, localcloud_project, number):
    client = bigquery.Client()
    assert client.project == localcloud_project
    assert list(client.list_datasets()) == []
    client.create_dataset("mine")

def test_the_named_bucket(localcloud):
    assert localcloud.bucket == "of-the-config"
    assert storage.Client(project=localcloud.project).bucket("of-the-config").exists()
    assert os.environ["MINE"] == "gs://of-the-config/mine"
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """The program above, in the local cloud's own environment."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return [str(LOCALCLOUD_PYTHON), str(path)]


def outside() -> dict[str, str]:
    """An environment that leads to no local cloud."""
    return {name: value for name, value in localcloud_environ().items() if name in ("PATH", "HOME", "PYTHONPATH")}


def is_gone(state_path: Path) -> bool:
    """Whether no process has a state directory in its command line, and the directory is away."""
    seen = subprocess.run(["ps", "-eo", "args"], text=True, capture_output=True, check=True).stdout
    return str(state_path) not in seen and not state_path.exists()


def test_projects_reset_and_the_end(program: list[str]) -> None:
    """Two projects know nothing of each other, a reset leaves neither table nor object, the end leaves nothing."""
    done = subprocess.run(program, env=outside(), text=True, capture_output=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert said["datasets"] == "['sales'] []"
    assert said["after"] == "[] [] []"
    assert "all projects are taken" in said["refused"]
    assert is_gone(Path(said["state"]))


def test_it_ends_with_a_starter_that_is_killed(program: list[str]) -> None:
    """By SIGKILL, after which no code of the starter runs: no process is left, and no memory taken."""
    with subprocess.Popen([*program, "stay"], env=outside(), text=True, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        state_path = next(Path(line.split()[1]) for line in starter.stdout if line.startswith("state"))
        os.kill(starter.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while not is_gone(state_path):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_the_fixtures(tmp_path: Path) -> None:
    """In a session of pytest with the plugin: one cloud, a project for each test, the file that the settings name."""
    (tmp_path / "test_mine.py").write_text(TESTS)
    (tmp_path / "cloud.json").write_text('{"bucket": "of-the-config", "variables": {"MINE": "gs://$bucket/mine"}}')
    settings = ["[pytest]", "localcloud_config = cloud.json", f"localcloud_python = {LOCALCLOUD_PYTHON}"]
    (tmp_path / "pytest.ini").write_text("\n".join(settings))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "localcloud.testing.plugin", "-p", "no:cacheprovider"]
    environ = outside()
    done = subprocess.run(command, cwd=tmp_path, env=environ, text=True, capture_output=True, check=False, timeout=240)
    assert "3 passed" in done.stdout, done.stdout[-3000:] + done.stderr
