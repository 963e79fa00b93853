"""What contexts and artifacts of ML Metadata have in common: made under an id, changed by etag, with a known schema.

Comes in: what one kind of them is. Goes out: nodes in the store.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from localcloud.vertex.resources.store import METADATA_STORES, Kind, Store, now
from localcloud.vertex.resources.validation import Finding, check_display_name, check_id, check_labels, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import Aborted, InvalidArgument
from localcloud.vertex.wire.methods import Message, raw

SCHEMA_VERSION = "0.0.1"
MOST_METADATA_BYTES = 200_000
LINKS = "context-artifacts"
"""Documents by their context: which artifacts it has."""
_ID, _ID_IN_WORDS = r"[a-z0-9][a-z0-9-]{3,127}", "4 to 128 lower-case letters, digits and dashes"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of one kind.

    Attributes:
        store: Where they are kept.
        kind: Of resources.
        noun: `context`: the field that they come in, and what their ids are called after.
        schemas: Those that every store has; others would be made by CreateMetadataSchema.
        changeable: Fields.
    """

    store: Store
    kind: Kind
    noun: str
    schemas: tuple[str, ...]
    changeable: tuple[str, ...]

    def create(self, parent: str, given: Message, node_id: str) -> Message:
        """Keep a new one, under the requested id or a generated one."""
        self.require_store(parent)
        made = type(given)()
        type(given).copy_from(made, given)
        if made.name:
            raise InvalidArgument(f"{self.noun}.name is set. Give {self.noun}_id.", field=f"{self.noun}.name")
        node_id = node_id or names.new_id()
        refuse([*check_id(node_id, _ID, _ID_IN_WORDS, f"{self.noun}_id")])
        refuse([*self._check(made), *self._check_schema(made)])
        made.name = f"{parent}/{self.kind.collection}/{node_id}"
        made.schema_version = made.schema_version or SCHEMA_VERSION
        made.create_time = made.update_time = now()
        made.etag = _next_etag("")
        self.store.insert(self.kind, made.name, parent, made)
        return made

    def check_name(self, name: str, field: str = "name") -> str:
        """Return the name of a node, if it is one."""
        return names.check_name(name, "metadataStores", self.kind.collection, field=field)

    def get(self, name: str) -> Message:
        """Return one as it stands."""
        return self.store.get(self.kind, self.check_name(name))

    def under(self, parent: str) -> list[Message]:
        """Return those of a metadata store, newest first."""
        self.require_store(parent)
        return self.store.list_under(self.kind, parent)

    def update(self, wanted: Message, mask: Message) -> Message:
        """Change the fields that the mask names, each as a whole; without one all that can be changed."""
        name = self.check_name(wanted.name, f"{self.noun}.name")
        paths = list(mask.paths) or list(self.changeable)
        if wrong := sorted(set(paths) - set(self.changeable)):
            expected = ", ".join(self.changeable)
            raise InvalidArgument(f"update_mask names {wrong}. Expected some of {expected}.", field="update_mask")
        refuse([*self._check(wanted)])
        with self.store.change(self.kind, name) as stored:
            self.require_etag(wanted.etag, stored)
            for path in paths:
                setattr(stored, path, getattr(wanted, path))
            stored.etag, stored.update_time = _next_etag(stored.etag), now()
        return stored

    def require_store(self, parent: str) -> None:
        """Check that a metadata store is there."""
        self.store.get(METADATA_STORES, names.check_name(parent, "metadataStores", field="parent"))

    def require_etag(self, etag: str, stored: Message) -> None:
        """Check that a change is of the state that is stored.

        Raises:
            Aborted: Others changed it meanwhile.
        """
        if etag and etag != stored.etag:
            noun = self.kind.noun
            raise Aborted(f"Specified {noun} `etag`: `{etag}` does not match server `etag`: `{stored.etag}`")

    def _check(self, node: Message) -> Iterator[Finding]:
        yield from check_display_name(node.display_name, f"{self.noun}.display_name")
        yield from check_labels(node.labels, f"{self.noun}.labels")
        size = raw(node).metadata.ByteSize()
        if size > MOST_METADATA_BYTES:
            yield f"{self.noun}.metadata", f"It has {size} bytes. Expected at most {MOST_METADATA_BYTES}."

    def _check_schema(self, node: Message) -> Iterator[Finding]:
        if node.schema_title not in self.schemas:
            said = f"There is no schema {node.schema_title!r}. Expected one of {self.schemas}."
            yield f"{self.noun}.schema_title", said
        if node.schema_version not in ("", SCHEMA_VERSION):
            said = f"There is no version {node.schema_version!r} of the schema. Expected {SCHEMA_VERSION}."
            yield f"{self.noun}.schema_version", said


def _next_etag(before: str) -> str:
    """Return the next etag: a number that grows, as the SDK compares them."""
    this = int(now().timestamp() * 1000)
    return str(max(this, int(before) + 1) if re.fullmatch(r"\d+", before) else this)
