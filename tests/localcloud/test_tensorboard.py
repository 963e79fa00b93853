"""TensorBoard over several runs of a model, from the bucket, by the documented command."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.ports import free_port

REPOSITORY = Path(__file__).resolve().parents[2]
KEYS = ("20131119t030000z-0a1b2c3d4e5f", "20131120t030000z-0a1b2c3d4e5f")
_WRITE = """
import sys
import tensorflow as tf
for uri in sys.argv[1:]:
    with tf.summary.create_file_writer(uri).as_default():
        tf.summary.scalar("loss", 0.5, step=1)
"""


@pytest.mark.long
@pytest.mark.timeout(180)
def test_several_runs_by_one_command(local_cloud) -> None:
    """What make would run, run: each run under its key, with its numbers."""
    folder = f"gs://{local_cloud.bucket}/jobs/boards/runs"
    environ = {name: value for name, value in {**os.environ, **local_cloud.env}.items() if value}
    trainer = REPOSITORY / ".venv/trainer/bin/python"
    uris = [f"{folder}/{key}/training/logs/train" for key in KEYS]
    subprocess.run([trainer, "-c", _WRITE, *uris], env=environ, check=True, capture_output=True, timeout=120)
    port = free_port()
    named = ["MODEL=boards", f"RUNS={' '.join(KEYS)}", f"RETRAINING_BUCKET={local_cloud.bucket}", f"PORT={port}"]
    printed = subprocess.run(
        ["make", "-n", "tensorboard", *named], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    command = printed.stdout.strip().splitlines()[-1]
    board = subprocess.Popen(["sh", "-c", command], cwd=REPOSITORY, env=environ, stderr=subprocess.DEVNULL)
    try:
        assert runs_of(port, time.monotonic() + 120) == [f"{key}/train" for key in KEYS]
    finally:
        board.terminate()
        board.wait(timeout=30)


def runs_of(port: int, until: float) -> list[str]:
    """Names of the runs, once the board has them all."""
    found: list[str] = []
    while len(found) < len(KEYS) and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/runs", timeout=10) as answer:
                found = sorted(json.load(answer))
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    return found
