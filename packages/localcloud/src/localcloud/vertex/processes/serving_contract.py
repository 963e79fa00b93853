"""Vertex AI's contract with a container that serves a model, whatever serves in it.

Comes in: a model's container spec. Goes out: the variables and routes that hold for it, requests for it, its answers.
https://cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from google.cloud.aiplatform_v1.types import ModelContainerSpec

from localcloud.vertex.processes.images import Image
from localcloud.vertex.wire.errors import ApiError

# A JSON value.
Json = Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Container:
    """What serves a model.

    Attributes:
        image: What stands for its image.
        spec: Command, arguments, variables, routes.
        artifact_uri: The model's folder on storage; "": the image holds it.
        endpoint_id: Last part of the endpoint's name; of a batch prediction, the job's.
        deployed_model_id: Its id there.
        machine_type: What it would run on.
        account: Service account that its process is; "": that of custom code.
    """

    image: Image
    spec: ModelContainerSpec
    artifact_uri: str
    endpoint_id: str
    deployed_model_id: str
    machine_type: str
    account: str = ""

    @property
    def health_route(self) -> str:
        """Where it says that it is healthy."""
        return self.spec.health_route or f"/v1/endpoints/{self.endpoint_id}/deployedModels/{self.deployed_model_id}"

    @property
    def predict_route(self) -> str:
        """Where it is asked."""
        default = f"/v1/endpoints/{self.endpoint_id}/deployedModels/{self.deployed_model_id}:predict"
        return self.spec.predict_route or default

    def variables(self, port: int) -> dict[str, str]:
        """Return what the service tells it, beside the project's number."""
        return {
            "AIP_MODE": "PREDICTION",
            "AIP_MODE_VERSION": "1.0.0",
            "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
            "AIP_ENDPOINT_ID": self.endpoint_id,
            "AIP_MODEL_NAME": self.endpoint_id,
            "AIP_DEPLOYED_MODEL_ID": self.deployed_model_id,
            "AIP_VERSION_NAME": self.deployed_model_id,
            "AIP_MACHINE_TYPE": self.machine_type,
            "AIP_HTTP_PORT": str(port),
            "AIP_HEALTH_ROUTE": self.health_route,
            "AIP_PREDICT_ROUTE": self.predict_route,
            "AIP_STORAGE_URI": self.artifact_uri,
        }


def request_body(instances: list[Json], parameters: Json = None) -> bytes:
    """Return what a container is sent; parameters only where the caller gives some."""
    return json.dumps({"instances": instances} | ({} if parameters is None else {"parameters": parameters})).encode()


def read_predictions(answer: bytes, instances: int) -> list[Json]:
    """Return what a container answered, one prediction for each instance.

    Raises:
        ApiError: It answered something else.
    """
    try:
        document = json.loads(answer)
    except ValueError:
        document = None
    predictions = document.get("predictions") if isinstance(document, dict) else None
    if not isinstance(predictions, list) or len(predictions) != instances:
        seen = len(predictions) if isinstance(predictions, list) else f"none: {answer[:200].decode(errors='replace')}"
        raise ApiError(
            f"Invalid response of the container. Expected a prediction for each of {instances} instances in"
            f' "predictions", got {seen}.',
            code="INTERNAL",
        )
    return predictions
