"""Google's own clients of the local Vertex AI: through the gateway (`api`), or at a server of a test's own (`solo`)."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import socket
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests
from google.cloud import aiplatform_v1 as v1
from google.cloud import storage
from google.cloud.aiplatform_v1.services.endpoint_service.transports import EndpointServiceGrpcTransport
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceGrpcTransport
from google.cloud.aiplatform_v1.services.metadata_service.transports import MetadataServiceGrpcTransport
from google.cloud.aiplatform_v1.services.model_service.transports import ModelServiceGrpcTransport
from google.cloud.aiplatform_v1.services.persistent_resource_service.transports import (
    PersistentResourceServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.services.prediction_service.transports import PredictionServiceGrpcTransport
from google.cloud.aiplatform_v1.services.tensorboard_service.transports import TensorboardServiceGrpcTransport
from google.cloud.aiplatform_v1.services.vizier_service.transports import VizierServiceGrpcTransport

from demo.checkout import CLOUD_CONFIG_PATH, PACKAGES_PATH
from localcloud.access.bearer import Bearers
from localcloud.access.credentials import ACCOUNT_EMAIL
from localcloud.environment.config import remember_config
from localcloud.state import State

REPOSITORY_PATH = Path(__file__).resolve().parents[4]
LOCALCLOUD_PYTHON = REPOSITORY_PATH / ".venv/localcloud/bin/python"
TRAINER_PYTHON = REPOSITORY_PATH / ".venv/trainer/bin/python"
TRAINER_IMAGE = "us-central1-docker.pkg.dev/local-project/retraining/trainer:test"
SERVING_IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
ENDED = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"}

_SAVED_MODEL = """
    import sys
    import tensorflow as tf

    class Doubler(tf.Module):
        def __init__(self):
            super().__init__()
            keys = tf.constant(["AA", "UA"])
            values = tf.constant([1.0, 2.0])
            self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0.5)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.float32)])
        def serve(self, carrier, distance):
            return {"score": self.table.lookup(carrier) * distance}

    module = Doubler()
    tf.saved_model.save(module, sys.argv[1], signatures={"serving_default": module.serve})
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Api:
    """The services, over gRPC."""

    parent: str
    jobs: v1.JobServiceClient
    models: v1.ModelServiceClient
    endpoints: v1.EndpointServiceClient
    predictions: v1.PredictionServiceClient
    vizier: v1.VizierServiceClient
    persistent: v1.PersistentResourceServiceClient
    metadata: v1.MetadataServiceClient
    boards: v1.TensorboardServiceClient

    def create_job(self, code: str = "pass", **changes: Any) -> v1.CustomJob:
        """Create a job of one replica that runs a line of Python."""
        return self.jobs.create_custom_job(parent=self.parent, custom_job=make_job(code, **changes))

    def wait(self, job: v1.CustomJob, *states: str, timeout_s: float = 30.0) -> v1.CustomJob:
        """The job once it is in one of the states (default: has ended)."""
        return poll(
            lambda: self.jobs.get_custom_job(name=job.name),
            lambda seen: seen.state.name in (set(states) or ENDED),
            timeout_s,
        )


RESOURCES = {"machine_spec": {"machine_type": "n1-standard-2"}, "min_replica_count": 1, "max_replica_count": 1}


def make_pool(code: str, *, replica_count: int = 1, **container: Any) -> dict[str, Any]:
    """A worker pool whose replicas run a line of Python."""
    command = {"image_uri": TRAINER_IMAGE, "command": ["python", "-c", textwrap.dedent(code)], **container}
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": replica_count,
        "container_spec": command,
    }


def make_job(
    code: str = "pass", *, display_name: str = "test", labels: dict[str, str] | None = None, **spec: Any
) -> v1.CustomJob:
    """A job of one replica that runs a line of Python."""
    pools = spec.pop("worker_pool_specs", None) or [make_pool(code, **spec.pop("container", {}))]
    return v1.CustomJob(display_name=display_name, labels=labels or {}, job_spec={"worker_pool_specs": pools, **spec})


def poll(look: Callable[[], Any], good: Callable[[Any], bool], timeout_s: float = 30.0) -> Any:
    """Look again and again until it is good; fail with what was last seen."""
    end = time.monotonic() + timeout_s
    while True:
        seen = look()
        if good(seen):
            return seen
        if time.monotonic() > end:
            pytest.fail(f"not so within {timeout_s} s: {seen}")
        time.sleep(0.02)


@pytest.fixture(scope="session")
def api(local_cloud) -> Api:
    """The services through the gateway, with the key file's credentials."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com:443"}
    return Api(
        parent=f"projects/{local_cloud.project}/locations/{local_cloud.region}",
        jobs=v1.JobServiceClient(client_options=options),
        models=v1.ModelServiceClient(client_options=options),
        endpoints=v1.EndpointServiceClient(client_options=options),
        predictions=v1.PredictionServiceClient(client_options=options),
        vizier=v1.VizierServiceClient(client_options=options),
        persistent=v1.PersistentResourceServiceClient(client_options=options),
        metadata=v1.MetadataServiceClient(client_options=options),
        boards=v1.TensorboardServiceClient(client_options=options),
    )


@pytest.fixture(scope="session")
def rest(local_cloud) -> Callable[..., requests.Response]:
    """REST through the gateway: `rest("GET", "customJobs")`, below the location unless the path begins with /."""
    session = local_cloud.http

    def call(
        verb: str, path: str, body: Any = None, region: str = local_cloud.region, **kwargs: Any
    ) -> requests.Response:
        place = (
            path
            if path.startswith("/")
            else f"/v1/projects/{local_cloud.project}/locations/{local_cloud.region}/{path}"
        )
        return session.request(
            verb, f"https://{region}-aiplatform.googleapis.com{place}", json=body, timeout=60, **kwargs
        )

    return call


@pytest.fixture(scope="session")
def bucket(local_cloud) -> storage.Bucket:
    """The local cloud's bucket."""
    return storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)


@pytest.fixture(scope="session")
def saved_model_uri(bucket, tmp_path_factory) -> str:
    """A SavedModel on storage: score = factor of the carrier (AA 1, UA 2, others 0.5) * distance."""
    folder = tmp_path_factory.mktemp("saved-model")
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    subprocess.run(
        [TRAINER_PYTHON, "-c", textwrap.dedent(_SAVED_MODEL), str(folder)], check=True, env=environ, timeout=120
    )
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.blob(f"vertex-tests/saved-model/{path.relative_to(folder)}").upload_from_filename(str(path))
    return f"gs://{bucket.name}/vertex-tests/saved-model"


@pytest.fixture(scope="session")
def upload(api, saved_model_uri) -> Callable[..., v1.UploadModelResponse]:
    """Upload a model: `upload("name")`, or a version of it: `upload("name", parent_model=...)`."""

    def do(model_id: str, *, parent_model: str = "", **fields: Any) -> v1.UploadModelResponse:
        model = {
            "display_name": model_id,
            "container_spec": {"image_uri": SERVING_IMAGE},
            "artifact_uri": saved_model_uri,
            **fields,
        }
        request = {
            "parent": api.parent,
            "model": model,
            "parent_model": parent_model,
            "model_id": "" if parent_model else model_id,
        }
        return api.models.upload_model(request).result(timeout=60)

    return do


class SoloServer:
    """A Vertex AI server of a test's own, which may be killed and started again; no gateway, plaintext sockets."""

    def __init__(self, state_path: Path) -> None:
        self.state_path = state_path
        self.process: subprocess.Popen[bytes] | None = None
        self.api: Api
        self.state = State(state_path)
        self.headers = {"Authorization": ""}

    def start(self) -> Api:
        """Start on the state directory; gives clients."""
        self.launch()
        self.headers = {"Authorization": f"Bearer {Bearers(self.state).issue(ACCOUNT_EMAIL)}"}
        poll(self._healthy, bool, 120)
        return self._connect()

    def launch(self) -> subprocess.Popen[bytes]:
        """Start without waiting for it."""
        command = [
            LOCALCLOUD_PYTHON,
            "-m",
            "localcloud.vertex.server",
            "--state",
            self.state_path,
            "--grace-seconds",
            "1",
        ]
        environ = {**os.environ, "PYTHONPATH": PACKAGES_PATH}
        remember_config(self.state, CLOUD_CONFIG_PATH)
        with (self.state_path / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*map(str, command)],
                env=environ,
                stdout=log,
                stderr=log,
            )
        return self.process

    def _connect(self) -> Api:
        channel = grpc.intercept_channel(
            grpc.insecure_channel(f"unix:{self.state.socket_path('vertex_grpc')}"), _Caller(self.headers)
        )
        self.api = Api(
            parent="projects/local-project/locations/us-central1",
            jobs=v1.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel)),
            models=v1.ModelServiceClient(transport=ModelServiceGrpcTransport(channel=channel)),
            endpoints=v1.EndpointServiceClient(transport=EndpointServiceGrpcTransport(channel=channel)),
            predictions=v1.PredictionServiceClient(transport=PredictionServiceGrpcTransport(channel=channel)),
            vizier=v1.VizierServiceClient(transport=VizierServiceGrpcTransport(channel=channel)),
            persistent=v1.PersistentResourceServiceClient(
                transport=PersistentResourceServiceGrpcTransport(channel=channel)
            ),
            metadata=v1.MetadataServiceClient(transport=MetadataServiceGrpcTransport(channel=channel)),
            boards=v1.TensorboardServiceClient(transport=TensorboardServiceGrpcTransport(channel=channel)),
        )
        return self.api

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the server with a signal; gives its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=30)

    def _healthy(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.state_path / "server.log").read_text()
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def ask(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and document of a REST call."""
        connection = http.client.HTTPConnection("localhost", timeout=5)
        with socket.socket(socket.AF_UNIX) as connection.sock, contextlib.closing(connection):
            connection.sock.connect(str(self.state.socket_path("vertex_rest")))
            connection.request(verb, path, json.dumps(body), self.headers)
            answer = connection.getresponse()
            return answer.status, json.load(answer)


class _Caller(grpc.UnaryUnaryClientInterceptor):
    """Says who calls: a channel without TLS carries no credentials."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._metadata = [(name.lower(), value) for name, value in headers.items()]

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details._replace(metadata=[*(details.metadata or ()), *self._metadata]), request)


@pytest.fixture
def solo(local_cloud, tmp_path) -> Iterator[SoloServer]:
    """A server of this test's own; its storage is the local cloud's."""
    server = SoloServer(tmp_path / "state")
    yield server
    if server.process is not None and server.process.poll() is None:
        server.end(signal.SIGKILL)


def deploy(
    api, endpoint: str, model: str, traffic_split: dict[str, int] | None = None, **fields: Any
) -> v1.DeployedModel:
    deployed = {"model": model, "dedicated_resources": RESOURCES, **fields}
    operation = api.endpoints.deploy_model(
        endpoint=endpoint, deployed_model=deployed, traffic_split=traffic_split or {}
    )
    return operation.result(timeout=120).deployed_model


@pytest.fixture
def empty_endpoint(api) -> Iterator[str]:
    """Name of an endpoint without anything deployed."""
    made = api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "empty"}).result(timeout=10)
    yield made.name
    for deployed in api.endpoints.get_endpoint(name=made.name).deployed_models:
        api.endpoints.undeploy_model(endpoint=made.name, deployed_model_id=deployed.id).result(timeout=30)
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)
