"""What the registry holds of a night, and a night that takes an input away: on the local cloud, by Google's clients."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud import aiplatform_v1

from retraining.core.spec.files import load_spec
from retraining.operators.planning import run_plan
from tests.support.scenes.asked_endpoint import predict, retire
from tests.support.scenes.examples import copy_example, make_include
from tests.support.scenes.whole_run import read_object, run_whole

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
INPUT = "  - {name: departure_minute, kind: numeric}\n"


def test_a_night_without_an_input_is_stopped_until_the_spec_accepts_that(
    tmp_path: Path, local_cloud, make_run, monkeypatch
) -> None:
    """The champion keeps its place; with the digest of the refusal the gate lets the same change pass."""
    local_cloud.seed()
    include = make_include(tmp_path)
    path = copy_example("smallest", include, "late_inputs")
    monkeypatch.setattr(run_plan, "include_path", lambda: include)
    text = path.read_text(encoding="utf-8").replace("min_value: 0.55", "min_value: 0.55, slices: [carrier]")

    def night(day: int, changed: str, last: str | None = None) -> dict[str, Any]:
        path.write_text(changed, encoding="utf-8")
        logical_date = datetime(2013, 11, day, 3, tzinfo=UTC)
        return run_whole(load_spec(path), make_run(run_id=f"manual__{day}", logical_date=logical_date), last)

    first = night(20, text)
    assert first["decision"]["verdict"] == "promote", first["decision"]["words"]
    require_registered(first)
    assert INPUT in text
    less = text.replace(INPUT, "")
    gate = signature_gate(night(21, less, "decide"))
    assert not gate["passed"]
    assert gate["found"] == "input `departure_minute` is gone"
    digest = re.search(r'accept_signature: "([0-9a-f]{16})"', gate["words"])
    assert digest
    accepted = signature_gate(night(22, f'{less}deployment: {{accept_signature: "{digest[1]}"}}\n', "decide"))
    assert accepted["passed"]
    retire(first["deployment"]["endpoint_name"])


def signature_gate(found: dict[str, Any]) -> dict[str, Any]:
    """The gate of a night's decision."""
    assert found["evaluate_request"]["champion"]
    (gate,) = [gate for gate in found["decision"]["gates"] if gate["gate"] == "signature"]
    return dict(gate)


def require_registered(found: dict[str, Any]) -> None:
    """The version has its schemata, which the endpoint keeps to, its evaluation with slices, and its card."""
    version_name = found["registration"]["version_name"]
    region = version_name.split("/")[3]
    client = aiplatform_v1.ModelServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    schemata = client.get_model(name=version_name).predict_schemata
    instances = [request["instance"] for request in found["report"]["golden"]]
    answers = predict(found["deployment"]["endpoint_name"], instances)
    for uri, values in ((schemata.instance_schema_uri, instances), (schemata.prediction_schema_uri, answers)):
        for value in values:
            jsonschema.validate(value, yaml.safe_load(read_object(uri)))
    (evaluation,) = client.list_model_evaluations(parent=version_name)
    metrics = found["evaluation"]["challenger"]["metrics"]
    assert evaluation.metrics["auRoc"] == pytest.approx(metrics["auc"])
    slices = {item.slice_.value for item in client.list_model_evaluation_slices(parent=evaluation.name)}
    assert slices
    assert slices == {f"{item['column']}={item['value']}" for item in found["evaluation"]["challenger"]["slices"]}
    assert found["model_card"]["metrics"] == metrics
    assert "<h2>Model card</h2>" in found["page"]
