"""Every key of a model's YAML acts, or is refused with a way out that works."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from retraining.core import documents
from retraining.core.errors import SpecError
from retraining.core.spec import files, model
from retraining.core.spec.messages import _sections
from tests.support.small_model import SPEC_YAML, make_plan, make_spec

ROOT = Path(__file__).resolve().parents[3]
READERS = ("plugins/retraining", "dags", "trainer")
# Read where the spec is read, under another name; and keys that are refused.
ELSEWHERE = {
    "data.checks.on_vanished_category": "by name, in findings.severity_of",
    "training.cluster.tier": "cluster.resolve_tier",
    "evaluation.min_value": "Evaluation.floor",
    "evaluation.max_value": "Evaluation.floor",
    "deployment.canary_percent": "refused",
    **{
        f"monitoring.policy.actions.{kind}": "by name, in policy.policy_of"
        for kind in ("latency", "age", "skew", "prediction_drift", "estimate")
    },
}
REMOVED = {
    "deployment: {canary: {max_error_rate: 0.01}}": (
        "deployment: {canary: {max_error_increase: 0.002}}",
        r"late\.yaml, line 18: deployment\.canary\.max_error_rate is 0\.01\. .*max_error_increase: 0\.002",
    ),
} | {
    f"deployment: {{canary_percent: {steps}}}": (
        f"deployment: {{canary: {{percent: {steps}}}}}",
        rf"late\.yaml, line 18: deployment\.canary_percent is {re.escape(steps)}\. .*deployment\.canary: \{{percent: ",
    )
    for steps in ("[10, 50, 100]", "[100]")
}


def load(path: Path, text: str) -> model.ModelSpec:
    """A file `late.yaml` with a text."""
    file = path / "late.yaml"
    file.write_text(text)
    return files.load_spec(file)


@pytest.mark.parametrize("line", REMOVED)
def test_a_removed_key_is_refused_by_name_and_its_way_out_loads(line: str, tmp_path: Path) -> None:
    """What the message names instead is taken; so is the file without it."""
    instead, message = REMOVED[line]
    with pytest.raises(SpecError, match=message):
        load(tmp_path, f"{SPEC_YAML}{line}\n")
    assert load(tmp_path, f"{SPEC_YAML}{instead}\n").deployment.canary is not None
    assert load(tmp_path, SPEC_YAML) == make_spec()


def test_a_plan_of_an_earlier_release_is_still_read() -> None:
    """The champion's plan is needed for every duel, whatever keys it has."""
    old = make_spec(deployment={"canary_percent": [10, 100]}, monitoring={"max_age_days": 14})
    stored = make_plan(old).to_bytes()
    assert documents.Plan.parse(stored).spec.deployment.canary_percent == (10, 100)


def test_a_ramp_of_an_earlier_release_is_still_read() -> None:
    """Its plan has the limit that no gate rests on any more."""
    old = make_spec(deployment={"canary": {"max_error_rate": 0.01, "max_latency_ratio": 1.5}})
    canary = documents.Plan.parse(make_plan(old).to_bytes()).spec.deployment.canary
    assert (canary.max_error_rate, canary.max_latency_ratio) == (0.01, 1.5)


def test_every_key_is_read_by_something() -> None:
    """A key that is only validated and kept is a promise nobody keeps: it acts, or it is refused."""
    read = _attributes_read()
    unread = {path for path, name in _keys(model.ModelSpec) if name not in read}
    assert unread == ELSEWHERE.keys()


def _keys(section: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    written = {field.alias or name: field for name, field in section.model_fields.items() if not field.exclude}
    for name, field in written.items():
        yield f"{path}{name}", name
        for inner in _sections(field.annotation):
            yield from _keys(inner, f"{path}{name}.")


def _attributes_read() -> set[str]:
    """Names of attributes that any module but those of the spec itself reads."""
    python = [file for folder in READERS for file in (ROOT / folder).rglob("*.py")]
    readers = [file for file in python if not file.is_relative_to(ROOT / "plugins/retraining/core/spec")]
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in readers)
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
