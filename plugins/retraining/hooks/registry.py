"""Versions of a model in the Vertex AI registry, and the aliases that point to them.

In: a run's model and labels. Out: `Version` values. Uploading is idempotent by label; an alias is
looked at before it moves and after: the service has no etag for aliases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from retraining.core.errors import ConflictError
from retraining.core.names import RUN_LABEL, location_name, model_name
from retraining.hooks.session import Session, call

CALL_TIMEOUT_S = 60
UPLOAD_TIMEOUT_S = 900


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version. `model_name` has no version in it, `version_name` ends in `@<version_id>`."""

    model_name: str
    version_id: str
    aliases: tuple[str, ...]
    labels: dict[str, str]
    artifact_uri: str

    @property
    def version_name(self) -> str:
        """Full name with the version."""
        return f"{self.model_name}@{self.version_id}"

    @property
    def run_key(self) -> str:
        """Key of the run that made it; empty for a version that no run made."""
        return self.labels.get(RUN_LABEL, "")


@dataclass(frozen=True, kw_only=True)
class Upload:
    """What becomes a version: the SavedModel's folder, the image that serves it, and who made it."""

    display_name: str
    description: str
    artifact_uri: str
    serving_image: str
    labels: Mapping[str, str]


class Registry:
    """The model service of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def find_by_alias(self, model: str, alias: str) -> Version | None:
        """The version an alias points to, or None."""
        from google.api_core.exceptions import NotFound

        name = f"{self._model_name(model)}@{alias}"
        try:
            found = call(lambda: self._client.get_model(name=name, retry=None, timeout=CALL_TIMEOUT_S))
        except NotFound:
            return None
        return _version(found)

    def find_by_run(self, model: str, run_key: str) -> Version | None:
        """The version a run registered, or None. Of several (an upload whose answer was lost) the oldest."""
        from google.api_core.exceptions import NotFound

        request = {"name": self._model_name(model), "filter": f'labels.{RUN_LABEL}="{run_key}"'}
        try:
            found = call(lambda: list(self._client.list_model_versions(request=request, timeout=CALL_TIMEOUT_S)))
        except NotFound:
            return None
        return min(map(_version, found), key=lambda version: int(version.version_id), default=None)

    def list_versions(self, model: str) -> list[Version]:
        """All versions of a model, in no order; none when the model is not registered."""
        from google.api_core.exceptions import NotFound

        request = {"name": self._model_name(model)}
        try:
            found = call(lambda: list(self._client.list_model_versions(request=request, timeout=CALL_TIMEOUT_S)))
        except NotFound:
            return []
        return [_version(version) for version in found]

    def upload(self, model: str, upload: Upload) -> Version:
        """Register a run's model as a version, or give the one it has already.

        The first upload of a model makes it; later ones name it as parent.
        """
        from google.api_core.exceptions import AlreadyExists

        run_key = upload.labels[RUN_LABEL]
        if found := self.find_by_run(model, run_key):
            return found
        if self._exists(model):
            self._upload(upload, parent_model=self._model_name(model))
        else:
            try:
                self._upload(upload, model_id=model)
            except AlreadyExists:  # another run was first
                self._upload(upload, parent_model=self._model_name(model))
        registered = self.find_by_run(model, run_key)
        if registered is None:
            raise ConflictError(
                self._model_name(model),
                f"no version with label {RUN_LABEL}={run_key} after its upload",
                "that version",
                "Clear the task",
            )
        return registered

    def merge_aliases(self, version: Version, wishes: Sequence[str]) -> Version:
        """Give aliases to a version; `-alias` takes one away. An alias of another version moves here."""
        request = {"name": version.version_name, "version_aliases": list(wishes)}
        return _version(
            call(lambda: self._client.merge_version_aliases(request=request, retry=None, timeout=CALL_TIMEOUT_S))
        )

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
                "Another run was faster: clear the run from decide on if this one should still be promoted",
            )
        return self.merge_aliases(to, [alias])

    def _exists(self, model: str) -> bool:
        from google.api_core.exceptions import NotFound

        try:
            call(lambda: self._client.get_model(name=self._model_name(model), retry=None, timeout=CALL_TIMEOUT_S))
        except NotFound:
            return False
        return True

    def _upload(self, upload: Upload, **target: str) -> None:
        from google.cloud import aiplatform_v1

        message = aiplatform_v1.Model(
            display_name=upload.display_name,
            version_description=upload.description,
            artifact_uri=upload.artifact_uri,
            container_spec={"image_uri": upload.serving_image},
            labels={**upload.labels, **self._session.environment.labels},
        )
        request = {"parent": location_name(self._session.project, self._session.region), "model": message, **target}
        operation = self._client.upload_model(request=request, retry=None, timeout=CALL_TIMEOUT_S)
        operation.result(timeout=UPLOAD_TIMEOUT_S)

    def _model_name(self, model: str) -> str:
        return model_name(self._session.project, self._session.region, model)

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - ModelServiceClient, not imported at parse time
        from google.cloud import aiplatform_v1

        session = self._session
        return aiplatform_v1.ModelServiceClient(credentials=session.credentials, client_options=session.client_options)


def _version(model: Any) -> Version:  # noqa: ANN401 - aiplatform_v1.Model has no types
    return Version(
        model_name=model.name.split("@")[0],
        version_id=model.version_id,
        aliases=tuple(model.version_aliases),
        labels=dict(model.labels),
        artifact_uri=model.artifact_uri,
    )
