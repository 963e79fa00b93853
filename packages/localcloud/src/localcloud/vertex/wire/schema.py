"""What Google's types say about their own fields: which are required, which only the service may set.

The Python classes carry these only in their docstrings ("Required. …", "Output only. …"), so they are read from there.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.protobuf import unknown_fields

from localcloud.vertex.wire.methods import Message, raw

# What may be empty, whatever its docstring says: an environment variable, the client of a suggestion, which Google's
# own SDK leaves empty by default (aiplatform.vizier.Study.suggest), and any field of a deployment's explanation_spec,
# which is the model's then (DeployedModel.explanation_spec).
_MAY_BE_EMPTY = {
    ("google.cloud.aiplatform.v1.EnvVar", "value"),
    ("google.cloud.aiplatform.v1.SuggestTrialsRequest", "client_id"),
    ("google.cloud.aiplatform.v1.ExplanationSpec", "parameters"),
}
_FIELD_DOC = re.compile(r"^        (?P<name>\w+) \([^\n]*?\):\n\s+(?P<words>[^\n]*)", re.MULTILINE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Behavior:
    """Field names of one message type by what may be done with them."""

    required: frozenset[str]
    output_only: frozenset[str]


@functools.cache
def behavior_of(full_name: str) -> Behavior:
    """Read the behaviour of a message type's fields from its documentation.

    Args:
        full_name: Protobuf name, such as `google.cloud.aiplatform.v1.CustomJob`; of others nothing is known.
    """
    short = full_name.removeprefix("google.cloud.aiplatform.v1.")
    kind: Any = types
    for part in short.split("."):
        kind = getattr(kind, part, None)
    texts = {m["name"]: m["words"] for m in _FIELD_DOC.finditer(getattr(kind, "__doc__", None) or "")}
    return Behavior(
        required=frozenset(
            name
            for name, text in texts.items()
            if text.startswith("Required.") and (full_name, name) not in _MAY_BE_EMPTY
        ),
        output_only=frozenset(name for name, text in texts.items() if text.startswith("Output only.")),
    )


def missing_fields(message: Message, *, nested: bool) -> list[str]:
    """Return paths of required fields that are not set.

    Args:
        nested: Also look inside the messages that are set (not for updates: their resource is partial by design).
    """
    return list(_missing(raw(message), "", nested))


def _missing(message: Message, path: str, nested: bool) -> Iterator[str]:
    descriptor = message.DESCRIPTOR
    present = {field.name for field, _ in message.ListFields()}
    for name in sorted(behavior_of(descriptor.full_name).required - present):
        if name in descriptor.fields_by_name:
            yield path + name
    if not nested:
        return
    for field, value in message.ListFields():
        for label, child in _children(field, value):
            yield from _missing(child, f"{path}{label}.", nested=True)


def clear_output_only(message: Message) -> None:
    """Drop what the caller may not set, as the service does without a word."""
    inner = raw(message)
    output_only = behavior_of(inner.DESCRIPTOR.full_name).output_only
    for field, value in list(inner.ListFields()):
        if field.name in output_only:
            inner.ClearField(field.name)
            continue
        for _, child in _children(field, value):
            clear_output_only(child)


def unknown_field(message: Message, path: str = "") -> str | None:
    """Name the first field that this version of the API does not know, as `path#number`, or None."""
    inner = raw(message)
    strangers = unknown_fields.UnknownFieldSet(inner)
    if len(strangers):
        return f"{path or inner.DESCRIPTOR.name}#{strangers[0].field_number}"
    for field, value in inner.ListFields():
        for label, child in _children(field, value):
            unknown = unknown_field(child, f"{path}.{label}" if path else label)
            if unknown:
                return unknown
    return None


def _children(field: Message, value: Message) -> Iterator[tuple[str, Any]]:
    if field.message_type is None or field.message_type.full_name.startswith("google.protobuf."):
        return
    if field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is not None:
            yield from ((f"{field.name}[{key!r}]", value[key]) for key in value)
    elif field.is_repeated:
        yield from ((f"{field.name}[{i}]", child) for i, child in enumerate(value))
    else:
        yield field.name, value
