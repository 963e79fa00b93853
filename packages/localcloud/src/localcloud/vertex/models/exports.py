"""What ExportModel writes, and what is refused.

Comes in: its request and the version that it names. Goes out: the folder of the export, and the files in it.

A custom-trained model has one format, `custom-trained`, and what is exported is its artifact. The files go to
`model-<id>/custom-trained/<time of the call>` below the destination, as the service names it; its reference
(https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.models/export) has another name. Clients
find the folder in the operation's metadata.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model

from localcloud.vertex.resources.buckets import Buckets, path_parts
from localcloud.vertex.resources.validation import Finding, check_bucket, split_gcs_uri
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition

CUSTOM_TRAINED = "custom-trained"
_DESTINATION = "output_config.artifact_destination.output_uri_prefix"


def export_formats(model: Model) -> list[Model.ExportFormat]:
    """Return the formats in which a model can be exported: none of one without an artifact."""
    if not model.artifact_uri:
        return []
    contents = [Model.ExportFormat.ExportableContent.ARTIFACT]
    return [Model.ExportFormat(id=CUSTOM_TRAINED, exportable_contents=contents)]


def check_export(request: types.ExportModelRequest, model: Model, buckets: Buckets) -> Iterator[Finding]:
    """Find what is wrong with the request of an export.

    Raises:
        FailedPrecondition: The model is not exported so.
    """
    config = request.output_config
    wanted = config.export_format_id
    what = "image" if config.image_destination.output_uri else "artifact"
    if what == "image" or not export_formats(model) or wanted not in ("", CUSTOM_TRAINED):
        offered = [each.id for each in export_formats(model)]
        raise FailedPrecondition(
            f"Exporting {what} for model `{model.name}@{model.version_id}` in format `{wanted}` is not supported."
            f" Expected an artifact_destination, and one of its supported_export_formats: {offered}."
        )
    destination = config.artifact_destination.output_uri_prefix
    if not destination:
        yield _DESTINATION, "Required field is not set."
    else:
        yield from check_bucket(destination, _DESTINATION, buckets)


def export_folder(request: types.ExportModelRequest, model: Model, moment: dt.datetime) -> str:
    """Return the gs:// address of the folder that an export makes, without a slash at its end.

    Args:
        moment: Of the call.
    """
    destination = request.output_config.artifact_destination.output_uri_prefix.rstrip("/")
    time = moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"{destination}/model-{names.parse_model(model.name).model_id}/{CUSTOM_TRAINED}/{time}"


def copy_artifact(source_uri: str, folder_uri: str, buckets: Buckets, check: Callable[[], None]) -> None:
    """Copy all files of a model's artifact.

    Args:
        check: Raises when the work shall end; asked before each file.

    Raises:
        FailedPrecondition: There are none, or the name of one leads elsewhere.
    """
    (from_bucket, path), (to_bucket, folder) = split_gcs_uri(source_uri), split_gcs_uri(folder_uri)
    prefix = f"{path.rstrip('/')}/" if path else ""
    paths = [each for each in buckets.list_paths(from_bucket, prefix) if not each.endswith("/")]
    if not paths:
        raise FailedPrecondition(f"The model's artifact {source_uri} is empty or does not exist. Upload it first.")
    places = {each: "/".join([folder, *path_parts(each.removeprefix(prefix))]) for each in paths}  # before the first
    for each, place in places.items():
        check()
        buckets.copy(from_bucket, each, to_bucket, place)
