"""What a spec may say about its checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from retraining.core.checks.findings import finding, severity_of
from retraining.core.spec.check_rules import RULES
from retraining.core.spec.model import ModelSpec
from tests.support.small_model import make_spec

REPOSITORY = Path(__file__).resolve().parents[3]


def with_checks(**checks):
    data = make_spec().data.model_dump(mode="json")
    return make_spec(data={**data, "checks": {**data["checks"], **checks}})


@pytest.mark.parametrize(
    ("severity", "words"),
    [
        ({"range": "warn"}, "severity names the check 'range'; expected one of: schema, min_rows, "),
        ({"range": "warn"}, "Did you mean 'ranges'?"),
        ({"types": "warn"}, "severity names 'types', which always blocks: nothing could be trained"),
        (
            {"label_nulls": "warn"},
            "severity of label_nulls is 'warn': nothing could be trained; expected one of: block",
        ),
        ({"min_rows": "quarantine"}, "it does not speak of single days; expected one of: warn, block"),
        ({"new_category": "block"}, "'new_category', which has a key of its own: use data.checks.on_new_category"),
        ({"ranges": "ignore"}, "Input should be 'warn', 'block' or 'quarantine'"),
    ],
    ids=["unknown", "suggestion", "fixed", "no warning", "no day", "own key", "no severity"],
)
def test_a_severity_that_cannot_be_is_refused_with_the_way_out(severity, words):
    with pytest.raises(ValidationError) as caught:
        with_checks(severity=severity)
    assert words in str(caught.value)


@pytest.mark.parametrize("bounds", [[2, 1], [0, float("inf")], [float("nan"), 1]], ids=["falling", "infinite", "nan"])
def test_a_range_needs_two_rising_numbers(bounds):
    with pytest.raises(ValidationError):
        with_checks(ranges={"distance": bounds})


def test_a_single_value_is_a_range():
    assert with_checks(ranges={"distance": [1, 1]}).data.checks.ranges == {"distance": (1.0, 1.0)}


@pytest.mark.parametrize("name", ["carrier", "late", "distanze"], ids=["category", "label", "unknown"])
def test_only_a_numeric_feature_has_a_range(name):
    with pytest.raises(ValidationError, match=rf"data\.checks\.ranges names '{name}'; expected one of: distance"):
        with_checks(ranges={name: [0, 1]})


def test_limits_can_be_changed_for_one_run():
    changed = make_spec().with_overrides(
        {"data.checks.severity.ranges": "quarantine", "data.checks.ranges.distance": [0, 9]}
    )
    assert changed.data.checks.severity == {"ranges": "quarantine"}
    assert changed.data.checks.ranges == {"distance": (0.0, 9.0)}


@pytest.mark.parametrize(
    ("checks", "check", "severity"),
    [
        ({}, "ranges", "block"),
        ({"severity": {"ranges": "warn"}}, "ranges", "warn"),
        ({}, "day_volume", None),
        ({}, "new_category", "warn"),
        ({"on_new_category": "ignore"}, "new_category", None),
        ({"on_vanished_category": "block"}, "vanished_category", "block"),
    ],
)
def test_severity_is_the_specs_or_else_the_rules(checks, check, severity):
    assert severity_of(with_checks(**checks), check) == severity


def test_what_is_not_about_a_day_cannot_be_quarantined_and_blocks():
    spec = with_checks(severity={"ranges": "quarantine"})
    assert finding(spec, "ranges", found="a", expected="b", message="c").severity == "block"


@pytest.mark.parametrize("check", RULES)
def test_every_check_stands_in_the_documentation(check):
    page = (REPOSITORY / "docs" / "checks.md").read_text(encoding="utf-8")
    rule = RULES[check]
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{check}` |")]
    default = rule.severity or "off"
    assert f"| {default} |" in row
    choices = ", ".join(rule.may_be) or (f"`{rule.key}`" if rule.key else "always")
    assert f"| {choices} |" in row


def test_a_spec_with_all_checks_survives_the_plan():
    spec = with_checks(ranges={"distance": [0, 5000]}, max_age_hours=36, severity={"ranges": "quarantine"})
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec
