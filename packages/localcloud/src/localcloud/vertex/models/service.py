"""ModelService: models, their versions, and the aliases of these."""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.models import aliases
from localcloud.vertex.models.checks import check_artifact, check_upload
from localcloud.vertex.models.copies import check_copy, copy_of
from localcloud.vertex.models.exports import check_export, copy_artifact, export_folder
from localcloud.vertex.models.versions import (
    NewVersion,
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
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import MODEL_VERSIONS, MODELS, Store, now
from localcloud.vertex.resources.validation import (
    check_display_name,
    check_labels,
    refuse,
)
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
)
from localcloud.vertex.wire.listing import MODEL_FIELDS, VERSION_FIELDS, list_page

_MODEL_FIELDS = {"display_name", "description", "labels"}
_VERSION_FIELDS = {"version_description", "labels"}


class Models:
    """Answers what is asked of models and their versions.

    Args:
        operations: Keeps and deletes them in the background.
        buckets: Where their artifacts are.
    """

    def __init__(self, store: Store, operations: Operations, buckets: Buckets) -> None:
        self._store = store
        self._operations = operations
        self._buckets = buckets

    def upload_model(self, request: types.UploadModelRequest) -> operations_pb2.Operation:
        """Keep a new model, or, with `parent_model`, a new version of it."""
        location = names.parse_location(request.parent)
        model = Model()
        Model.copy_from(model, request.model)
        family_name = _family_name(request, location, self._store)
        refuse(check_upload(request, model, self._buckets))
        if not request.parent_model and self._store.find_resource(MODELS, family_name) is not None:
            raise model_taken(family_name)
        metadata = types.UploadModelOperationMetadata()

        def work(progress: Progress) -> types.UploadModelResponse:
            progress.check()
            check_artifact(model, self._buckets)
            version = add_version(self._store, request, family_name, model)
            return types.UploadModelResponse(model=family_name, model_version_id=version.version_id)

        return self._operations.start("ModelService.UploadModel", family_name, metadata, work)

    def copy_model(self, request: types.CopyModelRequest) -> operations_pb2.Operation:
        """Keep a model's version as a new model of a location, or, with `parent_model`, as a new version of one."""
        location, store = names.parse_location(request.parent), self._store
        refuse(check_copy(request, location))
        source_name = names.parse_model(request.source_model, "source_model")
        source = view(store, source_name, find_version(store, source_name))
        model = copy_of(source, request, location)
        family_name = _family_name(request, location, store)
        if not request.parent_model and store.find_resource(MODELS, family_name) is not None:
            raise model_taken(family_name)

        def work(progress: Progress) -> types.CopyModelResponse:
            progress.check()
            check_artifact(model, self._buckets)
            version = add_version(store, request, family_name, model)
            return types.CopyModelResponse(model=family_name, model_version_id=version.version_id)

        return self._operations.start("ModelService.CopyModel", family_name, types.CopyModelOperationMetadata(), work)

    def export_model(self, request: types.ExportModelRequest) -> operations_pb2.Operation:
        """Copy a version's artifact to a folder of its own below the destination."""
        name = names.parse_model(request.name)
        model = view(self._store, name, find_version(self._store, name))
        refuse(check_export(request, model, self._buckets))
        folder = export_folder(request, model, now())
        metadata = types.ExportModelOperationMetadata(output_info={"artifact_output_uri": folder})

        def work(progress: Progress) -> types.ExportModelResponse:
            copy_artifact(model.artifact_uri, folder, self._buckets, progress.check)
            return types.ExportModelResponse()

        return self._operations.start("ModelService.ExportModel", name.model_name, metadata, work)

    def get_model(self, request: types.GetModelRequest) -> Model:
        """Return a model's default version, or the version that `@id` or `@alias` names."""
        name = names.parse_model(request.name)
        return view(self._store, name, find_version(self._store, name))

    def list_models(self, request: types.ListModelsRequest) -> types.ListModelsResponse:
        """Return models of a location, each as its default version, newest first."""
        names.parse_location(request.parent)
        store = self._store
        models = []
        for family in store.list_under(MODELS, request.parent):
            name = names.parse_model(family.name)
            models.append(view(store, name, find_version(store, name)))
        page, token = list_page(models, request, MODEL_FIELDS)
        return types.ListModelsResponse(models=page, next_page_token=token)

    def list_model_versions(self, request: types.ListModelVersionsRequest) -> types.ListModelVersionsResponse:
        """Return all versions of a model, oldest first."""
        name, store = names.parse_model(request.name), self._store
        store.get(MODELS, name.model_name)
        versions = sorted(
            store.list_under(MODEL_VERSIONS, name.model_name), key=lambda version: int(version.version_id)
        )
        views = [view(store, name, version) for version in versions]
        page, token = list_page(views, request, VERSION_FIELDS, times="version_")
        return types.ListModelVersionsResponse(models=page, next_page_token=token)

    def update_model(self, request: types.UpdateModelRequest) -> Model:
        """Change a model (`models/x`, `models/x@-`) or one version of it (`models/x@2`), never both at once."""
        name, store = names.parse_model(request.model.name, "model.name"), self._store
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
            kind, key = (
                (MODEL_VERSIONS, version_key(name, version.version_id)) if of_version else (MODELS, name.model_name)
            )
            with store.change(kind, key) as stored:
                _copy_paths(request.model, stored, paths)
                stored.update_time = stored.version_update_time = now()
            return view(store, name, store.get(MODEL_VERSIONS, version_key(name, version.version_id)))

    def merge_version_aliases(self, request: types.MergeVersionAliasesRequest) -> Model:
        """Give aliases to a version and take them away; one that another version had moves."""
        name, store = names.parse_model(request.name), self._store
        if name.version is None:
            raise InvalidArgument(
                f"The name {request.name!r} has no version. Expected …/models/{name.model_id}@VERSION.", field="name"
            )
        with store.transaction():
            version = find_version(store, name)
            before = aliases_of(store, name.model_name)
            write_aliases(store, name, before, aliases.merge(before, version.version_id, list(request.version_aliases)))
            return view(store, name, store.get(MODEL_VERSIONS, version_key(name, version.version_id)))

    def delete_model(self, request: types.DeleteModelRequest) -> operations_pb2.Operation:
        """Remove a model with all versions; refused while any of them is deployed."""
        name, store = names.parse_model(request.name), self._store
        if name.version is not None:
            raise InvalidArgument(
                f"The name {request.name!r} has a version. Use DeleteModelVersion for it.", field="name"
            )
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

        return self._operations.start(
            "ModelService.DeleteModel", name.model_name, types.DeleteOperationMetadata(), work
        )

    def delete_model_version(self, request: types.DeleteModelVersionRequest) -> operations_pb2.Operation:
        """Remove one version; refused while it is deployed and for a model's only version."""
        name, store = names.parse_model(request.name), self._store
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

        return self._operations.start(
            "ModelService.DeleteModelVersion", name.model_name, types.DeleteOperationMetadata(), work
        )


def _family_name(request: NewVersion, location: names.Location, store: Store) -> str:
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
