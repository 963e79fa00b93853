"""MetadataService's artifacts: what a context refers to, such as the TensorBoard run of an experiment's run.

Comes in: requests to create, get, list, change and delete, and to add artifacts to a context. Goes out: artifacts.
There are no executions, and none can be made: what asks for one finds none.
https://cloud.google.com/vertex-ai/docs/ml-metadata/data-model
"""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Artifact
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.experiments.nodes import LINKS, Nodes
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import ARTIFACTS, CONTEXTS, METADATA_STORES, Store
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import NotFound
from localcloud.vertex.wire.listing import ARTIFACT_FIELDS, list_page

SCHEMAS = (
    "system.Artifact",
    "system.Dataset",
    "system.Metrics",
    "system.Model",
    "google.VertexTensorboardRun",
)
_CHANGEABLE = ("display_name", "labels", "metadata", "description", "uri", "state")


class Artifacts:
    """Answers what is asked of artifacts, and of contexts' artifacts.

    Args:
        store: Where they are kept.
        operations: Deletes them in the background.
    """

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations
        self._nodes = Nodes(store=store, kind=ARTIFACTS, noun="artifact", schemas=SCHEMAS, changeable=_CHANGEABLE)

    def create_artifact(self, request: types.CreateArtifactRequest) -> Artifact:
        """Keep a new one under the requested id or a generated one."""
        return self._nodes.create(request.parent, request.artifact, request.artifact_id)

    def get_artifact(self, request: types.GetArtifactRequest) -> Artifact:
        """Return one."""
        return self._nodes.get(request.name)

    def list_artifacts(self, request: types.ListArtifactsRequest) -> types.ListArtifactsResponse:
        """Return those of a store, newest first."""
        page, token = list_page(self._nodes.under(request.parent), request, ARTIFACT_FIELDS)
        return types.ListArtifactsResponse(artifacts=page, next_page_token=token)

    def update_artifact(self, request: types.UpdateArtifactRequest) -> Artifact:
        """Change the fields that the mask names, each as a whole; without one all that can be changed."""
        return self._nodes.update(request.artifact, request.update_mask)

    def delete_artifact(self, request: types.DeleteArtifactRequest) -> operations_pb2.Operation:
        """Remove one; contexts have it no longer."""
        name = self._nodes.check_name(request.name)
        self._nodes.require_etag(request.etag, self._nodes.get(name))

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
                self._store.get(ARTIFACTS, self._nodes.check_name(name, "artifacts"))
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
