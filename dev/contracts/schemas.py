"""JSON Schemas of all documents: what another program, in any language, must write and may read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from contracts.docstrings import field_docstrings, without_links
from contracts.models import document_models_below
from retraining.core.documents import Document

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_schema(model: type[Document]) -> str:
    """Return the text of a kind's schema file."""
    described = {cls.__name__: cls for cls in document_models_below(model)}
    schema = _rendered(model.model_json_schema(by_alias=True), described)
    schema["$schema"], schema["title"] = DIALECT, model.kind_name()
    for name in ("kind", "schema_version"):
        schema["properties"][name].pop("default", None)
    schema["required"] = sorted({*schema.get("required", ()), "kind", "schema_version"})
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _rendered(node: Any, described: Mapping[str, type[BaseModel]]) -> Any:  # noqa: ANN401 - any JSON value
    """Put fields' docstrings in, and pydantic's titles out; a property may be called title."""
    if isinstance(node, list):
        return [_rendered(item, described) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: {name: _rendered(item, described) for name, item in value.items()}
        if key in ("properties", "$defs")
        else _rendered(value, described)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }
    if isinstance(kept.get("required"), list):
        kept["required"] = sorted(kept["required"])
    if "properties" in node and node.get("title") in described:
        cls = described[node["title"]]
        for name, text in field_docstrings(cls).items():
            kept["properties"][cls.model_fields[name].alias or name]["description"] = without_links(text)
    return kept
