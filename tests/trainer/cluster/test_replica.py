"""A process's place in its job."""

from __future__ import annotations

import json

import pytest

from trainer.cluster.replica import Replica, find_replica, uses_servers
from trainer.errors import RequestError


def cluster(task: str, index: int, **roles: int) -> str:
    addresses = {role: [f"{role}-{number}:2222" for number in range(count)] for role, count in roles.items()}
    return json.dumps({"cluster": addresses, "task": {"type": task, "index": index}})


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        pytest.param({}, (0, 1), id="alone"),
        pytest.param({"TF_CONFIG": "{}"}, (0, 1), id="empty"),
        pytest.param({"CLUSTER_SPEC": cluster("workerpool0", 0, workerpool0=1)}, (0, 1), id="one"),
        pytest.param({"CLUSTER_SPEC": cluster("workerpool0", 0, workerpool0=1, workerpool1=3)}, (0, 4), id="chief"),
        pytest.param({"CLUSTER_SPEC": cluster("workerpool1", 2, workerpool0=1, workerpool1=3)}, (3, 4), id="worker"),
        pytest.param({"TF_CONFIG": cluster("worker", 1, chief=1, worker=2)}, (2, 3), id="tf-config"),
        pytest.param({"TF_CONFIG": cluster("worker", 1, chief=1, worker=2, ps=2)}, (2, 3), id="ps-does-not-count"),
    ],
)
def test_the_chief_is_first_and_workers_follow(environ: dict[str, str], place: tuple[int, int]) -> None:
    found = find_replica(environ)
    assert (found.index, found.count) == place
    assert found.is_chief == (place[0] == 0)


@pytest.mark.parametrize(
    ("role", "chief", "server", "evaluator", "serves"),
    [
        pytest.param("chief", True, False, False, True, id="chief"),
        pytest.param("worker", False, False, False, True, id="worker"),
        pytest.param("ps", False, True, False, True, id="ps"),
        pytest.param("evaluator", False, False, True, True, id="evaluator"),
    ],
)
def test_only_the_chief_is_the_chief(role: str, chief: bool, server: bool, evaluator: bool, serves: bool) -> None:
    """Parameter servers and evaluators count from 0 too."""
    found = find_replica({"TF_CONFIG": cluster(role, 0, chief=1, worker=2, ps=1)})
    assert (found.is_chief, found.is_server, found.is_evaluator) == (chief, server, evaluator)
    assert found.servers == 1
    assert uses_servers(found, "auto") == serves
    assert not uses_servers(found, "multi_worker")


@pytest.mark.parametrize("text", ["{", '{"cluster": {}}', '{"cluster": [], "task": {}}'])
def test_what_the_service_would_not_write_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="TF_CONFIG"):
        find_replica({"TF_CONFIG": text})


def test_without_environment_a_process_is_alone() -> None:
    assert find_replica({}) == Replica()
