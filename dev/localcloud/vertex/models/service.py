"""ModelService: models, their versions, and the aliases of these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.models import aliases
from localcloud.vertex.models.versions import (
    add_version,
    aliases_of,
    delete_version,
    find_version,
    model_taken,
    refuse_deployed,
    version_key,
    view,
    write_aliases,
)
from localcloud.vertex.resources.store import MODEL_VERSIONS, MODELS, Store, now
from localcloud.vertex.resources.validation import (
    Finding,
    check_bucket,
    check_display_name,
    check_id,
    check_labels,
    refuse,
    split_gcs_uri,
)
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    Unimplemented,
)
from localcloud.vertex.wire.listing import MODEL_FIELDS, VERSION_FIELDS, list_page
from localcloud.vertex.wire.schema import clear_output_only

if TYPE_CHECKING:
    from localcloud.vertex.front.dispatch import Context
    from localcloud.vertex.resources.operations import Progress

_MODEL_ID = r"[a-z_][a-z0-9_-]{0,62}"
_MODEL_FIELDS = {"display_name", "description", "labels"}
_VERSION_FIELDS = {"version_description", "labels"}


def upload_model(request: types.UploadModelRequest, context: Context) -> operations_pb2.Operation:
    """Keep a new model, or, with `parent_model`, a new version of it."""
    location = names.parse_location(request.parent)
    model = Model()
    Model.copy_from(model, request.model)
    wished_aliases = list(model.version_aliases)
    clear_output_only(model)
    model.version_aliases = wished_aliases
    family_name = _family_name(request, location, context.cloud.store)
    refuse(_check_upload(request, model, context))
    if not request.parent_model and context.cloud.store.find(MODELS, family_name) is not None:
        raise model_taken(family_name)
    metadata = types.UploadModelOperationMetadata()

    def work(progress: Progress) -> types.UploadModelResponse:
        progress.check()
        _check_artifact(model, context)
        version = add_version(context.cloud.store, request, family_name, model)
        return types.UploadModelResponse(model=family_name, model_version_id=version.version_id)

    return context.cloud.operations.start(context, family_name, metadata, work)


def get_model(request: types.GetModelRequest, context: Context) -> Model:
    """A model's default version, or the version that `@id` or `@alias` names."""
    name = names.parse_model(request.name)
    return view(context.cloud.store, name, find_version(context.cloud.store, name))


def list_models(request: types.ListModelsRequest, context: Context) -> types.ListModelsResponse:
    """Models of a location, each as its default version, newest first."""
    names.parse_location(request.parent)
    store = context.cloud.store
    found = []
    for family in store.list_under(MODELS, request.parent):
        name = names.parse_model(family.name)
        found.append(view(store, name, find_version(store, name)))
    page, token = list_page(found, request, MODEL_FIELDS)
    return types.ListModelsResponse(models=page, next_page_token=token)


def list_model_versions(request: types.ListModelVersionsRequest, context: Context) -> types.ListModelVersionsResponse:
    """All versions of a model, oldest first."""
    name, store = names.parse_model(request.name), context.cloud.store
    store.get(MODELS, name.model_name)
    versions = sorted(store.list_under(MODEL_VERSIONS, name.model_name), key=lambda version: int(version.version_id))
    found = [view(store, name, version) for version in versions]
    page, token = list_page(found, request, VERSION_FIELDS, times="version_")
    return types.ListModelVersionsResponse(models=page, next_page_token=token)


def update_model(request: types.UpdateModelRequest, context: Context) -> Model:
    """Change a model (`models/x`, `models/x@-`) or one version of it (`models/x@2`), never both at once."""
    name, store = names.parse_model(request.model.name, "model.name"), context.cloud.store
    of_version = name.version not in (None, "-")
    allowed = _VERSION_FIELDS if of_version else _MODEL_FIELDS
    paths = list(request.update_mask.paths)
    if wrong := [path for path in paths if path.split(".")[0] not in allowed]:
        raise FailedPrecondition(
            f"update_mask names {wrong}. Expected fields of the {'version' if of_version else 'model'}:"
            f" {sorted(allowed)}."
        )
    refuse(
        [
            *check_display_name(request.model.display_name, "model.display_name"),
            *check_labels(request.model.labels, "model.labels"),
        ]
    )
    with store.transaction():
        version = find_version(store, name)
        _check_etag(request.model.etag, view(store, name, version))
        kind, key = (MODEL_VERSIONS, version_key(name, version.version_id)) if of_version else (MODELS, name.model_name)
        with store.change(kind, key) as stored:
            _copy_paths(request.model, stored, paths)
            stored.update_time = stored.version_update_time = now()
        return view(store, name, store.get(MODEL_VERSIONS, version_key(name, version.version_id)))


def merge_version_aliases(request: types.MergeVersionAliasesRequest, context: Context) -> Model:
    """Give aliases to a version and take them away; one that another version had moves."""
    name, store = names.parse_model(request.name), context.cloud.store
    if name.version is None:
        raise InvalidArgument(
            f"The name {request.name!r} has no version. Expected …/models/{name.model_id}@VERSION.", field="name"
        )
    with store.transaction():
        version = find_version(store, name)
        before = aliases_of(store, name.model_name)
        write_aliases(store, name, before, aliases.merge(before, version.version_id, list(request.version_aliases)))
        return view(store, name, store.get(MODEL_VERSIONS, version_key(name, version.version_id)))


def delete_model(request: types.DeleteModelRequest, context: Context) -> operations_pb2.Operation:
    """Remove a model with all versions; refused while any of them is deployed."""
    name, store = names.parse_model(request.name), context.cloud.store
    if name.version is not None:
        raise InvalidArgument(f"The name {request.name!r} has a version. Use DeleteModelVersion for it.", field="name")
    store.get(MODELS, name.model_name)
    refuse_deployed(store, name.model_name, None)

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        with store.transaction():
            refuse_deployed(store, name.model_name, None)
            for version in store.list_under(MODEL_VERSIONS, name.model_name):
                delete_version(store, name, version.version_id)
            store.delete(MODELS, name.model_name)
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, name.model_name, types.DeleteOperationMetadata(), work)


def delete_model_version(request: types.DeleteModelVersionRequest, context: Context) -> operations_pb2.Operation:
    """Remove one version; refused while it is deployed and for a model's only version."""
    name, store = names.parse_model(request.name), context.cloud.store
    if name.version is None:
        raise InvalidArgument(
            f"The name {request.name!r} has no version. Expected …/models/{name.model_id}@VERSION.", field="name"
        )
    version_id = find_version(store, name).version_id
    refuse_deployed(store, name.model_name, version_id)
    if len(store.list_under(MODEL_VERSIONS, name.model_name)) == 1:
        raise FailedPrecondition(
            f"Version {version_id} is the only one of {name.model_name}. Use DeleteModel to delete the model."
        )

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        with store.transaction():
            refuse_deployed(store, name.model_name, version_id)
            before = aliases_of(store, name.model_name)
            delete_version(store, name, version_id)
            write_aliases(store, name, before, aliases.without_version(before, version_id))
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, name.model_name, types.DeleteOperationMetadata(), work)


def _family_name(request: types.UploadModelRequest, location: names.Location, store: Store) -> str:
    if request.parent_model:
        parent = names.parse_model(request.parent_model, "parent_model")
        if request.model_id and request.model_id != parent.model_id:
            raise InvalidArgument(
                f"model_id {request.model_id!r} is not the one of parent_model {request.parent_model!r}."
                f" Give only one of them.",
                field="model_id",
            )
        store.get(MODELS, parent.model_name)
        return parent.model_name
    return f"{location}/models/{request.model_id or names.new_id()}"


def _check_upload(request: types.UploadModelRequest, model: Model, context: Context) -> Iterator[Finding]:
    if request.model_id:
        yield from check_id(
            request.model_id, _MODEL_ID, "at most 63 of [a-z0-9_-], not beginning with a digit or a dash", "model_id"
        )
    yield from check_display_name(model.display_name, "model.display_name")
    yield from check_labels(model.labels, "model.labels")
    for alias in model.version_aliases:
        yield from aliases.check_alias(alias, "model.version_aliases")
    if not model.container_spec.image_uri:
        yield "model.container_spec", "A custom-trained model needs a serving container. Set container_spec.image_uri."
    if model.artifact_uri:
        yield from check_bucket(model.artifact_uri, "model.artifact_uri", context.cloud.buckets)
    elif context.cloud.images.find(model.container_spec.image_uri, "serving"):
        raise Unimplemented(
            "The local cloud does not offer models without model.artifact_uri for this container. Set it to the gs://"
            " folder of a SavedModel."
        )


# What pre-built containers look for (https://cloud.google.com/vertex-ai/docs/training/exporting-model-artifacts); a
# custom container's folder may hold anything.
_ARTIFACTS = {
    "sklearn": (("model.pkl", "model.joblib"), "a scikit-learn model"),
    "xgboost": (("model.bst", "model.pkl", "model.joblib"), "an XGBoost model"),
}
_SAVED_MODEL = (("saved_model.pb", "saved_model.pbtxt"), "a SavedModel")


def _expected_files(image_uri: str, context: Context) -> tuple[tuple[str, ...], str] | None:
    """Give what a serving container expects in its model's folder, and what that is; None when it may be anything."""
    if context.cloud.images.find(image_uri, "serving"):
        return _SAVED_MODEL
    prebuilt = re.search(r"/prediction/(?P<framework>sklearn|xgboost)-", image_uri)
    return _ARTIFACTS[prebuilt["framework"]] if prebuilt else None


def _check_artifact(model: Model, context: Context) -> None:
    expected = _expected_files(model.container_spec.image_uri, context)
    if expected is None or not model.artifact_uri:
        return
    wanted, what = expected
    bucket, path = split_gcs_uri(model.artifact_uri)
    folder = path.rstrip("/") + "/" if path else ""
    found = context.cloud.buckets.list_paths(bucket, folder)
    if not found:
        raise FailedPrecondition(
            f"Model directory {model.artifact_uri} is expected to contain {what}, but it is empty or does not exist."
        )
    if not {f"{folder}{name}" for name in wanted} & set(found):
        seen = [path.removeprefix(folder) for path in found[:5]]
        raise FailedPrecondition(
            f"Model directory {model.artifact_uri} is expected to contain exactly one of: [{', '.join(wanted)}]."
            f" Found {seen}."
        )


def _check_etag(etag: str, seen: Model) -> None:
    if etag and etag != seen.etag:
        raise Aborted(
            f"The etag {etag!r} of {seen.name} is not the present one. Read the model again and repeat the change."
        )


def _copy_paths(source: Model, target: Model, paths: list[str]) -> None:
    for path in paths:
        field, _, key = path.partition(".")
        if key:
            target.labels[key] = source.labels[key]
        else:
            setattr(target, field, getattr(source, field))
