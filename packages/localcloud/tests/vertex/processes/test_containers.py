"""Jobs and models whose image runs as a container; a program in podman's place starts the command as a process.

With podman itself: tests/dev/containers, among the long tests.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from google.cloud import aiplatform_v1 as v1

from localcloud.vertex.processes.commands import replica_command
from localcloud.vertex.processes.images import Images
from localcloud.vertex.wire.errors import FailedPrecondition
from packages.localcloud.tests.vertex.conftest import deploy, make_pool, poll
from packages.localcloud.tests.vertex.endpoints.test_containers import SERVER, ask, register

IMAGE = "host/mine/trainer:1"
TABLE = {"images": [{"pattern": "*/mine/*", "use": use, "runtime": "container"} for use in ("training", "serving")]}
# Knows one image; `run` becomes the container's command, with the container's variables; every call is written down.
PODMAN = f"""#!{sys.executable}
import json, os, pathlib, sys
words = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[0] == "image":
    if words[-1] != {IMAGE!r}:
        sys.exit("Error: no such image")
    print(json.dumps(["PYTHONPATH=/app", "PATH=/bin"]))
if words[0] == "run":
    env = dict(words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "--env")
    command = json.loads(words[words.index("--entrypoint") + 1]) + words[words.index({IMAGE!r}) + 1:]
    os.execvpe(sys.executable, [sys.executable, *command[1:]], env)
"""


@pytest.fixture
def podman(tmp_path, monkeypatch):
    """The calls that the program in podman's place has seen."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "podman").write_text(PODMAN)
    (folder / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")

    def calls(name):
        path = folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [words for words in map(json.loads, lines) if words[0] == name]

    return calls


@pytest.fixture
def images(tmp_path):
    """A table in which the image runs as a container."""
    (tmp_path / "images.json").write_text(json.dumps(TABLE))
    return Images(tmp_path / "images.json")


@pytest.fixture
def solo_api(solo, podman):
    """A server of this test's own with that table."""
    (solo.state_path / "vertex").mkdir(parents=True)
    (solo.state_path / "vertex" / "images.json").write_text(json.dumps(TABLE))
    return solo.start()


def build(spec, tmp_path, images, **variables):
    """The command of a replica of the pool."""
    return replica_command(
        spec=v1.WorkerPoolSpec(spec), variables=variables, folder=tmp_path / "4711", images=images, buckets=None
    )


def values(words, option):
    """What an option of a command line was given, each time."""
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def start_deaf(api, podman):
    """A running job that SIGTERM does not end, and the name of its container."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    before = len(podman("run"))
    job = api.create_job(worker_pool_specs=[make_pool(code, image_uri=IMAGE)])
    started = poll(lambda: podman("run"), lambda seen: len(seen) > before)[-1]
    return api.wait(job, "JOB_STATE_RUNNING"), values(started, "--name")[0]


def test_the_container_gets_what_vertex_ai_gives_and_no_more(tmp_path, images, podman):
    """The variables of the service and the job's own; the image's entry point is replaced by a command alone."""
    spec = make_pool("", image_uri=IMAGE, command=["run", "$(SHOUT)"], args=["--to", "$(AIP_MODEL_DIR)"])
    spec["container_spec"]["env"] = [{"name": "SHOUT", "value": "hey $(CLOUD_ML_JOB_ID)"}]
    known = {"AIP_MODEL_DIR": "gs://b/model/", "CLOUD_ML_JOB_ID": "4711", "TF_CONFIG": '{"cluster": {}}'}
    command = build(spec, tmp_path, images, **known, AIRFLOW_CONN_X="y", LOCALCLOUD_STATE="/state", SSL_CERT_DIR="")
    words = command.arguments
    assert dict(each.split("=", 1) for each in values(words, "--env")) == {
        **known,
        "SHOUT": "hey 4711",
        "PYTHONPATH": "/app",
    }
    assert values(words, "--network") == ["host"]
    assert json.loads(values(words, "--entrypoint")[0]) == ["run", "hey 4711"]
    assert words[words.index(IMAGE) :] == [IMAGE, "--to", "gs://b/model/"]
    assert command.end[1:] == ["rm", "--force", "--ignore", "--time", "0", *values(words, "--name")]


def test_an_image_without_a_command_is_started_by_its_entry_point(tmp_path, images, podman):
    """As on Vertex AI; an environment has none."""
    words = build(make_pool("", image_uri=IMAGE, command=[]), tmp_path, images).arguments
    assert "--entrypoint" not in words
    assert words[-1] == IMAGE


def test_what_the_variables_name_is_mounted_for_any_user(tmp_path, images, podman):
    """The key is its owner's alone on this machine; in the container another user must read it."""
    key, site = tmp_path / "key.json", tmp_path / "site"
    key.write_text("{}")
    key.chmod(0o600)
    site.mkdir()
    metrics = tmp_path / "4711" / "hypertune" / "workerpool0-0"
    metrics.mkdir(parents=True)
    variables = {
        "GOOGLE_APPLICATION_CREDENTIALS": str(key),
        "PYTHONPATH": str(site),
        "CLOUD_ML_HP_METRIC_FILE": str(metrics / "output.metrics"),
    }
    words = build(make_pool("", image_uri=IMAGE), tmp_path, images, **variables).arguments
    copy = tmp_path / "4711" / "mounted" / "key.json"
    assert copy.stat().st_mode & 0o777 == 0o644
    assert key.stat().st_mode & 0o777 == 0o600
    assert metrics.stat().st_mode & 0o777 == 0o777
    assert set(values(words, "--volume")) == {f"{copy}:{key}:ro", f"{site}:{site}:ro", f"{metrics}:{metrics}"}
    assert f"PYTHONPATH={site}:/app" in values(words, "--env")


def test_without_podman_the_job_is_refused_by_name(tmp_path, images, monkeypatch):
    """The message says what is missing and the way out."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FailedPrecondition, match=r"no podman on the local cloud's PATH\. Install podman, or let an"):
        build(make_pool("", image_uri=IMAGE), tmp_path, images)


def test_an_image_that_podman_does_not_have_is_refused(tmp_path, images, podman):
    """Nothing is fetched: the local cloud's servers reach no registry."""
    with pytest.raises(
        FailedPrecondition, match=r"'x/mine/no:1': podman does not have it.*podman build --tag x/mine/no"
    ):
        build(make_pool("", image_uri="x/mine/no:1"), tmp_path, images)


def test_packages_are_not_installed_into_a_container(tmp_path, images, podman):
    """A python_package_spec needs an environment."""
    spec = {"python_package_spec": {"executor_image_uri": IMAGE, "python_module": "a.b", "package_uris": ["gs://b/a"]}}
    with pytest.raises(FailedPrecondition, match=r"runs as a container.*Set container_spec"):
        build(spec, tmp_path, images)


def test_a_runtime_that_is_not_offered_is_refused(tmp_path):
    """When the table is read, not when a job starts."""
    table = {"images": [{"pattern": "*", "use": "training", "runtime": "vm"}]}
    (tmp_path / "images.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match=r"runtime 'vm'\. Expected process or container"):
        Images(tmp_path / "images.json")


def test_a_job_of_a_container_runs_and_is_cancelled(solo_api, podman):
    """Exit status and lines are the program's; a killed `podman run` leaves its container, which is removed by name."""
    job = solo_api.wait(solo_api.create_job(worker_pool_specs=[make_pool("raise SystemExit(3)", image_uri=IMAGE)]))
    assert "non-zero status of 3" in job.error.message
    job, name = start_deaf(solo_api, podman)
    solo_api.jobs.cancel_custom_job(name=job.name)
    assert solo_api.wait(job).state == v1.JobState.JOB_STATE_CANCELLED
    assert name in [words[-1] for words in podman("rm")]


def test_a_container_ends_with_the_server(solo, solo_api, podman):
    """However the server died."""
    _, name = start_deaf(solo_api, podman)
    solo.end(signal.SIGKILL)
    poll(lambda: [words[-1] for words in podman("rm")], lambda removed: name in removed)


def test_a_restart_ends_what_a_crash_of_everything_left(solo, solo_api, podman):
    """Also when the guardian died with the server, which cannot remove it then."""
    _, name = start_deaf(solo_api, podman)
    found = subprocess.run(["pgrep", "-P", str(solo.process.pid), "-f", "guardian"], text=True, capture_output=True)
    subprocess.run(["kill", "-KILL", *found.stdout.split(), str(solo.process.pid)], check=True)
    solo.process.wait()
    assert not podman("rm")
    solo.start()
    assert [words[-1] for words in podman("rm")] == [name]


def test_a_container_serves_and_is_ended(solo_api, podman):
    """A route is no folder of this machine to be mounted; undeployed, its container is removed by name."""
    container = {"image_uri": IMAGE, "command": ["python", "-c", SERVER], "predict_route": "/", "health_route": "/well"}
    model = register(solo_api, container=container)
    made = solo_api.endpoints.create_endpoint(parent=solo_api.parent, endpoint={"display_name": "own"}).result()
    deployed = deploy(solo_api, made.name, model, {"0": 100})
    assert ask(solo_api, made.name, 1, 2.5) == [1, 2.5]
    (words,) = podman("run")
    assert "AIP_PREDICT_ROUTE=/" in values(words, "--env")
    assert not [mount for mount in values(words, "--volume") if mount.startswith("/:")]
    solo_api.endpoints.undeploy_model(endpoint=made.name, deployed_model_id=deployed.id).result(timeout=30)
    assert values(words, "--name")[0] in [words[-1] for words in podman("rm")]
