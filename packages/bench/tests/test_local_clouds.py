"""What `make bench-local-clouds` makes of its measurements."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("localcloud")

from bench import local_clouds
from bench.local_clouds_contender import KINDS


def test_a_row_has_the_medians_of_its_rounds():
    rounds = [{"start": seconds, "memory": 2**20 * seconds, "upload": seconds / 1000} for seconds in (3.0, 1.0, 2.0)]
    row = local_clouds.summarise("a server", rounds)
    assert row == {"name": "a server", "start": 2.0, "memory": 2 * 2**20, "upload": 0.002}
    assert local_clouds.render([row]).splitlines()[-1] == "| a server | 2.00 | 2 |  |  | 2.0 |  |  |"


def test_every_contender_is_asked_something_that_can_be_asked():
    assert {kind for each in local_clouds.CONTENDERS for kind in each.kinds} == set(KINDS)


def test_memory_is_that_of_the_processes_that_are_there():
    code = "print(len(bytes(50_000_000)), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert local_clouds.memory_of([process.pid]) < 200_000_000
        assert process.pid in local_clouds._children(os.getpid())
        process.communicate(b"\n")
    assert local_clouds.memory_of([process.pid]) == 0
    assert process.pid not in local_clouds._children(os.getpid())


def test_a_server_that_ends_is_named():
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
        with pytest.raises(RuntimeError, match="ended with 3"):
            local_clouds.await_answer(1, "/", process)


def test_free_ports_are_different():
    assert len(set(local_clouds.free_ports(5))) == 5
