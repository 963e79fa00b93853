"""Custom jobs through Google's client: they run for real, in the states, times and environment of the service."""

from __future__ import annotations

import json
import os
import tarfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.cloud import logging as cloud_logging

from packages.localcloud.tests.vertex.conftest import TRAINER_IMAGE, make_pool, poll


def read_log(local_cloud, job: v1.CustomJob) -> list[cloud_logging.LogEntry]:
    client = cloud_logging.Client(project=local_cloud.project)
    job_id = job.name.rsplit("/", 1)[-1]
    since = job.create_time.rfc3339()
    return list(
        client.list_entries(
            filter_=f'resource.type="ml_job" AND resource.labels.job_id="{job_id}" AND timestamp>="{since}"'
        )
    )


def test_job_succeeds_with_states_and_times(api):
    job = api.create_job("print('hello')", display_name="hello", labels={"who": "me"})
    assert job.state == v1.JobState.JOB_STATE_QUEUED
    ended = api.wait(job)
    assert ended.state == v1.JobState.JOB_STATE_SUCCEEDED
    assert ended.create_time <= ended.start_time <= ended.end_time <= ended.update_time
    assert ended.error.code == 0
    assert ended.labels == {"who": "me"}


def test_job_starts_within_a_tenth_of_a_second(api):
    """Printed, not asserted on: seconds vary with the machine."""
    job = api.wait(api.create_job())
    print(f"job start latency: {(job.start_time - job.create_time).total_seconds() * 1000:.0f} ms")


def test_lines_go_to_cloud_logging_in_order_with_severity_time_and_replica(api, local_cloud):
    later = datetime.now(UTC) + timedelta(hours=1)
    code = """
        import json, sys
        print("first", flush=True)
        entry = {"message": "second", "severity": "WARNING", "time": "%s", "step": 2}
        print(json.dumps(entry), flush=True)
        print("third", file=sys.stderr)
    """
    job = api.wait(api.create_job(code % later.isoformat()))
    entries = [entry for entry in read_log(local_cloud, job) if entry.resource.labels["task_name"] == "workerpool0-0"]
    found = {
        (entry.payload["message"] if isinstance(entry.payload, dict) else entry.payload): entry.severity
        for entry in entries
    }
    assert found == {"first": "INFO", "second": "WARNING", "third": "ERROR"}
    assert (entries[-1].payload, entries[-1].timestamp) == ({"message": "second", "step": 2}, later)
    assert entries[0].log_name.endswith("/logs/workerpool0-0")


def test_what_the_trainer_logs_arrives_with_its_severity_and_time(api, local_cloud):
    """Whichever stream it is on: the trainer's lines are JSON, and nobody told it where it runs."""
    code = """
        import sys
        from trainer.telemetry.logs import log_to_streams
        with log_to_streams():
            import logging
            logging.getLogger("trainer.training").info("epoch %s", 1)
            logging.getLogger("trainer.training").warning('a "quoted" text, and Ünter')
            try:
                raise ValueError("of the program")
            except ValueError as error:
                logging.getLogger("trainer.task").exception("ValueError: %s", error)
        print("of a library", file=sys.stderr)
    """
    job = api.wait(api.create_job(code))
    entries = [entry for entry in read_log(local_cloud, job) if entry.resource.labels["task_name"] == "workerpool0-0"]
    found = {
        (entry.payload["message"] if isinstance(entry.payload, dict) else entry.payload): entry.severity
        for entry in entries
    }
    times = [entry.timestamp for entry in entries if isinstance(entry.payload, dict)]
    assert times == sorted(set(times))
    assert not any("time" in entry.payload for entry in entries if isinstance(entry.payload, dict))
    (traceback,) = (message for message in found if "Traceback" in message)
    assert traceback.splitlines()[0] == traceback.splitlines()[-1] == "ValueError: of the program"
    assert found == {
        "epoch 1": "INFO",
        'a "quoted" text, and Ünter': "WARNING",
        traceback: "ERROR",
        "of a library": "ERROR",
    }


def test_nonzero_exit_fails_the_job_in_the_words_of_the_service(api):
    job = api.wait(api.create_job("raise SystemExit(3)"))
    assert job.state == v1.JobState.JOB_STATE_FAILED
    assert job.error.code == 3
    assert job.error.message.startswith(
        "The replica workerpool0-0 exited with a non-zero status of 3. Termination reason: Error."
    )


def test_pip_is_not_this_machines(api, local_cloud):
    """It says what to do instead, and fails the job."""
    job = api.wait(api.create_job(container={"command": ["bash", "-c", "pip install seaborn && echo never"]}))
    assert job.error.message.startswith("The replica workerpool0-0 exited with a non-zero status of 1.")
    assert "python_package_spec.package_uris" in str([entry.payload for entry in read_log(local_cloud, job)])


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["--model-dir=/gcs/bucket/model"]},
        {"command": ["bash", "-c", "cp x /gcs/bucket/x"]},
        {"env": [{"name": "OUT", "value": "/gcs/bucket"}]},
    ],
    ids=["argument", "command", "variable"],
)
def test_a_mounted_bucket_is_refused(api, container):
    """Not a folder of this machine whose files nobody finds."""
    job = api.wait(api.create_job("print('never')", container=container))
    assert job.state == v1.JobState.JOB_STATE_FAILED
    assert "does not mount buckets below /gcs" in job.error.message


def test_a_program_that_makes_up_a_mounted_path_is_told(api, local_cloud):
    """As samples do, from AIP_MODEL_DIR."""
    code = """
        import os
        os.makedirs("gs://b/model".replace("gs://", "/gcs/"), exist_ok=True)
    """
    job = api.wait(api.create_job(code))
    assert job.state == v1.JobState.JOB_STATE_FAILED
    assert "does not mount buckets below /gcs" in str([entry.payload for entry in read_log(local_cloud, job)])
    assert not Path("/gcs/b").exists()


def test_replica_sees_what_vertex_tells_it(api, local_cloud, bucket, tmp_path):
    report = tmp_path / "env.json"
    code = f"import json, os; json.dump(dict(os.environ), open({str(report)!r}, 'w'))"
    base = f"gs://{bucket.name}/vertex-tests/base"
    job = api.create_job(
        code,
        base_output_directory={"output_uri_prefix": base},
        container={"env": [{"name": "MINE", "value": "$(CLOUD_ML_PROJECT_ID)-x"}, {"name": "EMPTY", "value": ""}]},
    )
    assert api.wait(job).state == v1.JobState.JOB_STATE_SUCCEEDED
    env = json.loads(report.read_text())
    assert env["AIP_MODEL_DIR"] == f"{base}/model/"
    assert env["AIP_CHECKPOINT_DIR"] == f"{base}/checkpoints/"
    assert env["AIP_TENSORBOARD_LOG_DIR"] == f"{base}/logs/"
    assert env["CLOUD_ML_JOB_ID"] == job.name.rsplit("/", 1)[-1]
    assert (env["CLOUD_ML_PROJECT_ID"], env["CLOUD_ML_REGION"]) == (local_cloud.project, local_cloud.region)
    assert (env["MINE"], env["EMPTY"]) == (f"{local_cloud.project}-x", "")
    assert env["https_proxy"] == local_cloud.env["https_proxy"]
    assert not [name for name in env if name.startswith(("AIRFLOW_", "RETRAINING_"))]


def test_replica_runs_in_the_trainers_environment_with_the_checkout_importable(api):
    code = "import sys, trainer; assert '.venv/trainer/' in sys.executable, sys.executable"
    job = api.wait(api.create_job(code))
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED, job.error


def test_two_pools_share_one_cluster(api, tmp_path):
    code = f"""
        import os, pathlib
        task = os.environ["TF_CONFIG"] + "\\n" + os.environ["CLUSTER_SPEC"]
        index = len(list(pathlib.Path({str(tmp_path)!r}).iterdir()))
        import json
        mine = json.loads(os.environ["CLUSTER_SPEC"])["task"]
        pathlib.Path({str(tmp_path)!r}, f"{{mine['type']}}-{{mine['index']}}").write_text(task)
    """
    wait = f"""
        import pathlib, time
        exec({code!r}.replace("\\n        ", "\\n").strip())
        while len(list(pathlib.Path({str(tmp_path)!r}).iterdir())) < 4: time.sleep(0.01)
    """
    pools = [make_pool(wait), make_pool(wait, replica_count=2), {}, make_pool(wait)]
    job = api.wait(api.create_job(worker_pool_specs=pools))
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED, job.error
    seen = {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in tmp_path.iterdir()}
    assert set(seen) == {"workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool3-0"}
    tasks = {name: tf_config["task"] for name, (tf_config, _) in seen.items()}
    assert tasks["workerpool0-0"] == {"type": "chief", "index": 0}
    assert tasks["workerpool1-1"] == {"type": "worker", "index": 1}
    assert tasks["workerpool3-0"] == {"type": "evaluator", "index": 0}
    clusters = [tf_config["cluster"] for tf_config, _ in seen.values()]
    assert all(cluster == clusters[0] for cluster in clusters)
    assert {role: len(hosts) for role, hosts in clusters[0].items()} == {"chief": 1, "worker": 2}
    _, spec = seen["workerpool0-0"]
    assert {pool: len(hosts) for pool, hosts in spec["cluster"].items()} == {
        "workerpool0": 1,
        "workerpool1": 2,
        "workerpool3": 1,
    }
    assert len({host for hosts in spec["cluster"].values() for host in hosts}) == 4


def test_chief_ends_the_others(api, tmp_path):
    path = str(tmp_path / "pid")
    sleeper = f"import os, time; open({path!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    chief = f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.01)\ntime.sleep(0.1)"
    job = api.wait(api.create_job(worker_pool_specs=[make_pool(chief), make_pool(sleeper)]))
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED, job.error
    assert not alive(int((tmp_path / "pid").read_text()))


def test_failing_worker_fails_the_job(api):
    job = api.wait(
        api.create_job(worker_pool_specs=[make_pool("import time; time.sleep(600)"), make_pool("raise SystemExit(2)")])
    )
    assert job.state == v1.JobState.JOB_STATE_FAILED
    assert "workerpool1-0 exited with a non-zero status of 2" in job.error.message


def test_replica_killed_from_outside_is_started_again(api, tmp_path):
    code = f"""
        import os, pathlib, signal
        mark = pathlib.Path({str(tmp_path)!r}, "mark")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert api.wait(api.create_job(code)).state == v1.JobState.JOB_STATE_SUCCEEDED


def test_without_retries_a_killed_replica_fails_the_job(api):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    job = api.wait(api.create_job(code, scheduling={"disable_retries": True}))
    assert job.state == v1.JobState.JOB_STATE_FAILED
    assert "137(SIGKILL)" in job.error.message


def test_cancel_ends_the_whole_process_group(api, tmp_path):
    code = f"""
        import pathlib, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, lambda *_: pathlib.Path({str(tmp_path)!r}, "asked").touch())
        deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", deaf])
        pathlib.Path({str(tmp_path)!r}, "pids").write_text(f"{{__import__('os').getpid()}} {{child.pid}}")
        while True: time.sleep(0.05)
    """
    job = api.create_job(code)
    pids = poll(
        lambda: (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else [],
        lambda seen: len(seen) == 2,
    )
    api.jobs.cancel_custom_job(name=job.name)
    assert api.jobs.get_custom_job(name=job.name).state.name in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
    ended = api.wait(job)
    assert ended.state == v1.JobState.JOB_STATE_CANCELLED
    assert ended.error.code == 1
    assert (tmp_path / "asked").exists()
    poll(lambda: [pid for pid in pids if alive(int(pid))], lambda seen: not seen)


def test_cancel_of_an_ended_job_changes_nothing(api):
    job = api.wait(api.create_job())
    api.jobs.cancel_custom_job(name=job.name)
    assert api.jobs.get_custom_job(name=job.name).state == v1.JobState.JOB_STATE_SUCCEEDED


def test_job_past_its_timeout_is_cancelled(api):
    begun = time.monotonic()
    job = api.wait(api.create_job("import time; time.sleep(600)", scheduling={"timeout": {"seconds": 1}}))
    assert time.monotonic() - begun < 20
    assert job.state == v1.JobState.JOB_STATE_CANCELLED
    assert "longer than its timeout of 1 s" in job.error.message


def test_running_job_cannot_be_deleted_an_ended_one_can(api):
    job = api.create_job("import time; time.sleep(600)")
    api.wait(job, "JOB_STATE_RUNNING")
    with pytest.raises(exceptions.FailedPrecondition, match="JOB_STATE_RUNNING"):
        api.jobs.delete_custom_job(name=job.name)
    api.jobs.cancel_custom_job(name=job.name)
    api.wait(job)
    api.jobs.delete_custom_job(name=job.name).result(timeout=10)
    with pytest.raises(exceptions.NotFound):
        api.jobs.get_custom_job(name=job.name)


def test_python_package_is_fetched_installed_and_run(api, bucket, tmp_path):
    root = tmp_path / "greeter-1.0"
    (root / "greeter").mkdir(parents=True)
    (root / "greeter/__init__.py").write_text("")
    (root / "greeter/task.py").write_text(
        "import sys\nassert sys.argv[1:] == ['--name=you'], sys.argv\nprint('hello')\n"
    )
    (root / "setup.py").write_text(
        "from setuptools import setup\nsetup(name='greeter', version='1.0', packages=['greeter'])\n"
    )
    with tarfile.open(tmp_path / "greeter-1.0.tar.gz", "w:gz") as archive:
        archive.add(root, "greeter-1.0")
    bucket.blob("vertex-tests/greeter-1.0.tar.gz").upload_from_filename(str(tmp_path / "greeter-1.0.tar.gz"))
    package = {
        "executor_image_uri": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-16:latest",
        "package_uris": [f"gs://{bucket.name}/vertex-tests/greeter-1.0.tar.gz"],
        "python_module": "greeter.task",
        "args": ["--name=you"],
    }
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "python_package_spec": package}
    job = api.wait(api.create_job(worker_pool_specs=[pool]), timeout_s=120)
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED, job.error


def test_image_is_the_tables(api):
    """The pattern fits any tag of the trainer image."""
    assert TRAINER_IMAGE.endswith(":test")
    job = api.wait(api.create_job(container={"image_uri": TRAINER_IMAGE.replace(":test", ":0.9.1")}))
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
