"""What Google's types say about their own fields: which are required.

The Python classes carry this only in their docstrings ("Required. …"), so it is read from there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from google.cloud.aiplatform_v1 import types

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


@functools.cache
def required_of(full_name: str) -> frozenset[str]:
    """Return the names of a message type's fields that must be set, as its documentation says.

    Args:
        full_name: Protobuf name, such as `google.cloud.aiplatform.v1.CustomJob`; of others nothing is known.
    """
    short = full_name.removeprefix("google.cloud.aiplatform.v1.")
    kind: Any = types
    for part in short.split("."):
        kind = getattr(kind, part, None)
    texts = _FIELD_DOC.finditer(getattr(kind, "__doc__", None) or "")
    required = (each["name"] for each in texts if each["words"].startswith("Required."))
    return frozenset(name for name in required if (full_name, name) not in _MAY_BE_EMPTY)


def missing_fields(message: Message, *, nested: bool) -> list[str]:
    """Return paths of required fields that are not set.

    Args:
        nested: Also look inside the messages that are set (not for updates: their resource is partial by design).
    """
    return list(_missing(raw(message), "", nested))


def _missing(message: Message, path: str, nested: bool) -> Iterator[str]:
    descriptor = message.DESCRIPTOR
    present = {field.name for field, _ in message.ListFields()}
    for name in sorted(required_of(descriptor.full_name) - present):
        if name in descriptor.fields_by_name:
            yield path + name
    if not nested:
        return
    for field, value in message.ListFields():
        for label, child in _children(field, value):
            yield from _missing(child, f"{path}{label}.", nested=True)


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
