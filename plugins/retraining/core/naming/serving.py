"""The container that serves a model: its image, routes and port, and the folder that it looks for the model in.

In: a spec and the setting RETRAINING_SERVING_IMAGE. Out: what the registry is told, and where the training leaves the
SavedModel. https://cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements

TensorFlow Serving looks for a model in a numbered folder below its base path, as it would watch for newer ones there;
the registry names the base path, and the model lies in its folder `1`. Vertex AI knows versions itself: there is never
another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from retraining.core.documents.plan import Plan
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.spec.deployment import MODEL_DIGEST_VARIABLE, Container
from retraining.core.untyped import ProtoJson

BASE_PATH = "--model_base_path="
REST_PORT = 8501


def container_of(plan: Plan) -> Container:
    """Return what serves a run's model: the spec's container, a pre-built one, or TensorFlow Serving."""
    own = plan.spec.deployment.container
    if own is not None:
        return own
    if Container.is_prebuilt(plan.serving_image):
        return Container(image=plan.serving_image)
    return tensorflow_serving(plan.serving_image, plan.model)


def tensorflow_serving(image: str, model: str) -> Container:
    """Return TensorFlow Serving's container for a model; flags that stand twice count as they stand last."""
    return Container(
        image=image,
        port=REST_PORT,
        predict_route=f"/v1/models/{model}:predict",
        health_route=f"/v1/models/{model}",
        args=(
            "--rest_api_port=$(AIP_HTTP_PORT)",
            f"--model_name={model}",
            f"{BASE_PATH}$(AIP_STORAGE_URI)",
            "--file_system_poll_wait_seconds=0",  # once: what Vertex AI copied does not change
        ),
    )


def container_spec(container: Container, model_digest: str) -> ProtoJson:
    """Return a container as `aiplatform_v1.ModelContainerSpec` in proto-JSON; of a pre-built one the image alone.

    Args:
        container: Of the spec, or the default one.
        model_digest: Of the model's files: what serves can prove them before it loads any. The registry keeps it with
            the version, where no job can write.
    """
    if Container.is_prebuilt(container.image):
        return {"image_uri": container.image}
    return {
        "image_uri": container.image,
        "command": list(container.command),
        "args": list(container.args),
        "env": [
            {"name": name, "value": value}
            for name, value in {**container.environment, MODEL_DIGEST_VARIABLE: model_digest}.items()
        ],
        "ports": [{"container_port": container.port}],
        "predict_route": container.predict_route,
        "health_route": container.health_route,
    }


def is_numbered(args: Sequence[str]) -> bool:
    """Return whether a container looks, by its arguments, for the model in a numbered folder."""
    return any(each.startswith(BASE_PATH) for each in args)


def model_uri(plan: Plan, base_uri: str) -> str:
    """Return where a job leaves the run's model, below its base output directory."""
    folder_uri = storage.model_uri(base_uri)
    return storage.numbered_uri(folder_uri) if is_numbered(container_of(plan).args) else folder_uri


def trained_model_uri(plan: Plan) -> str:
    """Return where the run's training job leaves the model."""
    return model_uri(plan, storage.training_uri(storage.results_uri(plan)))


def registered_uri(plan: Plan, model_uri: str) -> str:
    """Return the folder that the registry is told of a model.

    Args:
        plan: The run.
        model_uri: Where the training says that it left the model.

    Raises:
        ContractError: The container would not find it there.
    """
    if not is_numbered(container_of(plan).args):
        return model_uri
    folder_uri, _, number = model_uri.rpartition("/")
    if number != storage.NUMBER:
        raise ContractError(
            storage.document_uri(plan.run_uri, "report"),
            f"the model in {model_uri}",
            f"a folder {storage.NUMBER}, where TensorFlow Serving looks for it",
            "Let the trainer write to the model_uri of its request; or describe the container that serves in "
            "deployment.container",
        )
    return folder_uri
