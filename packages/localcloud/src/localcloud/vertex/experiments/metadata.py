"""MetadataService, as far as Vertex AI Experiments asks it: metadata stores, and contexts with their children.

Comes in: requests to create, get, list, change and delete, and to make one context the child of another. Goes out:
stores and contexts; what contexts refer to is in `artifacts`.
https://cloud.google.com/vertex-ai/docs/ml-metadata/data-model
"""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Context, MetadataStore
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.experiments.nodes import LINKS, Nodes
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import CONTEXTS, METADATA_STORES, Store, now
from localcloud.vertex.resources.validation import check_id, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import AlreadyExists, InvalidArgument
from localcloud.vertex.wire.listing import CONTEXT_FIELDS, list_page

SCHEMAS = ("system.Experiment", "system.ExperimentRun", "system.Pipeline", "system.PipelineRun")
"""Of contexts, that every store has; others would be made by CreateMetadataSchema."""
MOST_PARENTS = 10
_STORE_ID = r"[a-z0-9][a-z0-9-]{0,127}"
_CHANGEABLE = ("display_name", "labels", "metadata", "description")


class MetadataStores:
    """Answers what is asked of metadata stores.

    Args:
        store: Where they are kept.
        operations: Makes them in the background.
    """

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations

    def create_metadata_store(self, request: types.CreateMetadataStoreRequest) -> operations_pb2.Operation:
        """Keep a new store, under the requested id or a generated one."""
        location, store = names.parse_location(request.parent), self._store
        store_id = request.metadata_store_id or names.new_id()
        refuse(
            [*check_id(store_id, _STORE_ID, "at most 128 lower-case letters, digits and dashes", "metadata_store_id")]
        )
        made = MetadataStore()
        MetadataStore.copy_from(made, request.metadata_store)
        made.name = f"{location}/metadataStores/{store_id}"
        if store.find_resource(METADATA_STORES, made.name) is not None:
            raise AlreadyExists(f"The MetadataStore {made.name} already exists.")

        def work(progress: Progress) -> MetadataStore:
            progress.check()
            made.create_time = made.update_time = now()
            store.insert(METADATA_STORES, made.name, request.parent, made)
            return made

        metadata = types.CreateMetadataStoreOperationMetadata()
        return self._operations.start("MetadataService.CreateMetadataStore", made.name, metadata, work)

    def get_metadata_store(self, request: types.GetMetadataStoreRequest) -> MetadataStore:
        """Return one."""
        return self._store.get(METADATA_STORES, names.check_name(request.name, "metadataStores"))

    def list_metadata_stores(self, request: types.ListMetadataStoresRequest) -> types.ListMetadataStoresResponse:
        """Return those of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(METADATA_STORES, request.parent), request, {})
        return types.ListMetadataStoresResponse(metadata_stores=page, next_page_token=token)


class Contexts:
    """Answers what is asked of contexts.

    Args:
        store: Where they are kept.
        operations: Deletes them in the background.
    """

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations
        self._nodes = Nodes(store=store, kind=CONTEXTS, noun="context", schemas=SCHEMAS, changeable=_CHANGEABLE)

    def create_context(self, request: types.CreateContextRequest) -> Context:
        """Keep a new context, under the requested id or a generated one."""
        return self._nodes.create(request.parent, request.context, request.context_id)

    def get_context(self, request: types.GetContextRequest) -> Context:
        """Return one as it stands."""
        return self._nodes.get(request.name)

    def list_contexts(self, request: types.ListContextsRequest) -> types.ListContextsResponse:
        """Return those of a store, newest first."""
        page, token = list_page(self._nodes.under(request.parent), request, CONTEXT_FIELDS)
        return types.ListContextsResponse(contexts=page, next_page_token=token)

    def update_context(self, request: types.UpdateContextRequest) -> Context:
        """Change the fields that the mask names, each as a whole; without one all that can be changed."""
        return self._nodes.update(request.context, request.update_mask)

    def delete_context(self, request: types.DeleteContextRequest) -> operations_pb2.Operation:
        """Remove a context; its children and artifacts stay."""
        name = self._nodes.check_name(request.name)
        self._nodes.require_etag(request.etag, self._nodes.get(name))

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            with self._store.transaction():
                self._store.delete(CONTEXTS, name)
                if links := [number for number, key, _ in self._store.list_documents(LINKS) if key == name]:
                    self._store.delete_documents(LINKS, *links)
                for child in self._children(name):
                    with self._store.change(CONTEXTS, child.name) as changed:
                        changed.parent_contexts = [each for each in changed.parent_contexts if each != name]
            return empty_pb2.Empty()

        return self._operations.start("MetadataService.DeleteContext", name, types.DeleteOperationMetadata(), work)

    def add_context_children(self, request: types.AddContextChildrenRequest) -> types.AddContextChildrenResponse:
        """Make contexts the children of another one; what is a child already is skipped."""
        parent = self._nodes.check_name(request.context, "context")
        with self._store.transaction():
            self._store.get(CONTEXTS, parent)
            for name in request.child_contexts:
                with self._store.change(CONTEXTS, self._nodes.check_name(name, "child_contexts")) as child:
                    if parent in child.parent_contexts:
                        continue
                    if name == parent or name in self._ancestors(parent):
                        raise InvalidArgument(f"{name} is above {parent}: as its child it would be its own parent.")
                    if len(child.parent_contexts) >= MOST_PARENTS:
                        raise InvalidArgument(f"{name} has {MOST_PARENTS} parents. Expected no more.")
                    child.parent_contexts = [*child.parent_contexts, parent]
        return types.AddContextChildrenResponse()

    def _children(self, name: str) -> list[Context]:
        store = name.partition("/contexts/")[0]
        return [each for each in self._store.list_under(CONTEXTS, store) if name in each.parent_contexts]

    def _ancestors(self, name: str) -> set[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            above = self._store.find_resource(CONTEXTS, waiting.pop())
            new = [each for each in (above.parent_contexts if above else []) if each not in found]
            found.update(new)
            waiting += new
        return found
