"""MetadataService's artifacts: what a context refers to, such as the TensorBoard run of an experiment's run.

Comes in: requests to create, get, list, change and delete, and to add artifacts to a context. Goes out: artifacts.
There are no executions, and none can be made: what asks for one finds none.
https://cloud.google.com/vertex-ai/docs/ml-metadata/data-model
"""

from __future__ import annotations

from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Artifact
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.experiments.metadata import LINKS, MOST_METADATA_BYTES, SCHEMA_VERSION, next_etag, require_etag
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import ARTIFACTS, CONTEXTS, METADATA_STORES, Store, now
from localcloud.vertex.resources.validation import Finding, check_display_name, check_id, check_labels, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import InvalidArgument, NotFound
from localcloud.vertex.wire.listing import ARTIFACT_FIELDS, list_page
from localcloud.vertex.wire.methods import raw

SCHEMAS = (
    "system.Artifact",
    "system.Dataset",
    "system.Metrics",
    "system.Model",
    "google.VertexTensorboardRun",
)
"""Of artifacts, that every store has; others would be made by CreateMetadataSchema."""
_ARTIFACT_ID = r"[a-z0-9][a-z0-9-]{3,127}"
_CHANGEABLE = ("display_name", "labels", "metadata", "description", "uri", "state")
_OF_ARTIFACT = "metadataStores", "artifacts"


class Artifacts:
    """Answers what is asked of artifacts, and of contexts' artifacts.

    Args:
        store: Where they are kept.
        operations: Deletes them in the background.
    """

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations

    def create_artifact(self, request: types.CreateArtifactRequest) -> Artifact:
        """Keep a new one under the requested id or a generated one."""
        self._store.get(METADATA_STORES, names.check_name(request.parent, "metadataStores", field="parent"))
        made = Artifact()
        Artifact.copy_from(made, request.artifact)
        if made.name:
            raise InvalidArgument("artifact.name is set. Give artifact_id.", field="artifact.name")
        artifact_id = request.artifact_id or names.new_id()
        refuse([*check_id(artifact_id, _ARTIFACT_ID, "4 to 128 lower-case letters, digits and dashes", "artifact_id")])
        refuse([*_check(made), *_check_schema(made)])
        made.name = f"{request.parent}/artifacts/{artifact_id}"
        made.schema_version = made.schema_version or SCHEMA_VERSION
        made.create_time = made.update_time = now()
        made.etag = next_etag("")
        self._store.insert(ARTIFACTS, made.name, request.parent, made)
        return made

    def get_artifact(self, request: types.GetArtifactRequest) -> Artifact:
        """Return one."""
        return self._store.get(ARTIFACTS, names.check_name(request.name, *_OF_ARTIFACT))

    def list_artifacts(self, request: types.ListArtifactsRequest) -> types.ListArtifactsResponse:
        """Return those of a store, newest first."""
        self._store.get(METADATA_STORES, names.check_name(request.parent, "metadataStores", field="parent"))
        page, token = list_page(self._store.list_under(ARTIFACTS, request.parent), request, ARTIFACT_FIELDS)
        return types.ListArtifactsResponse(artifacts=page, next_page_token=token)

    def update_artifact(self, request: types.UpdateArtifactRequest) -> Artifact:
        """Change the fields that the mask names, each as a whole; without one all that can be changed."""
        wanted = request.artifact
        name = names.check_name(wanted.name, *_OF_ARTIFACT, field="artifact.name")
        paths = list(request.update_mask.paths) or list(_CHANGEABLE)
        if wrong := sorted(set(paths) - set(_CHANGEABLE)):
            expected = ", ".join(_CHANGEABLE)
            raise InvalidArgument(f"update_mask names {wrong}. Expected some of {expected}.", field="update_mask")
        refuse([*_check(wanted)])
        with self._store.change(ARTIFACTS, name) as stored:
            require_etag(wanted.etag, stored)
            for path in paths:
                setattr(stored, path, getattr(wanted, path))
            stored.etag, stored.update_time = next_etag(stored.etag), now()
        return stored

    def delete_artifact(self, request: types.DeleteArtifactRequest) -> operations_pb2.Operation:
        """Remove one; contexts have it no longer."""
        name = names.check_name(request.name, *_OF_ARTIFACT)
        require_etag(request.etag, self._store.get(ARTIFACTS, name))

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            with self._store.transaction():
                self._store.delete(ARTIFACTS, name)
                links = self._store.list_documents(LINKS)
                if gone := [number for number, _, body in links if body["artifact"] == name]:
                    self._store.delete_documents(LINKS, *gone)
            return empty_pb2.Empty()

        return self._operations.start("MetadataService.DeleteArtifact", name, types.DeleteOperationMetadata(), work)

    def add_context_artifacts_and_executions(
        self, request: types.AddContextArtifactsAndExecutionsRequest
    ) -> types.AddContextArtifactsAndExecutionsResponse:
        """Add artifacts to a context; what it has already is skipped."""
        context = names.check_name(request.context, "metadataStores", "contexts", field="context")
        with self._store.transaction():
            self._store.get(CONTEXTS, context)
            for name in request.executions:
                raise NotFound(f"The Execution {name} does not exist.")
            there = self._artifacts_of(context)
            for name in dict.fromkeys(request.artifacts):
                self._store.get(ARTIFACTS, names.check_name(name, *_OF_ARTIFACT, field="artifacts"))
                if name not in there:
                    self._store.put_document(LINKS, context, {"artifact": name})
        return types.AddContextArtifactsAndExecutionsResponse()

    def query_context_lineage_subgraph(
        self, request: types.QueryContextLineageSubgraphRequest
    ) -> types.LineageSubgraph:
        """Return the artifacts of a context; executions there are none."""
        context = names.check_name(request.context, "metadataStores", "contexts", field="context")
        self._store.get(CONTEXTS, context)
        return types.LineageSubgraph(artifacts=[self._store.get(ARTIFACTS, n) for n in self._artifacts_of(context)])

    def _artifacts_of(self, context: str) -> list[str]:
        return [body["artifact"] for _, key, body in self._store.list_documents(LINKS) if key == context]


class Executions:
    """Answers what is asked of executions: none can be made, so there are none.

    Args:
        store: Where metadata stores are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_execution(self, request: types.GetExecutionRequest) -> types.Execution:
        """Say that there is none."""
        name = names.check_name(request.name, "metadataStores", "executions")
        raise NotFound(f"The Execution {name} does not exist.")

    def list_executions(self, request: types.ListExecutionsRequest) -> types.ListExecutionsResponse:
        """Return none."""
        self._store.get(METADATA_STORES, names.check_name(request.parent, "metadataStores", field="parent"))
        return types.ListExecutionsResponse()


def _check(artifact: Artifact) -> Iterator[Finding]:
    yield from check_display_name(artifact.display_name, "artifact.display_name")
    yield from check_labels(artifact.labels, "artifact.labels")
    size = raw(artifact).metadata.ByteSize()
    if size > MOST_METADATA_BYTES:
        yield "artifact.metadata", f"It has {size} bytes. Expected at most {MOST_METADATA_BYTES}."


def _check_schema(artifact: Artifact) -> Iterator[Finding]:
    if artifact.schema_title not in SCHEMAS:
        yield "artifact.schema_title", f"There is no schema {artifact.schema_title!r}. Expected one of {SCHEMAS}."
    if artifact.schema_version not in ("", SCHEMA_VERSION):
        found = artifact.schema_version
        yield "artifact.schema_version", f"There is no version {found!r} of the schema. Expected {SCHEMA_VERSION}."
