"""Reads and writes the JSON documents that the trainer shares with the Airflow side.

Comes in: the address of a document. Goes out: a checked frozen dataclass of `trainer.contract.documents`; and the
other way round.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from trainer.contract.checking import Json, Wrong, json_names, read_as
from trainer.contract.documents import TrainRequest
from trainer.contract.json_text import read_json
from trainer.errors import ContractError
from trainer.storage import Storage

SCHEMA_VERSION = 1

Document = TypeVar("Document")


def parse_document(document: type[Document], content: bytes, where: str) -> Document:
    """Return the document that its bytes say.

    Args:
        document: One of the dataclasses of `trainer.contract.documents`.
        content: JSON, UTF-8.
        where: The document's address, for messages.

    Raises:
        ContractError: Not JSON, another kind of document, or against the contract; names the field.
    """
    kind: str = document.kind  # type: ignore[attr-defined]  # each document class has its kind as a class variable
    try:
        value = read_json(content)
    except ValueError as error:
        raise ContractError(where, f"is not JSON ({error})", f"a document of kind {kind!r}") from None
    if not isinstance(value, dict):
        raise ContractError(where, f"is a JSON {type(value).__name__}", f"a document of kind {kind!r}")
    for key, expected in (("kind", kind), ("schema_version", SCHEMA_VERSION)):
        if value.get(key) != expected:
            difference = f"{key} is {value[key]!r}"[:80] if key in value else f"the document has no key {key!r}"
            raise ContractError(where, difference, f"{key} {expected!r}", "Pass the right address")
    body = {name: item for name, item in value.items() if name not in ("kind", "schema_version")}
    try:
        return read_as(document, body)
    except Wrong as wrong:
        raise ContractError(where, f"{wrong.path or 'the document'} {wrong.found}", wrong.expected) from None


def read_document(document: type[Document], uri: str, storage: Storage) -> Document:
    """Return the document at an address.

    Raises:
        ContractError: It is missing or invalid.
        StorageError: Storage did not answer.
    """
    return read_request(document, uri, storage)[0]


def read_request(document: type[Document], uri: str, storage: Storage) -> tuple[Document, str]:
    """Return the document at an address, and the SHA-256 of its bytes, which its result carries.

    Raises:
        ContractError: It is missing or invalid.
        StorageError: Storage did not answer.
    """
    content = storage.read_object(uri)
    if content is None:
        raise ContractError(uri, "there is no such document", f"one of kind {document.kind!r}")  # type: ignore[attr-defined]  # as above
    return parse_document(document, content, uri), hashlib.sha256(content).hexdigest()


def serialise(document: object) -> bytes:
    """Return the bytes that are stored: UTF-8, two spaces, sorted keys, a newline at the end.

    Raises:
        ContractError: The document breaks its own contract, or holds NaN.
    """
    kind: str = document.kind  # type: ignore[attr-defined]  # as above
    value = {"schema_version": SCHEMA_VERSION, "kind": kind, **_plain(document)}
    try:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ContractError(kind, f"cannot be written: {error}", "finite numbers") from error
    content = (text + "\n").encode()
    parse_document(type(document), content, f"{kind} (being written)")
    return content


def digest(request: TrainRequest) -> str:
    """Return what ties a checkpoint or a trial's result to a request: the SHA-256 of all that it says."""
    return hashlib.sha256(json.dumps(dataclasses.asdict(request), sort_keys=True).encode()).hexdigest()


def _plain(value: Json) -> Json:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, field)) for field, name in json_names(type(value)).items()}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
