"""What becomes of every field of a request in protobuf, as its service's `fields.json` says.

In: `fields.json`, and messages. Out: what is wrong with them, and they themselves without what is ignored. The file has
a table for each method (`parameters`: the fields of its request) and for each type of message (`resources`). Where a
type has another meaning in one place, the table of what it stands in says so by the path from there, and comes first.
What is below `**` there is taken as it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import unknown_fields

from localcloud.errors import CallError
from localcloud.fields import Fate, Fields, Problem, Rule, Table
from localcloud.untyped import Untyped

_EMPTY = Table({})
_LEAVES = "google.protobuf."


@dataclass(frozen=True, kw_only=True)
class _Context:
    """A table, and where in what it describes a message stands: "" or a path with `.` behind it."""

    table: Table
    at: str = ""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A field that is set."""

    owner: Untyped
    field: Untyped
    value: Untyped
    path: str
    rule: Rule | None


class MessageFields:
    """The fates of the fields of a service's requests.

    Args:
        fields: All of its tables.
        prefix: Of its types' names in protobuf (`google.logging.v2.`), which their tables go without.
    """

    def __init__(self, fields: Fields, prefix: str) -> None:
        self.fields = fields
        self._prefix = prefix

    def table_of(self, full_name: str) -> Table:
        """Return the table of a type, by its name in protobuf; an empty one of a type that has none."""
        return self.fields.resources.get(full_name.removeprefix(self._prefix), _EMPTY)

    def request_problems(self, method: str, request: Untyped) -> list[Problem]:
        """Return what is unknown or refused in a request, and take what is ignored out of it.

        Args:
            method: `JobService.CreateCustomJob`.
            request: Its message, plain protobuf.
        """
        contexts = [_Context(table=self.fields.parameters.get(method, _EMPTY))]
        return self._problems(request, "", contexts)

    def check(self, method: str, request: Untyped) -> None:
        """Let a request pass of which every field has a fate; what is ignored is taken out of it.

        Args:
            method: `LoggingServiceV2.ListLogEntries`.
            request: Its message, plain protobuf.

        Raises:
            CallError: A field is unknown (INVALID_ARGUMENT) or not offered (UNIMPLEMENTED).
        """
        for problem in self.request_problems(method, request):
            raise CallError(*_refusal(problem))

    def check_parameters(self, method: str, query: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters of an address that are fields of a request; all methods have the others.

        Raises:
            CallError: One is unknown, or not offered.
        """
        own: dict[str, str] = {}
        for name, value in query.items():
            rule = self.fields.parameter("*", name)
            if rule is not None and not rule.takes(value):
                raise CallError(*_refusal(Problem(path=f"the parameter {name}", rule=rule)))
            if rule is None and self.fields.parameter(method, _snake(name)) is None:
                raise CallError(f"Unknown parameter {name[:100]!r} of {method}. Leave it out.")
            if rule is None:
                own[name] = value
        return own

    def problems(self, message: Untyped, at: str) -> list[Problem]:
        """Return what is unknown or refused in a message of a type that has a table; what is ignored is taken out.

        Args:
            at: Where it stands in its request.
        """
        return self._problems(message, f"{at}.", [_Context(table=self.table_of(message.DESCRIPTOR.full_name))])

    def _problems(self, message: Untyped, at: str, contexts: Sequence[_Context]) -> list[Problem]:
        problems: list[Problem] = []
        ignored: list[_Found] = []
        for number, path in _unknown(message, at):
            problems.append(Problem(path=f"{path}#{number}"))
        for found in self._walk(message, at, contexts):
            if found.rule is None:
                problems.append(Problem(path=found.path))
            elif found.rule.fate is Fate.IGNORED:
                ignored.append(found)
            elif not found.rule.takes(_plain(found.field, found.value)):
                problems.append(Problem(path=found.path, rule=found.rule))
        for found in ignored:
            found.owner.ClearField(found.field.name)
        return problems

    def _walk(self, message: Untyped, at: str, contexts: Sequence[_Context]) -> Iterator[_Found]:
        for field, value in message.ListFields():
            name = field.name.removesuffix("_")  # which proto-plus sets behind words of Python
            rule = next((rule for each in contexts if (rule := each.table.rule_of(f"{each.at}{name}"))), None)
            yield _Found(owner=message, field=field, value=value, path=f"{at}{name}", rule=rule)
            if rule is None or rule.fate in (Fate.IGNORED, Fate.REFUSED):
                continue
            kind, mark = inner_type(field)
            if kind is None or any(each.table.rule_of(f"{each.at}{name}.**") for each in contexts):
                continue
            inside = [*_below(contexts, f"{name}{mark}."), _Context(table=self.table_of(kind.full_name))]
            for label, child in _children(field, value):
                yield from self._walk(child, f"{at}{label}.", inside)


def _refusal(problem: Problem) -> tuple[str, str]:
    """Return message and code of a field that is not taken."""
    if problem.rule is None:
        return f"Unknown field {problem.path}. Expected only fields of this version of the API.", "INVALID_ARGUMENT"
    return f"The local cloud does not offer {problem.path}: {problem.rule.reason}. Leave it out.", "UNIMPLEMENTED"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name)


def inner_type(field: Untyped) -> tuple[Any, str]:
    """Return the type of the messages in a field, with the mark of a list or a map; None: it has no fields of its own.

    Args:
        field: A descriptor.
    """
    kind, mark = field.message_type, "[]" if field.is_repeated else ""
    if kind is not None and kind.GetOptions().map_entry:
        kind, mark = kind.fields_by_name["value"].message_type, ".*"
    return (None, mark) if kind is None or kind.full_name.startswith(_LEAVES) else (kind, mark)


def _below(contexts: Sequence[_Context], step: str) -> Iterator[_Context]:
    """Yield the contexts in which something is said of what stands below a field."""
    for each in contexts:
        at = f"{each.at}{step}"
        if any(path.startswith(at) for path in each.table.rules):
            yield _Context(table=each.table, at=at)


def _children(field: Untyped, value: Untyped) -> Iterator[tuple[str, Any]]:
    if field.message_type.GetOptions().map_entry:
        yield from ((f"{field.name}[{key!r}]", value[key]) for key in value)
    elif field.is_repeated:
        yield from ((f"{field.name}[{index}]", child) for index, child in enumerate(value))
    else:
        yield field.name, value


def _unknown(message: Untyped, at: str) -> Iterator[tuple[int, str]]:
    """Yield number and place of the fields on the wire that no type here has."""
    unknown: Untyped = unknown_fields.UnknownFieldSet(message)
    for each in unknown:
        yield each.field_number, at.removesuffix(".") or message.DESCRIPTOR.name
    for field, value in message.ListFields():
        if inner_type(field)[0] is not None:
            for label, child in _children(field, value):
                yield from _unknown(child, f"{at}{label}.")


def _plain(field: Untyped, value: Untyped) -> Untyped:
    """Return a value as rules look at it: the name of an enum's, and nothing for a message in which nothing is set.

    One of several from which a caller chooses (a oneof) says something by being there.
    """
    if field.is_repeated:
        return list(value)
    if field.message_type is not None:
        chosen = field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
        return value if chosen or _says_something(value) else None
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name if value in field.enum_type.values_by_number else value
    return value


def _says_something(message: Untyped) -> bool:
    if message.DESCRIPTOR.full_name.startswith(_LEAVES):
        return True
    return any(
        field.message_type is None or field.is_repeated or _says_something(value)
        for field, value in message.ListFields()
    )
