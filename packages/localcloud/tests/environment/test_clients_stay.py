"""No client of the Airflow environment opens another address than the gateway's, whichever family it is of.

All of them run in a network namespace whose only way out is a relay to the gateway, and under
an audit hook that notes every address that Python's sockets open.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.environment.variables import CLIENT_SITE_PATH

REPOSITORY_PATH = Path(__file__).resolve().parents[4]

CLIENTS = {
    "requests (storage)": """
        from google.cloud import storage
        print(storage.Client().get_bucket(os.environ["RETRAINING_BUCKET"]).name)
    """,
    "requests (bigquery)": """
        from google.cloud import bigquery
        print([row.n for row in bigquery.Client().query_and_wait("SELECT 7 AS n")])
    """,
    "grpc (vertex)": """
        from google.cloud import aiplatform_v1
        host = f"{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com"
        client = aiplatform_v1.ModelServiceClient(client_options={"api_endpoint": host})
        parent = f"projects/{os.environ['RETRAINING_PROJECT']}/locations/{os.environ['RETRAINING_REGION']}"
        print(list(client.list_models(parent=parent)))
    """,
    "grpc.aio (vertex)": """
        import asyncio
        from google.cloud import aiplatform_v1
        async def ask():
            host = f"{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com"
            client = aiplatform_v1.JobServiceAsyncClient(client_options={"api_endpoint": host})
            parent = f"projects/{os.environ['RETRAINING_PROJECT']}/locations/{os.environ['RETRAINING_REGION']}"
            return [job async for job in await client.list_custom_jobs(parent=parent)]
        print(asyncio.run(ask()))
    """,
    "grpc (logging)": """
        from google.cloud import logging
        print(list(logging.Client().list_entries(page_size=1, max_results=1)))
    """,
    "httplib2 (googleapiclient, BigQuery check operators)": """
        from airflow.providers.google.cloud.hooks.bigquery import BigQueryHook
        hook = BigQueryHook(gcp_conn_id="google_cloud_default", use_legacy_sql=False, location="US")
        print(hook.get_first("SELECT 7"))
    """,
    "aiohttp (gcloud-aio storage, deferrable GCS operators)": """
        import asyncio
        from airflow.providers.google.cloud.triggers.gcs import GCSBlobTrigger
        async def ask():
            trigger = GCSBlobTrigger(
                bucket=os.environ["RETRAINING_BUCKET"], object_name="not-there", use_glob=False, poke_interval=1,
                google_cloud_conn_id="google_cloud_default", hook_params={},
            )
            return await trigger._object_exists(trigger._get_async_hook(), trigger.bucket, trigger.object_name)
        print(asyncio.run(ask()))
    """,
    "aiohttp (gcloud-aio bigquery, deferrable BigQuery operators)": """
        import asyncio
        from google.cloud import bigquery
        from airflow.providers.google.cloud.hooks.bigquery import BigQueryAsyncHook
        job = bigquery.Client().query("SELECT 7 AS n")
        job.result()
        async def ask():
            hook = BigQueryAsyncHook(gcp_conn_id="google_cloud_default")
            return await hook.get_job_status(job_id=job.job_id, project_id=job.project, location="US")
        print(asyncio.run(ask()))
    """,
    "gcsfs (object storage paths)": """
        import gcsfs
        print(gcsfs.GCSFileSystem(session_kwargs={"trust_env": True}).ls(os.environ["RETRAINING_BUCKET"]))
    """,
    "google-auth (impersonation, tokens)": """
        import google.auth, google.auth.transport.requests
        credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
        credentials.refresh(google.auth.transport.requests.Request())
        print(bool(credentials.token))
    """,
}

# google-cloud-logging looks this name up for each entry that it reads, to learn which machine it is on. It exists on
# Google's machines only, and nothing is sent.
WHERE_AM_I = {("metadata.google.internal.", 80)}

# Runs all clients one after the other; of each it tells the error, if any, and the addresses that were opened.
_RUN_ALL = """
import json, sys, traceback
opened = []
def note(event, arguments):
    if event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        opened.append([str(arguments[1][0]), arguments[1][1]])
    elif event == "socket.getaddrinfo":
        opened.append([str(arguments[0]), arguments[1]])
sys.addaudithook(note)
answers = {}
for name, code in json.load(open(sys.argv[1])).items():
    opened.clear()
    error = ""
    try:
        exec(compile(code, name, "exec"), {"__name__": "client"})
    except Exception:  # a client's own kind; the test compares the text
        error = traceback.format_exc()
    answers[name] = {"error": error, "opened": list(opened)}
json.dump(answers, open(sys.argv[2], "w"))
"""
# Brings the namespace's loopback up and listens where the gateway listens outside; then runs the client.
_RELAY = """
import ctypes, fcntl, os, socket, struct, subprocess, sys, threading
port, outside, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
with socket.socket() as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
def copy(source, target):
    while piece := source.recv(65536):
        target.sendall(piece)
    target.shutdown(socket.SHUT_WR)
def serve(inner):
    outer = socket.socket(socket.AF_UNIX)
    outer.connect(outside)
    threading.Thread(target=copy, args=(outer, inner), daemon=True).start()
    copy(inner, outer)
def listen():
    while True:
        inner, _ = server.accept()
        threading.Thread(target=serve, args=(inner,), daemon=True).start()
server = socket.create_server(("127.0.0.1", port), backlog=64)
threading.Thread(target=listen, daemon=True).start()
sys.exit(subprocess.run(command).returncode)
"""


def _pump(source, target) -> None:
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(1)
    except OSError:
        pass


@pytest.fixture(scope="module")
def namespace(local_cloud, tmp_path_factory) -> Iterator[list[str]]:
    """The command that runs another one where nothing but the gateway can be reached."""
    import socket

    enter = ["unshare", "--net", "--map-root-user", "--user"]
    if not shutil.which("unshare") or subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    port = int(local_cloud.env["https_proxy"].rsplit(":", 1)[1])
    folder = tmp_path_factory.mktemp("relay")
    outside = folder / "gateway"
    script = folder / "relay.py"
    script.write_text(_RELAY)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(outside))
    server.listen(64)

    def serve() -> None:
        while True:
            try:
                inner, _ = server.accept()
            except OSError:
                return
            outer = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=_pump, args=(outer, inner), daemon=True).start()
            threading.Thread(target=_pump, args=(inner, outer), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield [*enter, sys.executable, "-S", str(script), str(port), str(outside)]
    server.close()


@pytest.fixture(scope="module")
def answers(local_cloud, namespace, tmp_path_factory) -> dict[str, Any]:
    """What each client got and opened."""
    folder = tmp_path_factory.mktemp("clients")
    script, asked, answered = (folder / name for name in ("run_all.py", "clients.json", "answers.json"))
    script.write_text(_RUN_ALL)
    asked.write_text(json.dumps({name: "import os\n" + textwrap.dedent(code) for name, code in CLIENTS.items()}))
    environ = {name: value for name, value in {**os.environ, **local_cloud.env}.items() if value}
    subprocess.run(
        [*namespace, sys.executable, str(script), str(asked), str(answered)],
        env={**environ, "AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
        timeout=240,
        check=True,
    )
    found: dict[str, Any] = json.loads(answered.read_text())
    return found


@pytest.mark.parametrize(
    "client", CLIENTS, ids=[name.split(",")[0].replace(" (", ": ").rstrip(")") for name in CLIENTS]
)
def test_a_client_reaches_the_gateway_and_nothing_else(local_cloud, answers, client):
    """It gets its answer where only the gateway can be reached, and tried no other address."""
    gateway = int(local_cloud.env["https_proxy"].rsplit(":", 1)[1])
    assert answers[client]["error"] == ""
    opened = {(host, int(port)) for host, port in answers[client]["opened"] if port}
    assert opened - WHERE_AM_I <= {("127.0.0.1", gateway)}


ASK = """
import aiohttp, asyncio
async def ask():
    async with aiohttp.ClientSession() as session, session.get("https://storage.googleapis.com/storage/v1/b") as answer:
        return answer.status
print(asyncio.run(ask()))
"""


@pytest.mark.parametrize("with_site", [True, False])
def test_aiohttp_stays_because_of_the_site(local_cloud, namespace, with_site):
    """What the tests above see is the work of `client_site`, not of the namespace."""
    left_out = set() if with_site else {"PYTHONPATH"}
    environ = {**os.environ, **local_cloud.env}
    environ = {name: value for name, value in environ.items() if value and name not in left_out}
    command = [*namespace, sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) == with_site
    assert "ClientConnector" in done.stderr or with_site


def test_tensorflow_stays(local_cloud, namespace):
    """Its gs:// too, written and read, in the trainer's environment."""
    trainer = REPOSITORY_PATH / ".venv/trainer/bin/python"
    if not trainer.exists():
        pytest.skip("the trainer's environment is missing: run `make setup`")
    path = f"gs://{local_cloud.bucket}/clients-stay/tensorflow.txt"
    code = f"""
        import tensorflow as tf
        with tf.io.gfile.GFile({path!r}, "w") as file:
            file.write("x" * 3_000_000)
        print(len(tf.io.gfile.GFile({path!r}).read()), tf.io.gfile.glob({path[:-3] + "*"!r}))
    """
    environ = {name: value for name, value in {**os.environ, **local_cloud.env}.items() if value}
    done = subprocess.run(
        [*namespace, str(trainer), "-c", textwrap.dedent(code)],
        env={**environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == f"3000000 ['{path}']\n", done.stderr[-2000:]


def test_a_sitecustomize_of_the_environment_still_runs(tmp_path):
    """The site hides it and loads it."""
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    paths = os.pathsep.join([str(CLIENT_SITE_PATH), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", "pass"], env={"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "mine\n"
