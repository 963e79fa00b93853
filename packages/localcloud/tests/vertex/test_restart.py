"""The server ends, kindly or not, and starts again on the same state: nothing is lost, nothing is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.protobuf import json_format, struct_pb2

from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE, SoloServer, poll

SLEEPER = """
    import pathlib, subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path({folder!r}, "pids").write_text(f"{{__import__('os').getpid()}} {{child.pid}}")
    time.sleep(600)
"""


def start_sleeper(api, folder: Path) -> tuple[v1.CustomJob, list[int]]:
    """A running job and the pids of its two processes."""
    job = api.create_job(SLEEPER.format(folder=str(folder)))
    path = folder / "pids"
    pids = poll(lambda: path.read_text().split() if path.exists() else [], lambda seen: len(seen) == 2)
    return api.wait(job, "JOB_STATE_RUNNING"), [int(pid) for pid in pids]


def living(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(pid)
        except (ProcessLookupError, FileNotFoundError):
            pass
    return found


ENDS = [
    pytest.param(signal.SIGKILL, id="killed"),
    pytest.param(signal.SIGTERM, id="asked to end", marks=pytest.mark.long),
]


@pytest.mark.parametrize("number", ENDS)
def test_jobs_end_with_the_server_and_are_marked(solo, tmp_path, number):
    api = solo.start()
    done = api.wait(api.create_job())
    job, pids = start_sleeper(api, tmp_path)
    solo.end(number)
    poll(lambda: living(pids), lambda seen: not seen)
    api = solo.start()
    found = api.jobs.get_custom_job(name=job.name)
    assert (found.state, found.error.code) == (v1.JobState.JOB_STATE_FAILED, 13)
    assert "was stopped while the job ran" in found.error.message
    assert found.end_time
    assert api.jobs.get_custom_job(name=done.name) == done
    assert [seen.name for seen in api.jobs.list_custom_jobs(parent=api.parent)] == [job.name, done.name]


@pytest.mark.long
def test_running_operation_is_marked_and_faults_stay(solo):
    api = solo.start()
    fault = {"target": "EndpointService.CreateEndpoint/operation", "action": {"kind": "delay", "seconds": 60}}
    assert solo.ask("POST", "/faults", {**fault, "count": 2})[0] == 200
    name = api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "slow"}).operation.name
    solo.end(signal.SIGKILL)
    api = solo.start()
    operation = api.endpoints.get_operation({"name": name})
    assert (operation.done, operation.error.code) == (True, 10)
    assert solo.ask("GET", "/faults")[1]["faults"][0]["count"] == 1


@pytest.mark.long  # that a killed process of a model is started again is in test_endpoints
@pytest.mark.parametrize("number", ENDS)
def test_deployed_models_are_served_again(solo, saved_model_uri, number):
    api = solo.start()
    spec = {"display_name": "m", "container_spec": {"image_uri": SERVING_IMAGE}, "artifact_uri": saved_model_uri}
    model = (
        api.models.upload_model(request={"parent": api.parent, "model": spec, "model_id": "m"}).result(timeout=30).model
    )
    endpoint = (
        api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "e"}, endpoint_id="e")
        .result(timeout=10)
        .name
    )
    resources = {"machine_spec": {"machine_type": "n1-standard-2"}, "min_replica_count": 1}
    deployed = {"model": model, "dedicated_resources": resources}
    api.endpoints.deploy_model(endpoint=endpoint, deployed_model=deployed, traffic_split={"0": 100}).result(timeout=60)
    row = json_format.ParseDict({"carrier": "UA", "distance": 21}, struct_pb2.Value())
    assert list(api.predictions.predict(endpoint=endpoint, instances=[row]).predictions) == [42.0]
    solo.end(number)
    api = solo.start()
    assert list(api.predictions.predict(endpoint=endpoint, instances=[row]).predictions) == [42.0]
    assert api.models.get_model(name=f"{model}@1").version_aliases == ["default"]


def test_second_server_on_the_same_state_is_refused_and_harms_nothing(solo, tmp_path):
    api = solo.start()
    job, pids = start_sleeper(api, tmp_path)
    second = SoloServer(solo.state_path).launch()
    assert second.wait(timeout=60) == 1
    assert "another local Vertex AI works here" in (solo.state_path / "server.log").read_text()
    assert len(living(pids)) == 2
    assert api.jobs.get_custom_job(name=job.name).state == v1.JobState.JOB_STATE_RUNNING


@pytest.mark.long
def test_bare_socket_takes_every_region(solo):
    api = solo.start()
    assert list(api.jobs.list_custom_jobs(parent=api.parent.replace("us-central1", "europe-west4"))) == []
    with pytest.raises(exceptions.PermissionDenied):
        api.jobs.list_custom_jobs(parent="projects/nobodys/locations/us-central1")
