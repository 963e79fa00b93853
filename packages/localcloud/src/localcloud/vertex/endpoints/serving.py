"""The deployed models of all endpoints.

Comes in: a model version and the id it is deployed under. Goes out: answers to prediction requests.
"""

from __future__ import annotations

import functools
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1.types import DeployedModel, Endpoint, Model

from localcloud.vertex.endpoints.served_model import JSON, PREDICT_TIMEOUT_S, ServedModel
from localcloud.vertex.processes.logs import ProcessLog, prediction_log
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.processes.serving_contract import Container
from localcloud.vertex.resources.operations import Progress
from localcloud.vertex.resources.store import DEPLOYMENT_RESOURCE_POOLS, ENDPOINTS
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition, Unavailable

FindVersion = Callable[[names.ModelName], Model]
LOGGER = logging.getLogger(__name__)


class Serving:
    """All deployed models.

    Args:
        folder: Where artifacts and output are kept, a folder for each.
        find_version: Finds the model version that a name means.
    """

    def __init__(self, machinery: Machinery, folder: Path, find_version: FindVersion) -> None:
        self._machinery = machinery
        self._folder = folder
        self._find_version = find_version
        self._lock = threading.Lock()
        self._served: dict[tuple[str, str], ServedModel] = {}

    def deploy(self, endpoint_name: str, deployed: DeployedModel, version: Model, progress: Progress) -> None:
        """Fetch, start, and wait until it answers.

        Raises:
            ApiError: It does not come up; nothing is left of it.
            Cancelled: The operation was cancelled; nothing is left of it.
        """
        served = self._make(endpoint_name, deployed, version)
        try:
            served.start()
            limit = version.container_spec.deployment_timeout
            served.wait_ready(progress, time.monotonic() + limit.total_seconds() if limit else None)
        except BaseException:  # whatever stops it: what never became ready must not stay
            self.undeploy(endpoint_name, deployed.id)
            raise

    def undeploy(self, endpoint_name: str, deployed_model_id: str) -> None:
        """End a deployed model's process and drop its files."""
        with self._lock:
            served = self._served.pop((endpoint_name, deployed_model_id), None)
        if served is not None:
            served.stop()
            shutil.rmtree(served.folder, ignore_errors=True)

    def predict(self, endpoint: Endpoint, deployed_model_id: str, body: bytes, content_type: str = JSON) -> bytes:
        """Answer of a deployed model to a request of its container.

        Raises:
            ApiError: Its container refuses the request.
            Unavailable: It is not up (again) yet.
        """
        with self._lock:
            served = self._served.get((endpoint.name, deployed_model_id))
        if served is None:
            raise Unavailable(
                f"The deployed model {deployed_model_id} of {endpoint.name} is not up. Try again in a moment."
            )
        limit = endpoint.client_connection_config.inference_timeout
        ask = functools.partial(
            served.predict, body, content_type, limit.total_seconds() if limit else PREDICT_TIMEOUT_S
        )
        about = f"{names.last_part(endpoint.name)}/{deployed_model_id}"
        fault = self._machinery.faults.take("DeployedModel.Predict", kinds=("error", "delay", "skew"), about=about)
        return ask() if fault is None else _faulty(fault, ask)

    def resume(self) -> None:
        """After a restart: serve everything that is deployed, in the background."""
        for endpoint in self._machinery.store.list_all(ENDPOINTS):
            for deployed in endpoint.deployed_models:
                name = names.parse_model(f"{deployed.model}@{deployed.model_version_id}")
                try:
                    self._make(endpoint.name, deployed, self._find_version(name)).start()
                except ApiError as error:
                    LOGGER.error("%s: deployed model %s is not served: %s", endpoint.name, deployed.id, error.message)

    def close(self) -> None:
        """End all processes; what is deployed stays deployed."""
        with self._lock:
            served = list(self._served.values())
        threads = [threading.Thread(target=each.stop) for each in served]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def serve(self, version: Model, deployed: DeployedModel, where: str, log: ProcessLog, folder: Path) -> ServedModel:
        """Return a process of a model that is on no endpoint; whoever asked starts and stops it.

        Args:
            version: The model's version.
            deployed: Its id, machines and service account.
            where: What messages call it.
            log: Takes its lines.
            folder: Its artifacts and its output are kept here; its name stands for the endpoint's.

        Raises:
            FailedPrecondition: Nothing stands for its image.
        """
        spec, images = version.container_spec, self._machinery.images
        image = images.find_image(spec.image_uri, "serving")
        if image is None:
            raise FailedPrecondition(
                f"Failed to pull the serving image {spec.image_uri!r}: it is not in the local cloud's table. Expected"
                f" one of {images.patterns('serving')}; add an entry to the file of `up --config`."
            )
        container = Container(
            image=image,
            spec=spec,
            artifact_uri=version.artifact_uri,
            endpoint_id=folder.name.removesuffix(f"-{deployed.id}"),
            deployed_model_id=deployed.id,
            machine_type=self._machine_type(deployed),
            account=deployed.service_account,
        )
        return ServedModel(machinery=self._machinery, container=container, where=where, log=log, folder=folder)

    def _machine_type(self, deployed: DeployedModel) -> str:
        resources = deployed.dedicated_resources
        if "shared_resources" in deployed:
            resources = self._machinery.store.get(
                DEPLOYMENT_RESOURCE_POOLS, deployed.shared_resources
            ).dedicated_resources
        return str(resources.machine_spec.machine_type)

    def _make(self, endpoint_name: str, deployed: DeployedModel, version: Model) -> ServedModel:
        endpoint_id = names.last_part(endpoint_name)
        location = names.parse_location(str(names.location_of(endpoint_name)))
        where = f"deployed model {deployed.id} of {endpoint_name}"
        log = prediction_log(self._machinery.shipper, location.project, location.region, endpoint_id, deployed.id)
        served = self.serve(version, deployed, where, log, self._folder / f"{endpoint_id}-{deployed.id}")
        with self._lock:
            self._served[(endpoint_name, deployed.id)] = served
        return served


def _faulty(action: Mapping[str, Any], predict: Callable[[], bytes]) -> bytes:
    """Answer as a serving process with a fault does."""
    if action["kind"] == "error":
        raise ApiError(action["message"], code=action["code"])
    if action["kind"] == "delay":
        time.sleep(action["seconds"])
        return predict()
    document = json.loads(predict())
    return json.dumps({**document, "predictions": _skewed(document.get("predictions"), action["by"])}).encode()


def _skewed(answer: object, by: float) -> object:
    """Return an answer with another number in the place of each."""
    if isinstance(answer, list):
        return [_skewed(each, by) for each in answer]
    if isinstance(answer, dict):
        return {key: _skewed(each, by) for key, each in answer.items()}
    return answer + by if isinstance(answer, int | float) else answer
