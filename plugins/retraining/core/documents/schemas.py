"""JSON Schemas of the documents that Airflow writes: `python -m retraining.core.documents.schemas include/contracts`.

The trainer's documents have hand-written schemas: a contract that another framework may obey. The rest follows
from the models here, and a test keeps the files equal to them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from retraining.core.documents import KINDS, Document

TRAINERS_KINDS = frozenset(
    {"export_request", "span", "manifest", "train_request", "report", "evaluate_request", "evaluation"}
)


def render_schema(model: type[Document]) -> str:
    """Text of a kind's schema file."""
    schema = _without_titles(model.model_json_schema(mode="serialization", by_alias=True))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = model.kind_name()
    for name in ("kind", "schema_version"):
        schema["properties"][name].pop("default", None)
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write the schema file of every kind that is not the trainer's."""
    written = []
    for kind, model in KINDS.items():
        if kind not in TRAINERS_KINDS:
            path = folder / f"{kind}.schema.json"
            path.write_text(render_schema(model), encoding="utf-8")
            written.append(path)
    return written


def _without_titles(node: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Drop the titles pydantic makes from names, but not a property that is called title."""
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in ("properties", "$defs"):
            kept[key] = {name: _without_titles(item) for name, item in value.items()}
        else:
            kept[key] = _without_titles(value)
    return kept


if __name__ == "__main__":
    for path in write_schemas(Path(sys.argv[1])):
        print(path)
