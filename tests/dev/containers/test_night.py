"""The images and docker-compose.yaml, run by podman: what the tests of `dev/compose` read, happens here.

Long (20 minutes the first time, then about 10): `make containers`. Where no registry of images answers, images made of
Debian's packages stand in for the official ones; dev/containers/README.md says how they differ.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from containers.compose import Compose
from containers.engine import Engine
from containers.images import TRAINER_IMAGE
from demo.checkout import REPOSITORY_PATH
from demo.dag_run import DAG_ID
from demo.system import LaptopSystem
from localcloud.command.fault_client import FaultClient
from localcloud.state import State
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import run_dag, wait_for_dag
from retraining_laptop.progress import follow_run, read_failures
from tests.support.ports import free_port

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]
AS_OF = "2013-11-20T03:00:00Z"
# The chief ends when it has met the worker at the address that both were told; the worker says who it is.
CHIEF = """
import json, os, socket, time
peer = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][0].split(":")
end = time.monotonic() + 60
while True:
    try:
        print("met", socket.create_connection(peer).recv(100).decode(), flush=True)
        break
    except ConnectionRefusedError:
        assert time.monotonic() < end
        time.sleep(0.1)
"""
WORKER = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
host, port = config["cluster"]["worker"][config["task"]["index"]].split(":")
listening = socket.create_server((host, int(port)))
listening.accept()[0].sendall(f"user {os.getuid()} in {os.getcwd()}".encode())
time.sleep(600)
"""
# Told of its end it says so; the second time it comes to its end by itself.
PREEMPTED = """
import signal, sys, time
from google.cloud import storage
mark = storage.Client().bucket("local-retraining").blob("mark")
if not mark.exists():
    signal.signal(signal.SIGTERM, lambda *_: (print("told", flush=True), sys.exit(143)))
    mark.upload_from_string("x")
    print("up", flush=True)
    time.sleep(600)
"""
DEAF = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture
def laptop(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LaptopSystem]:
    """The demonstration's system, whose jobs with the trainer's image are containers."""
    for name, value in {**os.environ, **engine.environment()}.items():
        monkeypatch.setenv(name, value)  # all of them: starting the system adds to the environment
    before = set(os.environ)
    table = {"images": [{"pattern": "*/retraining/trainer:*", "use": "training", "runtime": "container"}]}
    (tmp_path / "localcloud" / "vertex").mkdir(parents=True)
    (tmp_path / "localcloud" / "vertex" / "images.json").write_text(json.dumps(table))
    system = LaptopSystem(state_path=tmp_path / "localcloud", airflow_home_path=tmp_path / "airflow", port=free_port())
    try:
        system.start()
        yield system
    finally:
        system.stop()
        for name in set(os.environ) - before:
            del os.environ[name]


def make_job(*pools: tuple[str, int]) -> dict[str, Any]:
    """A job of the trainer's image, each of whose pools runs lines of Python."""
    return {
        "display_name": "containers",
        "job_spec": {
            "worker_pool_specs": [
                {
                    "machine_spec": {"machine_type": "n1-standard-4"},
                    "replica_count": count,
                    "container_spec": {"image_uri": TRAINER_IMAGE, "command": ["python", "-c", code]},
                }
                for code, count in pools
            ]
        },
    }


def wait_for(look: Callable[[], Any], good: Callable[[Any], bool], timeout_s: float = 120) -> Any:
    """What was seen when it was good; fails with what was seen last."""
    end = time.monotonic() + timeout_s
    while not good(seen := look()):
        assert time.monotonic() < end, seen
        time.sleep(0.1)
    return seen


def test_the_trainers_image_runs_as_jobs(laptop: LaptopSystem, engine: Engine) -> None:
    """A whole night, then a cluster, an exit status, a preemption and a cancellation: as with processes."""
    project, region = os.environ["RETRAINING_PROJECT"], os.environ["RETRAINING_REGION"]
    night = run_dag(laptop.airflow.api(), DAG_ID, AS_OF, project=project, say=print, timeout_s=900)
    assert night.state == "success", night.failures

    from google.cloud import aiplatform_v1  # after the local cloud's variables are set

    api = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    parent = f"projects/{project}/locations/{region}"
    folder = laptop.state_path / "vertex" / "jobs"
    assert len([job for job in api.list_custom_jobs(parent=parent) if job.state.name.endswith("SUCCEEDED")]) == 3
    started = engine.podman("events", "--stream=false", "--filter", "event=start", "--format", "{{.Name}}").split()
    ours = tuple(f"localcloud-{path.name}-" for path in folder.iterdir())
    assert len([name for name in started if name.startswith(ours)]) >= 3

    def create(*pools: tuple[str, int]) -> str:
        return str(api.create_custom_job(parent=parent, custom_job=make_job(*pools)).name)

    def lines(name: str, replica: str) -> str:
        path = folder / name.rpartition("/")[2] / f"{replica}.stdout.log"
        return path.read_text() if path.exists() else ""

    def end(name: str) -> Any:
        ended = ("SUCCEEDED", "FAILED", "CANCELLED")
        return wait_for(lambda: api.get_custom_job(name=name), lambda job: job.state.name.endswith(ended))

    cluster = create((CHIEF, 1), (WORKER, 1))
    assert end(cluster).state.name == "JOB_STATE_SUCCEEDED", end(cluster).error
    assert lines(cluster, "workerpool0-0") == "met user 10001 in /app\n"

    assert "non-zero status of 3" in end(create(("raise SystemExit(3)", 1))).error.message

    preempted = create((PREEMPTED, 1))
    wait_for(lambda: lines(preempted, "workerpool0-0"), bool)
    fault = {"target": "Replica.Run", "count": 1, "action": {"kind": "preempt", "grace_seconds": 10}}
    FaultClient(State(laptop.state_path)).add(fault)
    assert end(preempted).state.name == "JOB_STATE_SUCCEEDED", end(preempted).error
    assert lines(preempted, "workerpool0-0") == "up\ntold\n"

    deaf = create((DEAF, 1))
    wait_for(lambda: lines(deaf, "workerpool0-0"), bool)
    api.cancel_custom_job(name=deaf)
    assert end(deaf).state.name == "JOB_STATE_CANCELLED"
    assert engine.podman("ps", "--all", "--quiet") == ""


@pytest.fixture
def compose(engine: Engine, tmp_path: Path) -> Iterator[Compose]:
    """docker-compose.yaml, not yet up; its volumes are gone afterwards."""
    spec = importlib.util.spec_from_file_location("make_env", REPOSITORY_PATH / "dev" / "compose" / "make_env.py")
    assert spec is not None
    assert spec.loader is not None
    make_env = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_env)
    variables = {**make_env.environment(), "AIRFLOW_PORT": str(free_port())}
    env_path = tmp_path / ".env"
    env_path.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    services = Compose(engine=engine, env_path=env_path)
    services.down(volumes=True)
    yield services
    services.down(volumes=True)


def log_in(compose: Compose, tmp_path: Path) -> AirflowApi:
    """Airflow's API, with the password that it made up."""
    passwords = json.loads(compose.execute("api-server", "cat", "/opt/airflow/secrets/passwords.json"))
    port = (tmp_path / ".env").read_text().split("AIRFLOW_PORT=")[1].strip()
    return AirflowApi(url=f"http://127.0.0.1:{port}", username="admin", password=passwords["admin"])


def champions(compose: Compose) -> str:
    """Versions of the model that the local cloud's registry calls champion, asked from an Airflow container."""
    code = (
        "from google.cloud import aiplatform as a; a.init(location='us-central1');"
        "print([(m.display_name, m.version_id) for m in a.Model.list() if 'champion' in m.version_aliases])"
    )
    entry = ("bash", "/opt/airflow/dev/compose/with-localcloud.sh")
    return compose.execute("scheduler", *entry, "python", "-c", code).strip().splitlines()[-1]


def test_a_night_in_docker_compose_outlives_it(compose: Compose, tmp_path: Path) -> None:
    """Postgres, Airflow and the local cloud: a retraining succeeds; down and up again, it is all still there."""
    compose.up(timeout_s=600)
    api = log_in(compose, tmp_path)
    wait_for_dag(api, DAG_ID, timeout_s=180)
    assert not api.import_errors()
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID, AS_OF)
    state, times = follow_run(api, DAG_ID, run_id, say=print, timeout_s=900)
    assert state == "success", read_failures(api, DAG_ID, run_id)
    champion = champions(compose)
    assert "flight_delays" in champion

    compose.down()
    assert compose.engine.podman("ps", "--all", "--quiet") == ""
    compose.up(timeout_s=600)

    again = log_in(compose, tmp_path)
    assert again.password == api.password
    assert again.read_run(DAG_ID, run_id)["state"] == "success"
    assert {task["task_id"] for task in again.task_instances(DAG_ID, run_id)} == {each.task_id for each in times}
    assert again.log_lines(DAG_ID, run_id, "train", 1)
    assert champions(compose) == champion
