"""Google's own lists of fields and parameters, and the pages of what becomes of each here.

In: the discovery documents that google-api-python-client brings, and each service's `fields.json`. Out: the paths of
every field of a resource, as `localcloud.fields` writes them; values for them; pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import googleapiclient  # type: ignore[import-untyped]  # it has no types

from localcloud.fields import Fate, Fields, Rule, Table

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
Schema = Mapping[str, Any]
VALUES = {"date-time": "2026-01-02T03:04:05Z", "google-datetime": "2026-01-02T03:04:05Z", "date": "2026-01-02"}
PAGE_HEAD = """# What becomes of each field: {title}

Rendered from `{source}`, which the local cloud itself reads.
To change it, edit that file and run `packages/localcloud/tests/test_fields.py` with `LOCALCLOUD_RENDER=1`. *kept*: it
comes back when the resource is read. *held*: it has its effect. *ignored*: it may be given and is not looked at, for
the reason beside it. *refused*: by its name, unless it says what is so anyway (false, nothing). What is not listed is
refused as unknown.
"""
PAGE_OF_MESSAGES = """A message inside of another has a section of its own, by the name of its type; a path with a point
is what holds of it in that place alone.
"""


class Discovery:
    """A discovery document: `Discovery("storage.v1")`."""

    def __init__(self, name: str) -> None:
        document = json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))
        self.schemas: Mapping[str, Schema] = document["schemas"]
        self.methods = {method["id"]: method for method in _methods(document)}
        self.standard: set[str] = set(document["parameters"])

    def parameters(self, method: str) -> set[str]:
        """Return the names of a method's parameters that stand in the query."""
        own = self.methods[method].get("parameters", {})
        return {name for name, each in own.items() if each["location"] == "query"}

    def fields(self, resource: str, table: Table) -> Iterator[tuple[str, Schema]]:
        """Yield path and schema of each field of a resource; what is below an ignored or refused one has its fate."""
        yield from self._below(self.schemas[resource], "", table)

    def _below(self, schema: Schema, at: str, table: Table) -> Iterator[tuple[str, Schema]]:
        for name, each in schema.get("properties", {}).items():
            path = f"{at}{name}"
            yield path, each
            rule = table.rule_of(path)
            if rule is None or rule.fate in (Fate.IGNORED, Fate.REFUSED) or table.rule_of(f"{path}.**") is not None:
                continue
            inner, mark = self.inner(each)
            if "additionalProperties" in inner:
                yield f"{path}.*", inner["additionalProperties"]
            yield from self._below(inner, f"{path}{mark}.", table)

    def inner(self, schema: Schema) -> tuple[Schema, str]:
        """Return what a schema is, or what its items are, with the mark of a list."""
        schema = self._meant(schema)
        return (self._meant(schema["items"]), "[]") if "items" in schema else (schema, "")

    def value(self, schema: Schema) -> Any:
        """Return a value that says something, of a field without fields of its own."""
        schema = self._meant(schema)
        kind = schema.get("type")
        if kind == "array":
            return [self.value(schema["items"])]
        if kind == "object":
            first = next(iter(schema.get("properties", {"k": {"type": "string"}}).items()))
            return {first[0]: self.value(first[1])}
        simple = {"boolean": True, "integer": 7, "number": 0.5}
        if kind in simple:
            return simple[kind]
        if "enum" in schema:
            return schema["enum"][-1]
        return VALUES.get(schema.get("format", ""), "7" if "int" in schema.get("format", "") else "text")

    def _meant(self, schema: Schema) -> Schema:
        return self.schemas[schema["$ref"]] if "$ref" in schema else schema


def document_of(path: str, value: Any) -> Any:
    """Return a document that has a value at a path: `a.b[].c` gives {"a": {"b": [{"c": …}]}}."""
    name, dot, rest = path.partition(".")
    inner = document_of(rest, value) if dot else value
    return {name.removesuffix("[]").replace("*", "k"): [inner] if name.endswith("[]") else inner}


def value_at(document: Any, path: str) -> Any:
    """Return what a document has at a path, None for nothing."""
    for name in path.split("."):
        document = (document or {}).get(name.removesuffix("[]").replace("*", "k"))
        document = document[0] if name.endswith("[]") and document else document
    return document


def render_page(title: str, source: str, fields: Fields, *, of_messages: bool = False) -> str:
    """Return the page of a service; one of messages says where those in other messages stand."""
    lines = [PAGE_HEAD.format(title=title, source=source)]
    if of_messages:
        lines.append(PAGE_OF_MESSAGES)
    for name, table in fields.resources.items():
        lines += [f"## {name}\n", *_rows("field", table), ""]
    for method, table in fields.parameters.items():
        if table.rules:
            of = "all methods" if method == "*" else method
            lines += [f"## Parameters of {of}\n", *_rows("parameter", table), ""]
    if fields.headers:
        lines += ["## Header fields of the XML API\n", *_rows("field", Table(fields.headers)), ""]
    return "\n".join(lines)


def _rows(what: str, table: Table) -> list[str]:
    rules = ((path, rule) for path, rule in table.rules.items() if not path.endswith(".**"))
    rows = [f"| `{path}` | {_fate(rule)} | {rule.reason} |".replace("|  |", "| |") for path, rule in rules]
    return [f"| {what} | | |", "|---|---|---|", *rows]


def _fate(rule: Rule) -> str:
    return (
        " or ".join([f"{rule.fate} unless `{rule.unless[0]}`", *(f"`{each}`" for each in rule.unless[1:])])
        if rule.unless
        else rule.fate
    )


def _methods(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from document.get("methods", {}).values()
    for each in document.get("resources", {}).values():
        yield from _methods(each)
