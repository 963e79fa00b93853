"""What is registered of instances and predictions fits those that a model takes and gives, and no others."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from retraining.core.documents import Report, Signature
from retraining.core.promotion.schemata import schema_files
from tests.support.contracts import EXAMPLES
from tests.support.small_model import make_plan, make_spec, spec_values

OUTPUT = {"score": "float32"}


def schemata(inputs: dict[str, str], outputs: dict[str, str] = OUTPUT, **changes: Any) -> dict[str, Any]:
    """The schemata of a small model with another signature and other features."""
    shapes = {key: changes.pop(key) for key in ("input_shapes", "output_shapes") if key in changes}
    files = schema_files(make_plan(make_spec(**changes)), Signature(inputs=inputs, outputs=outputs, **shapes))
    found: dict[str, Any] = {name: yaml.safe_load(data) for name, data in files.items()}
    for schema in found.values():
        jsonschema.Draft4Validator.check_schema(schema)  # what OpenAPI 3.0 builds on
    return found


def fits(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema.Draft4Validator(schema).is_valid(value)


def test_an_instance_has_every_input_in_its_type_and_no_other():
    instance = schemata({"carrier": "string", "distance": "float32"})["instance"]
    whole = {"carrier": "UA", "distance": 1400.0}
    assert fits(instance, whole)
    assert fits(instance, {"carrier": "", "distance": float("nan")})
    for wrong in ({"carrier": "UA"}, whole | {"tail": "N1"}, whole | {"distance": "far"}, whole | {"carrier": 3}, 1.0):
        assert not fits(instance, wrong), wrong


@pytest.mark.parametrize("shapes", [None, {"clicks": (-1,)}], ids=["by the spec", "by the report"])
def test_a_sequence_is_a_list_and_an_image_its_bytes(shapes):
    features = [
        {"name": "photo", "kind": "image", "height": 8, "width": 8},
        {"name": "clicks", "kind": "sequence", "of": "numeric", "length": 4},
        *spec_values()["features"],
    ]
    inputs = {"photo": "string", "clicks": "float32"}
    instance = schemata(inputs, features=features, input_shapes=shapes)["instance"]
    assert fits(instance, {"photo": {"b64": "iVBORw0KGgo="}, "clicks": [1.0, 2.5]})
    assert fits(instance, {"photo": "", "clicks": []})
    for wrong in ({"photo": "iVBORw0KGgo=", "clicks": []}, {"photo": {"b64": "x"}, "clicks": 1.0}):
        assert not fits(instance, wrong), wrong


@pytest.mark.parametrize(
    ("outputs", "shapes", "right", "wrong"),
    [
        (OUTPUT, {}, 0.5, [0.5]),
        ({"scores": "float32"}, {"scores": (3,)}, [0.1, 0.2, 0.7], [0.5, 0.5]),
        ({"scores": "float32"}, None, [0.1, 0.2, 0.7], 0.5),
        ({"score": "float32", "late": "float32"}, {}, {"score": 0.5, "late": 0.1}, 0.5),
    ],
    ids=["one number", "three classes", "classes of a trainer that tells no shapes", "several outputs"],
)
def test_a_prediction_is_the_only_output_or_all_by_name(outputs, shapes, right, wrong):
    prediction = schemata({"distance": "float32"}, outputs, output_shapes=shapes)["prediction"]
    assert fits(prediction, right)
    assert not fits(prediction, wrong)


@pytest.mark.parametrize(("dtype", "right", "wrong"), [("string", "AA-1", 17), ("int64", 17, "AA-1")])
def test_the_key_is_part_of_instance_and_prediction(dtype, right, wrong):
    """In its column's type, on both sides."""
    found = schemata({"distance": "float32", "id": dtype}, {"score": "float32", "id": dtype})
    for name, others in (("instance", {"distance": 1.0}), ("prediction", {"score": 0.5})):
        assert fits(found[name], others | {"id": right})
        assert not fits(found[name], others | {"id": wrong})
        assert not fits(found[name], others)


def test_a_request_has_no_parameters():
    parameters = schemata({"distance": "float32"})["parameters"]
    assert fits(parameters, {})
    assert not fits(parameters, {"threshold": 0.5})


def test_the_requests_of_a_training_report_fit(small_plan):
    report = Report.parse((EXAMPLES / "report__first_attempt.json").read_bytes())
    found = {name: yaml.safe_load(data) for name, data in schema_files(small_plan, report.signature).items()}
    for request in report.golden:
        values = json.loads(request.model_dump_json())
        assert fits(found["instance"], values["instance"])
        assert fits(found["prediction"], values["prediction"])
