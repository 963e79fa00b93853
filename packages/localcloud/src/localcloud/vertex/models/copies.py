"""What a copy of a model has of its source, and what is refused.

Comes in: CopyModel's request and the version that it names. Goes out: the version to keep.

The rules, from the reference of CopyModel and
https://cloud.google.com/vertex-ai/docs/model-registry/copy-model: a copy keeps no alias, no evaluation, no key and no
deployment of its source, and none of its containers goes to another project but Google's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model

from localcloud.vertex.models.checks import check_model_id
from localcloud.vertex.resources.validation import Finding
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition, InvalidArgument
from localcloud.vertex.wire.methods import raw

_OWN_IMAGE = re.compile(r"([a-z]+-docker\.pkg\.dev/vertex-ai(-restricted)?|[a-z.]*gcr\.io/cloud-aiplatform)/")
"""Of containers that Google built."""


def check_copy(request: types.CopyModelRequest, location: names.Location) -> Iterator[Finding]:
    """Find what is wrong with the request of a copy.

    Raises:
        InvalidArgument: Its parent model is elsewhere.
    """
    if request.model_id:
        yield from check_model_id(request.model_id)
    if request.parent_model:
        parent = names.parse_model(request.parent_model, "parent_model")
        if parent.location != location or parent.version is not None:
            raise InvalidArgument(
                f"parent_model {request.parent_model!r} is not a model of {location}. A copy becomes a version of a"
                " model in its own location.",
                field="parent_model",
            )


def copy_of(source: Model, request: types.CopyModelRequest, location: names.Location) -> Model:
    """Return a version as its copy begins.

    Args:
        source: As callers see it.
        request: Where it shall go, and with which key.
        location: Of the copy.

    Raises:
        FailedPrecondition: Its container may not go to another project.
    """
    image = source.container_spec.image_uri
    if names.parse_model(source.name).location.project != location.project and not _OWN_IMAGE.match(image):
        raise FailedPrecondition(
            f"The Model {source.name} has the container image {image!r}. Between projects only models with Google's"
            " own containers are copied: upload it there."
        )
    model = Model()
    Model.copy_from(model, source)
    model.version_aliases, model.deployed_models = [], []
    raw(model).ClearField("encryption_spec")
    if "encryption_spec" in request:
        model.encryption_spec = request.encryption_spec
    model.original_model_info = Model.OriginalModelInfo(model=f"{source.name}@{source.version_id}")
    model.model_source_info = types.ModelSourceInfo(source_type=source.model_source_info.source_type, copy=True)
    model.etag = ""
    return model
