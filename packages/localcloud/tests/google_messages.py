"""Google's own types of requests in protobuf, walked by their descriptors.

In: a service's `MessageFields`, and the types of its requests. Out: which fields have no fate; paths to fields by their
fates, and messages in which such a field is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localcloud.fields import Fate, Rule, Table
from localcloud.message_fields import MessageFields, inner_type

Descriptor = Any
TIMES = ("google.protobuf.Duration", "google.protobuf.Timestamp")


def name_of(field: Descriptor) -> str:
    """Return a field's name; proto-plus sets `_` behind words of Python."""
    return str(field.name).removesuffix("_")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A field, and the way to it from a message."""

    steps: tuple[Descriptor, ...]
    rule: Rule

    @property
    def field(self) -> Descriptor:
        """The field itself."""
        return self.steps[-1]

    def shown(self, key: str = "k") -> str:
        """The way as a refusal names it, through the first of each list and one key of each map."""
        marks = {"": "", "[]": "[0]", ".*": f"[{key!r}]"}
        outer = "".join(f"{name_of(step)}{marks[inner_type(step)[1]]}." for step in self.steps[:-1])
        return outer + name_of(self.field)


@dataclass(frozen=True, kw_only=True)
class Requests:
    """All requests that a service takes.

    Attributes:
        fields: Their tables.
        types: Method -> the type of its request, as a descriptor.
    """

    fields: MessageFields
    types: Mapping[str, Descriptor]

    def missing(self) -> list[str]:
        """Return the fields that have no fate."""
        tables = [(method, self.fields.fields.parameters.get(method, Table({})), each) for method, each in self._own()]
        tables += [(name, self.fields.table_of(name), each) for name, each in self.reached().items()]
        return [
            f"{where}.{name_of(field)}"
            for where, table, kind in tables
            for field in kind.fields
            if table.rule_of(name_of(field)) is None
        ]

    def strange(self) -> list[str]:
        """Return the paths of the tables, and the tables, that no type has."""
        reached = {name: (self.fields.table_of(name), kind) for name, kind in self.reached().items()}
        found = [name for name in self.fields.fields.resources if not any(self._means(name, each) for each in reached)]
        known = [*reached.values(), *((self.fields.fields.parameters[method], kind) for method, kind in self._own())]
        return found + [
            f"{kind.name}.{path}" for table, kind in known for path in table.rules if not _is_path(kind, path)
        ]

    def reached(self) -> dict[str, Descriptor]:
        """Return every type in a request whose fields are looked at, by its name in protobuf."""
        found: dict[str, Descriptor] = {}
        waiting = [(self.fields.fields.parameters[method], kind) for method, kind in self._own()]
        while waiting:
            table, kind = waiting.pop()
            for field in kind.fields:
                inner, rule = inner_type(field)[0], table.rule_of(name_of(field))
                is_taken = rule is not None and rule.fate not in (Fate.IGNORED, Fate.REFUSED)
                if not is_taken or inner is None or table.rule_of(f"{name_of(field)}.**") is not None:
                    continue
                if inner.full_name not in found:
                    found[inner.full_name] = inner
                    waiting.append((self.fields.table_of(inner.full_name), inner))
        return found

    def places(self, method: str, fate: Fate) -> Iterator[Place]:
        """Yield the ways to the fields of a request that have a fate and no fields of their own that are looked at."""
        yield from self._below(self.types[method], fate, (), [(self.fields.fields.parameters[method], "")])

    def _below(
        self, kind: Descriptor, fate: Fate, way: tuple[Descriptor, ...], tables: Sequence[tuple[Table, str]]
    ) -> Iterator[Place]:
        for field in kind.fields:
            name, steps = name_of(field), (*way, field)
            rule = next((found for table, at in tables if (found := table.rule_of(f"{at}{name}"))), None)
            inner, mark = inner_type(field)
            ends = inner is None or any(table.rule_of(f"{at}{name}.**") for table, at in tables)
            if rule is not None and rule.fate in (Fate.IGNORED, Fate.REFUSED):
                ends = True
            if rule is not None and ends and rule.fate is fate:
                yield Place(steps=steps, rule=rule)
            if rule is None or ends or any(inner is step.message_type for step in way):
                continue
            further = [(table, f"{at}{name}{mark}.") for table, at in tables]
            yield from self._below(inner, fate, steps, [*further, (self.fields.table_of(inner.full_name), "")])

    def _own(self) -> list[tuple[str, Descriptor]]:
        return [(method, kind) for method, kind in self.types.items() if method in self.fields.fields.parameters]

    def _means(self, name: str, full_name: str) -> bool:
        return self.fields.table_of(full_name) is self.fields.fields.resources[name]


def put(message: Any, place: Place, value: Any = None, key: str = "k") -> Any:
    """Set a field in a message, by default to a value that says something; give the value."""
    for step in place.steps[:-1]:
        inner, mark = getattr(message, step.name), inner_type(step)[1]
        if mark == "[]":
            message = inner[0] if len(inner) else inner.add()
        else:
            message = inner[key] if mark == ".*" else inner
            message.SetInParent()
    field = place.field
    value = value_of(field, place.rule) if value is None else value
    held = getattr(message, field.name)
    if isinstance(value, dict):
        for name, each in value.items():
            if hasattr(each, "DESCRIPTOR"):
                held[name].CopyFrom(each)
            else:
                held[name] = each
    elif field.is_repeated:
        del held[:]
        held.extend(value)
    elif field.message_type is not None:
        held.CopyFrom(value)
        held.SetInParent()
    else:
        setattr(message, field.name, value)
    return value


def found_at(message: Any, place: Place, key: str = "k") -> Any:
    """Return what a message has in a field."""
    for step in place.steps[:-1]:
        inner, mark = getattr(message, step.name), inner_type(step)[1]
        message = inner[0] if mark == "[]" else inner[key] if mark == ".*" else inner
    held = getattr(message, place.field.name)
    if place.field.is_repeated:
        return dict(held) if inner_type(place.field)[1] == ".*" or hasattr(held, "items") else list(held)
    return held


def value_of(field: Descriptor, rule: Rule) -> Any:
    """Return a value that says something, and that the field's rule does not let pass for nothing."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {"k": _one(field.message_type.fields_by_name["value"], rule)}
    one = _one(field, rule)
    return [one] if field.is_repeated else one


def _one(field: Descriptor, rule: Rule) -> Any:
    if field.message_type is not None:
        return _message(field.message_type)
    if field.enum_type is not None:
        names = [each for each in field.enum_type.values if each.number and each.name not in rule.unless]
        return names[-1].number
    values = {field.CPPTYPE_BOOL: True, field.CPPTYPE_STRING: b"text" if field.type == field.TYPE_BYTES else "text"}
    values |= {field.CPPTYPE_DOUBLE: 0.5, field.CPPTYPE_FLOAT: 0.5}
    return values.get(field.cpp_type, 7)


def _message(kind: Descriptor) -> Any:
    message = kind._concrete_class()
    if kind.full_name == "google.protobuf.Value":
        message.string_value = "text"
        return message
    if kind.full_name == "google.protobuf.Struct":
        message.update({"k": "text"})
        return message
    for field in kind.fields:
        if field.message_type is not None or field.containing_oneof is not None:
            continue
        value = _one(field, Rule(fate=Fate.HELD))
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    if kind.full_name in TIMES:
        message.nanos = 0
    if not message.ListFields():  # all that it has are messages, or one of several
        put(message, Place(steps=(kind.fields[0],), rule=Rule(fate=Fate.HELD)))
    return message


def _is_path(kind: Descriptor, path: str) -> bool:
    """Return whether a path of a table leads to a field."""
    for name in path.removesuffix(".**").replace("[]", "").split("."):
        if name == "*":
            continue
        field = next((each for each in kind.fields if name_of(each) == name), None) if kind is not None else None
        if field is None:
            return False
        kind = inner_type(field)[0]
    return True
