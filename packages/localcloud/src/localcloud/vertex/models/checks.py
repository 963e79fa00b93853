"""What is wrong with a model that shall be kept.

Comes in: an upload's request. Goes out: findings; of its artifacts, a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model, ModelContainerSpec

from localcloud.vertex.models import aliases
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.explanation_specs import check_spec
from localcloud.vertex.resources.validation import (
    Finding,
    check_bucket,
    check_display_name,
    check_id,
    check_labels,
    split_gcs_uri,
)
from localcloud.vertex.wire.errors import FailedPrecondition

_MAX_PORT = 65_535
_MODEL_ID = r"[a-z_][a-z0-9_-]{0,62}"


def check_upload(request: types.UploadModelRequest, model: Model, buckets: Buckets) -> Iterator[Finding]:
    """Find what is wrong with a model that shall be kept."""
    if request.model_id:
        yield from check_model_id(request.model_id)
    yield from check_display_name(model.display_name, "model.display_name")
    yield from check_labels(model.labels, "model.labels")
    for alias in model.version_aliases:
        yield from aliases.check_alias(alias, "model.version_aliases")
    yield from _check_container(model.container_spec)
    if "explanation_spec" in model:
        yield from check_spec(model.explanation_spec, "model.explanation_spec", model.container_spec.image_uri)
    prebuilt = _expected_files(model.container_spec.image_uri) is not None
    if model.artifact_uri:
        yield from check_bucket(model.artifact_uri, "model.artifact_uri", buckets)
    elif prebuilt:
        yield "model.artifact_uri", "A pre-built container needs a model. Set artifact_uri to its gs:// folder."
    for what in ("instance", "parameters", "prediction"):
        if uri := getattr(model.predict_schemata, f"{what}_schema_uri"):
            yield from check_bucket(uri, f"model.predict_schemata.{what}_schema_uri", buckets)


def check_model_id(model_id: str) -> Iterator[Finding]:
    """Find what is wrong with the id that somebody gives to a new model."""
    expected = "at most 63 of [a-z0-9_-], not beginning with a digit or a dash"
    yield from check_id(model_id, _MODEL_ID, expected, "model_id")


def _check_container(spec: ModelContainerSpec) -> Iterator[Finding]:
    """Find what is wrong with the container that serves."""
    field = "model.container_spec"
    if not spec.image_uri:
        yield field, "A custom-trained model needs a serving container. Set container_spec.image_uri."
    for name, route in (("predict_route", spec.predict_route), ("health_route", spec.health_route)):
        if route and not route.startswith("/"):
            yield f"{field}.{name}", f"The route {route!r} is no path. Expected one that starts with '/'."
    for port in spec.ports:
        if not 1 <= port.container_port <= _MAX_PORT:
            yield f"{field}.ports", f"The port is {port.container_port}. Expected 1 to {_MAX_PORT}."
    for variable in spec.env:
        if variable.name.startswith("AIP_"):
            yield f"{field}.env", f"{variable.name} is set by Vertex AI. Expected names without the prefix AIP_."


# What pre-built containers look for (https://cloud.google.com/vertex-ai/docs/training/exporting-model-artifacts); a
# custom container's folder may hold anything.
_ARTIFACTS = {
    "tf2": (("saved_model.pb", "saved_model.pbtxt"), "a SavedModel"),
    "sklearn": (("model.pkl", "model.joblib"), "a scikit-learn model"),
    "xgboost": (("model.bst", "model.pkl", "model.joblib"), "an XGBoost model"),
}


def _expected_files(image_uri: str) -> tuple[tuple[str, ...], str] | None:
    """Return what a serving container expects in its model's folder, and what that is; None when it may be anything."""
    prebuilt = re.search(r"/prediction/(?P<framework>tf2|sklearn|xgboost)-", image_uri)
    return _ARTIFACTS[prebuilt["framework"]] if prebuilt else None


def check_artifact(model: Model, buckets: Buckets) -> None:
    """Look for what the serving container of a model expects in its folder.

    Raises:
        FailedPrecondition: It is not there.
    """
    expected = _expected_files(model.container_spec.image_uri)
    if expected is None or not model.artifact_uri:
        return
    files, what = expected
    bucket, path = split_gcs_uri(model.artifact_uri)
    folder = path.rstrip("/") + "/" if path else ""
    paths = buckets.list_paths(bucket, folder)
    if not paths:
        raise FailedPrecondition(
            f"Model directory {model.artifact_uri} is expected to contain {what}, but it is empty or does not exist."
        )
    if not {f"{folder}{name}" for name in files} & set(paths):
        seen = [path.removeprefix(folder) for path in paths[:5]]
        raise FailedPrecondition(
            f"Model directory {model.artifact_uri} is expected to contain exactly one of: [{', '.join(files)}]."
            f" Found {seen}."
        )
