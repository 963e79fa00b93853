"""Schemata of a version: what an instance, a prediction and the parameters of a request look like.

In: the signature of the training report, and the spec. Out: OpenAPI 3.0.2 Schema Objects as YAML files, as
`PredictSchemata` of a Vertex AI model points to them (https://spec.openapis.org/oas/v3.0.2#schema-object).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import yaml

from retraining.core.documents.plan import Plan
from retraining.core.documents.training import Shapes, Signature
from retraining.core.untyped import JsonObject

SchemaName = Literal["instance", "prediction", "parameters"]

_LISTS: Shapes = {"scores": (-1,), "quantiles": (-1,)}
"""Outputs that are lists where a report tells no shapes."""


def schema_files(plan: Plan, signature: Signature) -> dict[SchemaName, bytes]:
    """Return the schemata of a run's version as YAML files, by what they describe."""
    schemata: dict[SchemaName, JsonObject] = {
        "instance": _instance(plan, signature),
        "prediction": _prediction(signature),
        "parameters": _object({}),
    }
    return {name: yaml.safe_dump(schema, sort_keys=False).encode() for name, schema in schemata.items()}


def _instance(plan: Plan, signature: Signature) -> JsonObject:
    features = {feature.name: feature.kind for feature in plan.spec.features}
    shapes = signature.input_shapes
    if shapes is None:
        shapes = {name: (-1,) for name, kind in features.items() if kind == "sequence"}
    return _object(
        {
            name: _image() if features.get(name) == "image" else _sized(_scalar(dtype), shapes.get(name, ()))
            for name, dtype in signature.inputs.items()
        }
    )


def _prediction(signature: Signature) -> JsonObject:
    """Describe one prediction: the only output itself, or several by name."""
    shapes = _LISTS if signature.output_shapes is None else signature.output_shapes
    outputs = {name: _sized(_scalar(dtype), shapes.get(name, ())) for name, dtype in signature.outputs.items()}
    return next(iter(outputs.values())) if len(outputs) == 1 else _object(outputs)


def _object(properties: Mapping[str, JsonObject]) -> JsonObject:
    required: JsonObject = {"required": list(properties)} if properties else {}  # an empty list is no valid one
    return {"type": "object", **required, "properties": dict(properties), "additionalProperties": False}


def _scalar(dtype: str) -> JsonObject:
    """Describe one value: of a number NaN is a missing one, of a text an empty one."""
    if dtype.startswith(("int", "uint")):
        return {"type": "integer"}
    known: dict[str, JsonObject] = {
        "float32": {"type": "number", "format": "float"},
        "float64": {"type": "number", "format": "double"},
        "string": {"type": "string"},
        "bool": {"type": "boolean"},
    }
    return known.get(dtype, {})


def _sized(schema: JsonObject, sizes: tuple[int, ...]) -> JsonObject:
    for size in reversed(sizes):
        schema = {"type": "array", "items": schema, **({"minItems": size, "maxItems": size} if size >= 0 else {})}
    return schema


def _image() -> JsonObject:
    """Describe a PNG or JPEG, or an empty text for a missing one."""
    content = _object({"b64": {"type": "string", "format": "byte"}})
    return {"anyOf": [content, {"type": "string", "maxLength": 0}]}
