"""MetadataService, as far as Vertex AI Experiments asks it: metadata stores, and contexts with their children.

Comes in: requests to create, get, list, change and delete, and to make one context the child of another. Goes out:
stores and contexts; what contexts refer to is in `artifacts`.
https://cloud.google.com/vertex-ai/docs/ml-metadata/data-model
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Context, MetadataStore
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import CONTEXTS, METADATA_STORES, Store, now
from localcloud.vertex.resources.validation import Finding, check_display_name, check_id, check_labels, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import Aborted, AlreadyExists, InvalidArgument
from localcloud.vertex.wire.listing import CONTEXT_FIELDS, list_page
from localcloud.vertex.wire.methods import Message, raw

SCHEMAS = ("system.Experiment", "system.ExperimentRun", "system.Pipeline", "system.PipelineRun")
"""Of contexts, that every store has; others would be made by CreateMetadataSchema."""
SCHEMA_VERSION = "0.0.1"
MOST_METADATA_BYTES, MOST_PARENTS = 200_000, 10
LINKS = "context-artifacts"
"""Documents by their context: which artifacts it has."""
_STORE_ID = r"[a-z0-9][a-z0-9-]{0,127}"
_CONTEXT_ID = r"[a-z0-9][a-z0-9-]{3,127}"
_CHANGEABLE = ("display_name", "labels", "metadata", "description")
_OF_CONTEXT = "metadataStores", "contexts"


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

    def create_context(self, request: types.CreateContextRequest) -> Context:
        """Keep a new context, under the requested id or a generated one."""
        self._store.get(METADATA_STORES, names.check_name(request.parent, "metadataStores", field="parent"))
        made = Context()
        Context.copy_from(made, request.context)
        if made.name:
            raise InvalidArgument("context.name is set. Give context_id.", field="context.name")
        context_id = request.context_id or names.new_id()
        refuse([*check_id(context_id, _CONTEXT_ID, "4 to 128 lower-case letters, digits and dashes", "context_id")])
        refuse([*_check(made), *_check_schema(made)])
        made.name = f"{request.parent}/contexts/{context_id}"
        made.schema_version = made.schema_version or SCHEMA_VERSION
        made.create_time = made.update_time = now()
        made.etag = next_etag("")
        self._store.insert(CONTEXTS, made.name, request.parent, made)
        return made

    def get_context(self, request: types.GetContextRequest) -> Context:
        """Return one as it stands."""
        return self._store.get(CONTEXTS, names.check_name(request.name, *_OF_CONTEXT))

    def list_contexts(self, request: types.ListContextsRequest) -> types.ListContextsResponse:
        """Return those of a store, newest first."""
        self._store.get(METADATA_STORES, names.check_name(request.parent, "metadataStores", field="parent"))
        page, token = list_page(self._store.list_under(CONTEXTS, request.parent), request, CONTEXT_FIELDS)
        return types.ListContextsResponse(contexts=page, next_page_token=token)

    def update_context(self, request: types.UpdateContextRequest) -> Context:
        """Change the fields that the mask names, each as a whole; without one all that can be changed."""
        wanted = request.context
        name = names.check_name(wanted.name, *_OF_CONTEXT, field="context.name")
        paths = list(request.update_mask.paths) or list(_CHANGEABLE)
        if wrong := sorted(set(paths) - set(_CHANGEABLE)):
            expected = ", ".join(_CHANGEABLE)
            raise InvalidArgument(f"update_mask names {wrong}. Expected some of {expected}.", field="update_mask")
        refuse([*_check(wanted)])
        with self._store.change(CONTEXTS, name) as stored:
            require_etag(wanted.etag, stored)
            for path in paths:
                setattr(stored, path, getattr(wanted, path))
            stored.etag, stored.update_time = next_etag(stored.etag), now()
        return stored

    def delete_context(self, request: types.DeleteContextRequest) -> operations_pb2.Operation:
        """Remove a context; its children and artifacts stay."""
        name = names.check_name(request.name, *_OF_CONTEXT)
        require_etag(request.etag, self._store.get(CONTEXTS, name))

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
        parent = names.check_name(request.context, *_OF_CONTEXT, field="context")
        with self._store.transaction():
            self._store.get(CONTEXTS, parent)
            for name in request.child_contexts:
                with self._store.change(
                    CONTEXTS, names.check_name(name, *_OF_CONTEXT, field="child_contexts")
                ) as child:
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


def _check(context: Context) -> Iterator[Finding]:
    yield from check_display_name(context.display_name, "context.display_name")
    yield from check_labels(context.labels, "context.labels")
    size = raw(context).metadata.ByteSize()
    if size > MOST_METADATA_BYTES:
        yield "context.metadata", f"It has {size} bytes. Expected at most {MOST_METADATA_BYTES}."


def _check_schema(context: Context) -> Iterator[Finding]:
    if context.schema_title not in SCHEMAS:
        yield "context.schema_title", f"There is no schema {context.schema_title!r}. Expected one of {SCHEMAS}."
    if context.schema_version not in ("", SCHEMA_VERSION):
        found = context.schema_version
        yield "context.schema_version", f"There is no version {found!r} of the schema. Expected {SCHEMA_VERSION}."


def require_etag(etag: str, stored: Message) -> None:
    """Check that a change is of the state that is stored.

    Raises:
        Aborted: Others changed it meanwhile.
    """
    if etag and etag != stored.etag:
        noun = type(stored).__name__
        raise Aborted(f"Specified {noun} `etag`: `{etag}` does not match server `etag`: `{stored.etag}`")


def next_etag(before: str) -> str:
    """Return the next etag: a number that grows, as the SDK compares them."""
    this = int(now().timestamp() * 1000)
    return str(max(this, int(before) + 1) if re.fullmatch(r"\d+", before) else this)
