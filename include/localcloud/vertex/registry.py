"""ModelService: models, their versions, and the aliases of these.

A model is kept once (names, description, labels, the last version id that was given out) and each version once
(everything else); what callers see is both laid over each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex import aliases, names
from localcloud.vertex.errors import Aborted, AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, Unimplemented
from localcloud.vertex.listing import MODEL_FIELDS, VERSION_FIELDS, list_page
from localcloud.vertex.methods import message_bytes
from localcloud.vertex.schema import clear_output_only
from localcloud.vertex.store import ENDPOINTS, EVALUATIONS, MODEL_VERSIONS, MODELS, Store, now
from localcloud.vertex.validation import Finding, check_bucket, check_display_name, check_id, check_labels, refuse, split_gcs_uri

if TYPE_CHECKING:
    from localcloud.vertex.dispatch import Context
    from localcloud.vertex.operations import Progress

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
        raise _taken(family_name)
    metadata = types.UploadModelOperationMetadata()

    def work(progress: Progress) -> types.UploadModelResponse:
        progress.check()
        _check_artifact(model.artifact_uri, context)
        version = _add_version(context.cloud.store, request, family_name, model)
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
    for family in store.list(MODELS, request.parent):
        name = names.parse_model(family.name)
        found.append(view(store, name, find_version(store, name)))
    page, token = list_page(found, request, MODEL_FIELDS)
    return types.ListModelsResponse(models=page, next_page_token=token)


def list_model_versions(request: types.ListModelVersionsRequest, context: Context) -> types.ListModelVersionsResponse:
    """All versions of a model, newest first."""
    name, store = names.parse_model(request.name), context.cloud.store
    store.get(MODELS, name.model_name)
    found = [view(store, name, version) for version in store.list(MODEL_VERSIONS, name.model_name)]
    page, token = list_page(found, request, VERSION_FIELDS)
    return types.ListModelVersionsResponse(models=page, next_page_token=token)


def update_model(request: types.UpdateModelRequest, context: Context) -> Model:
    """Change a model (`models/x`, `models/x@-`) or one version of it (`models/x@2`), never both at once."""
    name, store = names.parse_model(request.model.name, "model.name"), context.cloud.store
    of_version = name.version not in (None, "-")
    allowed = _VERSION_FIELDS if of_version else _MODEL_FIELDS
    paths = list(request.update_mask.paths)
    if wrong := [path for path in paths if path.split(".")[0] not in allowed]:
        raise FailedPrecondition(f"update_mask names {wrong}. Expected fields of the {'version' if of_version else 'model'}: {sorted(allowed)}.")
    refuse([*check_display_name(request.model.display_name, "model.display_name"), *check_labels(request.model.labels, "model.labels")])
    with store.transaction():
        version = find_version(store, name)
        _check_etag(request.model.etag, view(store, name, version))
        kind, key = (MODEL_VERSIONS, _version_key(name, version.version_id)) if of_version else (MODELS, name.model_name)
        with store.change(kind, key) as stored:
            _copy_paths(request.model, stored, paths)
            stored.update_time = stored.version_update_time = now()
        return view(store, name, store.get(MODEL_VERSIONS, _version_key(name, version.version_id)))


def merge_version_aliases(request: types.MergeVersionAliasesRequest, context: Context) -> Model:
    """Give aliases to a version and take them away; one that another version had moves."""
    name, store = names.parse_model(request.name), context.cloud.store
    if name.version is None:
        raise InvalidArgument(f"The name {request.name!r} has no version. Expected …/models/{name.model_id}@VERSION.", field="name")
    with store.transaction():
        version = find_version(store, name)
        before = aliases_of(store, name.model_name)
        _write_aliases(store, name, before, aliases.merge(before, version.version_id, list(request.version_aliases)))
        return view(store, name, store.get(MODEL_VERSIONS, _version_key(name, version.version_id)))


def delete_model(request: types.DeleteModelRequest, context: Context) -> operations_pb2.Operation:
    """Remove a model with all versions; refused while any of them is deployed."""
    name, store = names.parse_model(request.name), context.cloud.store
    if name.version is not None:
        raise InvalidArgument(f"The name {request.name!r} has a version. Use DeleteModelVersion for it.", field="name")
    store.get(MODELS, name.model_name)
    _refuse_deployed(store, name.model_name, None)

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        with store.transaction():
            _refuse_deployed(store, name.model_name, None)
            for version in store.list(MODEL_VERSIONS, name.model_name):
                _delete_version(store, name, version.version_id)
            store.delete(MODELS, name.model_name)
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, name.model_name, types.DeleteOperationMetadata(), work)


def delete_model_version(request: types.DeleteModelVersionRequest, context: Context) -> operations_pb2.Operation:
    """Remove one version; refused while it is deployed and for a model's only version."""
    name, store = names.parse_model(request.name), context.cloud.store
    if name.version is None:
        raise InvalidArgument(f"The name {request.name!r} has no version. Expected …/models/{name.model_id}@VERSION.", field="name")
    version_id = find_version(store, name).version_id
    _refuse_deployed(store, name.model_name, version_id)
    if len(store.list(MODEL_VERSIONS, name.model_name)) == 1:
        raise FailedPrecondition(f"Version {version_id} is the only one of {name.model_name}. Use DeleteModel to delete the model.")

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        with store.transaction():
            _refuse_deployed(store, name.model_name, version_id)
            before = aliases_of(store, name.model_name)
            _delete_version(store, name, version_id)
            _write_aliases(store, name, before, aliases.without_version(before, version_id))
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, name.model_name, types.DeleteOperationMetadata(), work)


def find_version(store: Store, name: names.ModelName) -> Model:
    """The stored version that a name means: by id, by alias, or the default one.

    Raises:
        NotFound: There is no such model or version.
    """
    store.get(MODELS, name.model_name)
    wanted = aliases.DEFAULT if name.version in (None, "-") else str(name.version)
    version_id = aliases.find(aliases_of(store, name.model_name), wanted)
    if version_id is None:
        raise NotFound(f"The Model {name.model_name}@{wanted} does not exist.")
    return store.get(MODEL_VERSIONS, _version_key(name, version_id))


def aliases_of(store: Store, model_name: str) -> dict[str, list[str]]:
    """Aliases by version id."""
    return {version.version_id: list(version.version_aliases) for version in store.list(MODEL_VERSIONS, model_name)}


def view(store: Store, name: names.ModelName, version: Model) -> Model:
    """A version as callers see it: the model's own fields laid over it, labels merged, deployments filled in."""
    family = store.get(MODELS, name.model_name)
    seen = Model()
    Model.copy_from(seen, version)
    seen.name = family.name
    seen.display_name, seen.description = family.display_name, family.description
    seen.create_time, seen.update_time = family.create_time, max(family.update_time, version.version_update_time)
    seen.labels = {**family.labels, **version.labels}
    seen.deployed_models = [
        types.DeployedModelRef(endpoint=endpoint.name, deployed_model_id=deployed.id)
        for endpoint, deployed in deployments(store, family.name, version.version_id)
    ]
    seen.etag = hashlib.sha256(message_bytes(family) + message_bytes(version)).hexdigest()[:16]
    return seen


def deployments(store: Store, model_name: str, version_id: str | None) -> Iterator[tuple[types.Endpoint, types.DeployedModel]]:
    """Where a model, or one version of it, is deployed."""
    for endpoint in store.list_all(ENDPOINTS):
        for deployed in endpoint.deployed_models:
            if deployed.model == model_name and version_id in (None, deployed.model_version_id):
                yield endpoint, deployed


def _family_name(request: types.UploadModelRequest, location: names.Location, store: Store) -> str:
    if request.parent_model:
        parent = names.parse_model(request.parent_model, "parent_model")
        if request.model_id and request.model_id != parent.model_id:
            raise InvalidArgument(f"model_id {request.model_id!r} is not the one of parent_model {request.parent_model!r}. Give only one of them.", field="model_id")
        store.get(MODELS, parent.model_name)
        return parent.model_name
    return f"{location}/models/{request.model_id or names.new_id()}"


def _check_upload(request: types.UploadModelRequest, model: Model, context: Context) -> Iterator[Finding]:
    if request.model_id:
        yield from check_id(request.model_id, _MODEL_ID, "at most 63 of [a-z0-9_-], not beginning with a digit or a dash", "model_id")
    yield from check_display_name(model.display_name, "model.display_name")
    yield from check_labels(model.labels, "model.labels")
    for alias in model.version_aliases:
        yield from aliases.check_alias(alias, "model.version_aliases")
    if not model.container_spec.image_uri:
        yield "model.container_spec", "A custom-trained model needs a serving container. Set container_spec.image_uri."
    if model.artifact_uri:
        yield from check_bucket(model.artifact_uri, "model.artifact_uri", context.cloud.buckets)
    else:
        raise Unimplemented("The local cloud does not offer models without model.artifact_uri. Set it to the gs:// folder of a SavedModel.")


def _check_artifact(uri: str, context: Context) -> None:
    bucket, path = split_gcs_uri(uri)
    folder = path.rstrip("/") + "/" if path else ""
    found = context.cloud.buckets.list_paths(bucket, folder)
    if not found:
        raise FailedPrecondition(f"Model directory {uri} is expected to contain a SavedModel, but it is empty or does not exist.")
    if not {f"{folder}saved_model.pb", f"{folder}saved_model.pbtxt"} & set(found):
        seen = [path.removeprefix(folder) for path in found[:5]]
        raise FailedPrecondition(f"Model directory {uri} is expected to contain exactly one of: [saved_model.pb, saved_model.pbtxt]. Found {seen}.")


def _taken(family_name: str) -> AlreadyExists:
    return AlreadyExists(f"The Model {family_name} already exists. To add a version to it, set parent_model.")


def _add_version(store: Store, request: types.UploadModelRequest, family_name: str, model: Model) -> Model:
    moment = now()
    name = names.parse_model(family_name)
    with store.transaction():
        if not request.parent_model:
            if store.find(MODELS, family_name) is not None:
                raise _taken(family_name)
            family = Model(name=family_name, display_name=model.display_name, description=model.description, create_time=moment, version_id="0")
            store.insert(MODELS, family_name, request.parent, family)
        with store.change(MODELS, family_name) as family:
            # The family remembers the last id that was given out: ids are never used twice.
            family.version_id, family.update_time = str(int(family.version_id) + 1), moment
            version_id = family.version_id
        before = aliases_of(store, family_name)
        wishes = [*model.version_aliases, *([] if before else [aliases.DEFAULT])]
        version = Model()
        Model.copy_from(version, model)
        version.name, version.version_id, version.version_aliases = family_name, version_id, []
        version.version_create_time = version.version_update_time = moment
        version.supported_deployment_resources_types = [Model.DeploymentResourcesType.DEDICATED_RESOURCES]
        version.supported_input_storage_formats = ["jsonl", "bigquery", "csv", "tf-record", "tf-record-gzip", "file-list"]
        version.supported_output_storage_formats = ["jsonl", "bigquery"]
        store.insert(MODEL_VERSIONS, _version_key(name, version_id), family_name, version)
        before[version_id] = []
        _write_aliases(store, name, before, aliases.merge(before, version_id, wishes))
    return version


def _write_aliases(store: Store, name: names.ModelName, before: aliases.Aliases, after: aliases.Aliases) -> None:
    for version_id, wanted in after.items():
        if list(before.get(version_id, [])) != list(wanted):
            with store.change(MODEL_VERSIONS, _version_key(name, version_id)) as version:
                version.version_aliases = list(wanted)
                version.version_update_time = now()


def _version_key(name: names.ModelName, version_id: str) -> str:
    return f"{name.model_name}@{version_id}"


def _delete_version(store: Store, name: names.ModelName, version_id: str) -> None:
    store.delete(MODEL_VERSIONS, _version_key(name, version_id))
    for evaluation in store.list(EVALUATIONS, _version_key(name, version_id)):
        store.delete(EVALUATIONS, evaluation.name)


def _refuse_deployed(store: Store, model_name: str, version_id: str | None) -> None:
    places = [f"{endpoint.name} (deployed model {deployed.id})" for endpoint, deployed in deployments(store, model_name, version_id)]
    if places:
        what = f"The Model {model_name}" + (f"@{version_id}" if version_id else "")
        raise FailedPrecondition(f"{what} is deployed to {', '.join(places)}. Undeploy it first.")


def _check_etag(etag: str, seen: Model) -> None:
    if etag and etag != seen.etag:
        raise Aborted(f"The etag {etag!r} of {seen.name} is not the present one. Read the model again and repeat the change.")


def _copy_paths(source: Model, target: Model, paths: list[str]) -> None:
    for path in paths:
        field, _, key = path.partition(".")
        if key:
            target.labels[key] = source.labels[key]
        else:
            setattr(target, field, getattr(source, field))
