"""Reads and writes the JSON documents that the trainer shares with the Airflow side.

Comes in: the address of a document. Goes out: a validated frozen dataclass of `trainer.contract.documents`; and the
other way round. The schemas are `include/contracts/<kind>.schema.json` of the repository; the image and the source
distribution carry a copy as `trainer/contracts`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jsonschema

from trainer.contract.documents import TrainRequest
from trainer.contract.json_text import read_json
from trainer.errors import ContractError
from trainer.storage import Storage

SCHEMA_VERSION = 1
_SHOWN_CHARACTERS = 120

Document = TypeVar("Document")
Json = Any
"""What `json.loads` gives, or a type annotation to build from it."""


def contracts_path() -> Path:
    """Give the folder of the schemas: in the package where the trainer is installed, else the repository's.

    Raises:
        ContractError: There is neither.
    """
    package_path = Path(__file__).resolve().parents[1]
    candidates = (package_path / "contracts", package_path.parent / "include" / "contracts")
    for path in candidates:
        if path.is_dir():
            return path
    raise ContractError(
        str(candidates[0]),
        "the folder of JSON Schemas is missing",
        f"it here or as {candidates[1]}",
        "Build the image or the source distribution again",
    )


@functools.cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    path = contracts_path() / f"{kind}.schema.json"
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ContractError(str(path), f"no schema for documents of kind {kind!r}") from None
    return jsonschema.Draft202012Validator(schema)


def parse(document: type[Document], content: bytes, where: str) -> Document:
    """Validate a document's bytes and give the dataclass.

    Args:
        document: One of the dataclasses of `trainer.contract.documents`.
        content: JSON, UTF-8.
        where: The document's address, for messages.

    Raises:
        ContractError: Not JSON, another kind of document, or against the schema; names the field.
    """
    kind: str = document.kind  # type: ignore[attr-defined]  # each document class has its kind as a class variable
    try:
        value = read_json(content)
    except ValueError as error:
        raise ContractError(where, f"is not JSON ({error})", f"a document of kind {kind!r}") from None
    validate(kind, value, where)
    built: Document = _build(
        document,
        {name: item for name, item in value.items() if name not in ("kind", "schema_version")},  # type: ignore[attr-defined]  # the schema says that it is an object
    )
    return built


def validate(kind: str, value: object, where: str) -> None:
    """Check a JSON value against the schema of a kind.

    Raises:
        ContractError: Names the document, the field, what was found and what was expected.
    """
    if isinstance(value, Mapping) and value.get("kind", kind) != kind:
        raise ContractError(
            where, f"is a document of kind {value['kind']!r}", f"kind {kind!r}", "Pass the right address"
        )
    error = jsonschema.exceptions.best_match(_validator(kind).iter_errors(value))
    if error is not None:
        raise _contract_error(error, where)


def read(document: type[Document], uri: str, storage: Storage) -> Document:
    """Read and validate the document at an address.

    Raises:
        ContractError: It is missing or invalid.
        StorageError: Storage did not answer.
    """
    content = storage.read(uri)
    if content is None:
        raise ContractError(uri, "there is no such document", f"one of kind {document.kind!r}")  # type: ignore[attr-defined]
    return parse(document, content, uri)


def serialise(document: object) -> bytes:
    """Give the bytes that are stored: UTF-8, two spaces, sorted keys, a newline at the end.

    Raises:
        ContractError: The document breaks its own schema, or holds NaN.
    """
    kind: str = document.kind  # type: ignore[attr-defined]
    value = {"schema_version": SCHEMA_VERSION, "kind": kind, **_plain(document)}
    try:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ContractError(kind, f"cannot be written: {error}", "finite numbers") from error
    validate(kind, json.loads(text), f"{kind} (being written)")
    return (text + "\n").encode()


def digest(request: TrainRequest) -> str:
    """Give what ties a checkpoint or a trial's result to a request: the SHA-256 of all that it says."""
    return hashlib.sha256(json.dumps(dataclasses.asdict(request), sort_keys=True).encode()).hexdigest()


def _build(target: Json, value: Json) -> Json:
    """Turn valid JSON into the annotated type: dataclasses (of the fields they have), tuples, mappings, optionals."""
    origin: Any = typing.get_origin(target)
    if origin is typing.Union or origin is types.UnionType:
        if value is None:
            return None
        options = [option for option in typing.get_args(target) if option is not type(None)]
        return _build(options[0], value) if len(options) == 1 else value
    if dataclasses.is_dataclass(target):
        hints = typing.get_type_hints(target)
        return typing.cast(Any, target)(
            **{name: _build(hints[name], item) for name, item in value.items() if name in hints}
        )
    if origin is tuple:
        return tuple(_build(typing.get_args(target)[0], item) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        item_type = typing.get_args(target)[1]
        return {name: _build(item_type, item) for name, item in value.items()}
    return value


def _plain(value: Json) -> Json:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


def _contract_error(error: Json, where: str) -> ContractError:
    field = error.json_path.removeprefix("$").lstrip(".") or "the document"
    found, expected = f"{field} is {_shown(error.instance)}", ""
    rule = error.validator_value
    match error.validator:
        case "additionalProperties":
            known = sorted(error.schema.get("properties", {}))
            unknown = sorted(set(error.instance) - set(known))
            close = difflib.get_close_matches(unknown[0], known, n=1)
            found = f"{field} has the unknown key {unknown[0]!r}"
            expected = f"one of: {', '.join(known)}" + (f". Did you mean {close[0]!r}?" if close else "")
        case "required":
            missing = [name for name in rule if name not in error.instance]
            found, expected = f"{field} has no key {missing[0]!r}", f"all of: {', '.join(rule)}"
        case "type":
            expected = rule if isinstance(rule, str) else " or ".join(rule)
        case "enum":
            expected = "one of: " + ", ".join(json.dumps(item) for item in rule)
        case "const":
            expected = json.dumps(rule)
        case "pattern":
            expected = f"text like {rule}"
        case "oneOf" | "anyOf":
            expected = "one of the forms in the schema"
        case _:
            expected = f"{error.validator} {_shown(rule)}"
    return ContractError(f"{where}", found, expected)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
