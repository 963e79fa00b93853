"""Replicas of the real export job on the local cloud: together, and killed at any moment."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import time

import numpy as np
import pytest

from tests.localcloud.export.conftest import ROWS, ExportJob


def replica(index: int, count: int) -> dict[str, str]:
    """Return the environment that Vertex AI gives replica `index` of `count`."""
    cluster = {"workerpool0": ["chief:2222"], "workerpool1": [f"worker-{number}:2222" for number in range(count - 1)]}
    task = {"type": "workerpool1" if index else "workerpool0", "index": max(index - 1, 0)}
    return {"CLUSTER_SPEC": json.dumps({"cluster": cluster, "task": task})}


def whole(expected: dict[str, bytes]) -> list[str]:
    """Return the names of everything that a whole export leaves, and nothing else may."""
    folders = {name.rsplit("/", 1)[0] for name in expected}
    return sorted([*expected, *(f"{name}.json" for name in expected), *(f"{folder}/span.json" for folder in folders)])


def assert_whole(job: ExportJob, expected: dict[str, bytes]) -> None:
    """All is there, with the bytes of an undisturbed export, and nothing is left over."""
    shards = job.shards()
    assert shards.keys() == expected.keys()
    for name, data in shards.items():
        assert gzip.decompress(data) == gzip.decompress(expected[name]), name
        assert data == expected[name], f"{name}: the same records, compressed otherwise"
    assert job.names() == whole(expected)
    assert sum(split["rows"] for split in job.manifest()["splits"].values()) == ROWS


def test_three_replicas_at_once_give_the_bytes_of_one(job, expected):
    """The chief waits for the others, also when it starts first; one writes each file."""
    processes = [job.start(env=replica(index, 3)) for index in range(3)]
    logs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], logs
    assert_whole(job, expected)
    written = [int(out.split(" shards to write")[0].rsplit(" ", 1)[1]) for out, _ in logs]
    assert written == [3, 3, 3]


@pytest.mark.long
def test_killed_at_twenty_random_moments_it_goes_on_to_the_same_bytes(make_job, expected):
    """SIGKILL between the process's first request and its end; then another try."""
    start = time.monotonic()
    assert make_job().run().code == 0
    seconds = time.monotonic() - start
    killed = 0
    for moment in np.random.default_rng(20).uniform(0.4, 1.0, 20):
        job = make_job()
        process = job.start()
        try:
            process.communicate(timeout=moment * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
        found = job.shards()
        assert found == {name: expected[name] for name in found}
        assert set(job.names()) <= set(whole(expected))
        ended = job.run()
        assert ended.code == 0, ended.error
        assert_whole(job, expected)
    assert killed >= 10


@pytest.mark.long
def test_a_replica_that_is_killed_and_started_again_does_its_share(make_job, expected):
    """As on the service, which starts a lost worker again while the chief waits."""
    job = make_job()
    chief, worker = job.start(env=replica(0, 2)), job.start(env=replica(1, 2))
    worker.kill()
    worker.communicate()
    again = job.start(env=replica(1, 2))
    for process in (chief, again):
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    assert_whole(job, expected)
