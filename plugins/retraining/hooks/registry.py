"""Versions of a model in the Vertex AI registry, and the aliases that point to them.

In: a run's model and labels. Out: `Version` values. Uploading is idempotent by label; an alias is
looked at before it moves and after: the service has no etag for aliases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from retraining.core.errors import ConflictError
from retraining.core.naming.serving import is_numbered
from retraining.core.naming.vertex import RUN_LABEL, location_name, model_name, unversioned, version_name
from retraining.core.promotion.versions import Version
from retraining.core.untyped import ProtoJson
from retraining.hooks.operations import Operation, operation_of
from retraining.hooks.session import Session, call, call_once

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import ExplanationSpec, Model, ModelServiceClient


@dataclass(frozen=True, kw_only=True)
class Upload:
    """What becomes a version: the SavedModel's folder, the container that serves it, and who made it.

    `schema_uris` are the files that describe an `instance`, a `prediction` and the `parameters` of a request.
    `explanation_spec` is how its answers are explained, as `aiplatform_v1.ExplanationSpec` in proto-JSON; None: they
    are not. Its deployed models inherit it.
    """

    display_name: str
    description: str
    artifact_uri: str
    container_spec: ProtoJson
    labels: Mapping[str, str]
    schema_uris: Mapping[str, str] = field(default_factory=dict)
    explanation_spec: ProtoJson | None = None


class Registry:
    """The model service of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def find_by_alias(self, model: str, alias: str) -> Version | None:
        """Return the version an alias points to, or None."""
        from google.api_core.exceptions import NotFound

        name = version_name(self._model_name(model), alias)
        try:
            resource = call(lambda: self._client.get_model(name=name, retry=None))
        except NotFound:
            return None
        return _version(resource)

    def find_by_run(self, model: str, run_key: str) -> Version | None:
        """Return the version a run registered, or None. Of several (an upload whose answer was lost) the oldest."""
        return next(iter(self.versions_of_run(model, run_key)), None)

    def list_versions(self, model: str) -> list[Version]:
        """Return all versions of a model, in no order; none when the model is not registered."""
        from google.api_core.exceptions import NotFound

        request = {"name": self._model_name(model)}
        try:
            resources = call(lambda: list(self._client.list_model_versions(request=request)))
        except NotFound:
            return []
        return [_version(version) for version in resources]

    def versions_of_run(self, model: str, run_key: str) -> list[Version]:
        """Return what a run registered, oldest first; several when an upload was made twice."""
        from google.api_core.exceptions import NotFound

        request = {"name": self._model_name(model), "filter": f'labels.{RUN_LABEL}="{run_key}"'}
        try:
            resources = call(lambda: list(self._client.list_model_versions(request=request)))
        except NotFound:
            return []
        return sorted(map(_version, resources), key=lambda version: int(version.version_id))

    def start_upload(self, model: str, upload: Upload) -> Operation:
        """Begin to register a version. Not repeated here: after an error it may have begun, so look before.

        The first upload of a model makes it; later ones name it as parent.
        """
        from google.api_core.exceptions import AlreadyExists

        if self._exists(model):
            return self._upload(upload, parent_model=self._model_name(model))
        try:
            return self._upload(upload, model_id=model)
        except AlreadyExists:  # another run was first
            return self._upload(upload, parent_model=self._model_name(model))

    def operation(self, name: str) -> Operation | None:
        """Return the long-running work as it stands; None when the service has forgotten it."""
        from google.api_core.exceptions import NotFound

        try:
            return operation_of(call(lambda: self._client.get_operation({"name": name})))
        except NotFound:
            return None

    def running_operations(self, model: str) -> list[Operation]:
        """Return the work on a model that is not done, its uploads among it."""
        from google.api_core.exceptions import NotFound

        request = {"name": self._model_name(model)}
        try:
            listed = call(lambda: self._client.list_operations(request))
        except NotFound:
            return []
        return [operation for operation in map(operation_of, listed.operations) if not operation.done]

    def delete_version(self, version: Version) -> bool:
        """Delete a version; False: it is deployed, or a model's only one, and stays. One that is gone stays gone."""
        from google.api_core.exceptions import FailedPrecondition, NotFound

        request = {"name": version.version_name}
        try:
            call(lambda: self._client.delete_model_version(request=request, retry=None))
        except NotFound:
            return True
        except FailedPrecondition:
            return False
        return True

    def find_evaluation(self, version: Version, display_name: str) -> str | None:
        """Return the name of a version's evaluation by its display name; of several the oldest. None: there is none."""
        request = {"parent": version.version_name}
        listed = call(lambda: list(self._client.list_model_evaluations(request=request)))
        found = [item for item in listed if item.display_name == display_name]
        return str(min(found, key=lambda item: item.create_time).name) if found else None

    def import_evaluation(self, version: Version, evaluation: ProtoJson) -> str:
        """Keep an evaluation beside a version; return its name. Not repeated here: look before importing again."""
        request = {"parent": version.version_name, "model_evaluation": evaluation}
        kept = call_once(lambda: self._client.import_model_evaluation(request=request, retry=None))
        return str(kept.name)

    def imported_slices(self, evaluation_name: str) -> set[str]:
        """Return the values of the slices that an evaluation has."""
        request = {"parent": evaluation_name}
        listed = call(lambda: list(self._client.list_model_evaluation_slices(request=request)))
        return {item.slice_.value for item in listed}

    def import_slices(self, evaluation_name: str, slices: Sequence[ProtoJson]) -> None:
        """Keep slices of an evaluation, 50 at most; all or none. Not repeated here: look before importing again."""
        request = {"parent": evaluation_name, "model_evaluation_slices": list(slices)}
        call_once(lambda: self._client.batch_import_model_evaluation_slices(request=request, retry=None))

    def merge_aliases(self, version: Version, wishes: Sequence[str]) -> Version:
        """Give aliases to a version; `-alias` takes one away. An alias of another version moves here."""
        request = {"name": version.version_name, "version_aliases": list(wishes)}
        return _version(call(lambda: self._client.merge_version_aliases(request=request, retry=None)))

    def move_alias(self, model: str, alias: str, to: Version, expected: str | None) -> Version:
        """Move an alias if it still points where it is believed to.

        Args:
            model: Model id.
            alias: For example `champion`.
            to: Its new version.
            expected: Version id that has it now; None: nobody has it.

        Raises:
            ConflictError: Somebody else moved it meanwhile.
        """
        holder = self.find_by_alias(model, alias)
        holder_id = holder.version_id if holder else None
        if holder_id == to.version_id:
            return to
        if holder_id != expected:
            raise ConflictError(
                f"alias {alias} of {model}",
                f"version {holder_id}",
                f"version {expected}" if expected else "no version",
                "The next try looks again; where the champion is another one, trigger the DAG again with Force: a new "
                "attempt meets it",
            )
        return self.merge_aliases(to, [alias])

    def _exists(self, model: str) -> bool:
        from google.api_core.exceptions import NotFound

        try:
            call(lambda: self._client.get_model(name=self._model_name(model), retry=None))
        except NotFound:
            return False
        return True

    def _upload(self, upload: Upload, **target: str) -> Operation:
        from google.cloud import aiplatform_v1

        message = aiplatform_v1.Model(
            display_name=upload.display_name,
            version_description=upload.description,
            artifact_uri=upload.artifact_uri,
            container_spec=upload.container_spec,
            labels=self._session.labels(upload.labels),
            **self._session.placement.encryption,
            predict_schemata={f"{what}_schema_uri": uri for what, uri in upload.schema_uris.items()},
            explanation_spec=_explanation_spec(upload.explanation_spec),
        )
        request = {"parent": location_name(self._session.project, self._session.region), "model": message, **target}
        started = call_once(lambda: self._client.upload_model(request=request, retry=None))
        return operation_of(started.operation)

    def _model_name(self, model: str) -> str:
        return model_name(self._session.project, self._session.region, model)

    @cached_property
    def _client(self) -> ModelServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: ModelServiceClient = grpc_client(
            aiplatform_v1.ModelServiceClient, session, client_options=session.client_options
        )
        return client


def _explanation_spec(values: ProtoJson | None) -> ExplanationSpec | None:
    """Read a specification by JSON: the messages take no plain values for its baselines."""
    from google.cloud import aiplatform_v1

    return None if values is None else aiplatform_v1.ExplanationSpec.from_json(json.dumps(values))


def _version(model: Model) -> Version:
    return Version(
        model_name=unversioned(model.name),
        version_id=model.version_id,
        aliases=tuple(model.version_aliases),
        labels=dict(model.labels),
        artifact_uri=model.artifact_uri,
        numbered=is_numbered(model.container_spec.args),
        deployed=bool(model.deployed_models),
    )
