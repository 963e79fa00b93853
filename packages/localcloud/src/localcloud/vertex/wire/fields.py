"""Holds every request against `vertex/fields.json`: no field is dropped without a word.

Comes in: a method and its request. Goes out: the request without what is ignored, or a refusal by the field's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from localcloud.fields import Problem, read_fields
from localcloud.message_fields import MessageFields
from localcloud.vertex.wire.errors import InvalidArgument, Unimplemented
from localcloud.vertex.wire.methods import PREFIX, Message, Method, raw

FIELDS = MessageFields(read_fields(Path(__file__).parents[1] / "fields.json"), PREFIX)
"""What becomes of each field."""


def check_request(method: Method, request: Message) -> None:
    """Let a request pass of which every field has a fate; what is ignored is taken out of it.

    Raises:
        InvalidArgument: A field is unknown.
        Unimplemented: A field asks for what the local cloud does not offer.
    """
    _refuse(FIELDS.request_problems(method.full_name, raw(request)), method.name)


def check_message(message: Message, at: str) -> None:
    """Let a message pass that came in another form than its own, as `check_request` does.

    Args:
        at: Where it stands in its request.

    Raises:
        ApiError: A field is unknown, or not offered.
    """
    _refuse(FIELDS.problems(raw(message), at), at)


def check_parameters(query: Mapping[str, Sequence[str]]) -> None:
    """Refuse a parameter of the address that all methods have and that would be dropped; others are fields.

    Raises:
        Unimplemented: It is not offered.
    """
    for name, values in query.items():
        rule = FIELDS.fields.parameter("*", name)
        if rule is not None and not all(rule.takes(value) for value in values):
            raise Unimplemented(f"The local cloud does not offer the parameter {name}: {rule.reason}. Leave it out.")


def is_parameter(name: str) -> bool:
    """Return whether all methods have a parameter of the address, so that it is no field of a request."""
    return FIELDS.fields.parameter("*", name) is not None


def _refuse(problems: Sequence[Problem], where: str) -> None:
    for problem in problems:
        if problem.rule is None:
            raise InvalidArgument(
                f"{where}: unknown field {problem.path}. Expected only fields of the v1 API.", field=problem.path
            )
        raise Unimplemented(
            f"The local cloud does not offer {problem.path}: {problem.rule.reason}. Leave it out.", field=problem.path
        )
