"""The models and versions in the store, and how callers see them.

A model is kept once (names, description, labels, the last version id that was given out) and each version once
(everything else); what callers see is both laid over each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TypeAlias

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model

from localcloud.vertex.models import aliases
from localcloud.vertex.models.exports import export_formats
from localcloud.vertex.resources.store import (
    ENDPOINTS,
    EVALUATION_SLICES,
    EVALUATIONS,
    MODEL_VERSIONS,
    MODELS,
    Store,
    now,
)
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import AlreadyExists, FailedPrecondition, NotFound
from localcloud.vertex.wire.methods import message_bytes

NewVersion: TypeAlias = types.UploadModelRequest | types.CopyModelRequest
"""What asks for a version: by its `parent`, and by `model_id` or `parent_model`."""


def find_version(store: Store, name: names.ModelName) -> Model:
    """Return the stored version that a name means: by id, by alias, or the default one.

    Raises:
        NotFound: There is no such model or version.
    """
    store.get(MODELS, name.model_name)
    id_or_alias = aliases.DEFAULT if name.version in (None, "-") else str(name.version)
    version_id = aliases.find_version_id(aliases_of(store, name.model_name), id_or_alias)
    if version_id is None:
        raise NotFound(f"The Model {name.model_name}@{id_or_alias} does not exist.")
    return store.get(MODEL_VERSIONS, version_key(name, version_id))


def aliases_of(store: Store, model_name: str) -> dict[str, list[str]]:
    """Return aliases by version id."""
    return {
        version.version_id: list(version.version_aliases) for version in store.list_under(MODEL_VERSIONS, model_name)
    }


def view(store: Store, name: names.ModelName, version: Model) -> Model:
    """Return a version as callers see it: the model's own fields laid over it, labels merged, deployments filled in."""
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


def deployments(
    store: Store, model_name: str, version_id: str | None
) -> Iterator[tuple[types.Endpoint, types.DeployedModel]]:
    """Return where a model, or one version of it, is deployed."""
    for endpoint in store.list_all(ENDPOINTS):
        for deployed in endpoint.deployed_models:
            if deployed.model == model_name and version_id in (None, deployed.model_version_id):
                yield endpoint, deployed


def model_taken(family_name: str) -> AlreadyExists:
    """Return the refusal of an id that another model has."""
    return AlreadyExists(f"The Model {family_name} already exists. To add a version to it, set parent_model.")


def add_version(store: Store, request: NewVersion, family_name: str, model: Model) -> Model:
    """Keep a new version (and the model, unless the request names it as parent); its aliases move to it."""
    moment = now()
    name = names.parse_model(family_name)
    with store.transaction():
        if not request.parent_model:
            if store.find_resource(MODELS, family_name) is not None:
                raise model_taken(family_name)
            family = Model(
                name=family_name,
                display_name=model.display_name,
                description=model.description,
                create_time=moment,
                version_id="0",
            )
            store.insert(MODELS, family_name, request.parent, family)
        with store.change(MODELS, family_name) as family:
            # The family remembers the last id that was given out: ids are never used twice.
            family.version_id, family.update_time = str(int(family.version_id) + 1), moment
            version_id = family.version_id
        before = aliases_of(store, family_name)
        alias_changes = [*model.version_aliases, *([] if before else [aliases.DEFAULT])]
        version = Model()
        Model.copy_from(version, model)
        version.name, version.version_id, version.version_aliases = family_name, version_id, []
        version.version_create_time = version.version_update_time = moment
        version.supported_deployment_resources_types = [Model.DeploymentResourcesType.DEDICATED_RESOURCES]
        version.supported_input_storage_formats = [
            "jsonl",
            "bigquery",
            "csv",
            "tf-record",
            "tf-record-gzip",
            "file-list",
        ]
        version.supported_output_storage_formats = ["jsonl", "bigquery"]
        version.supported_export_formats = export_formats(version)
        store.insert(MODEL_VERSIONS, version_key(name, version_id), family_name, version)
        before[version_id] = []
        write_aliases(store, name, before, aliases.merge(before, version_id, alias_changes))
    return version


def write_aliases(store: Store, name: names.ModelName, before: aliases.Aliases, after: aliases.Aliases) -> None:
    """Keep the aliases of the versions for which they changed."""
    for version_id, changed in after.items():
        if list(before.get(version_id, [])) != list(changed):
            with store.change(MODEL_VERSIONS, version_key(name, version_id)) as version:
                version.version_aliases = list(changed)
                version.version_update_time = now()


def version_key(name: names.ModelName, version_id: str) -> str:
    """Name of a version in the store."""
    return f"{name.model_name}@{version_id}"


def delete_version(store: Store, name: names.ModelName, version_id: str) -> None:
    """Remove a version, its evaluations and their slices."""
    store.delete(MODEL_VERSIONS, version_key(name, version_id))
    for evaluation in store.list_under(EVALUATIONS, version_key(name, version_id)):
        for part in store.list_under(EVALUATION_SLICES, evaluation.name):
            store.delete(EVALUATION_SLICES, part.name)
        store.delete(EVALUATIONS, evaluation.name)


def refuse_deployed(store: Store, model_name: str, version_id: str | None) -> None:
    """Raise while a model, or one version of it, is deployed.

    Raises:
        FailedPrecondition: It is; the message says where.
    """
    places = [
        f"{endpoint.name} (deployed model {deployed.id})"
        for endpoint, deployed in deployments(store, model_name, version_id)
    ]
    if places:
        what = f"The Model {model_name}" + (f"@{version_id}" if version_id else "")
        raise FailedPrecondition(f"{what} is deployed to {', '.join(places)}. Undeploy it first.")
