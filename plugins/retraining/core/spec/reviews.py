"""The section `reviews` of a model's YAML: tests of the ML Test Score that a person made by hand, and where it says so.

The names of the tests stand here too, because a file may name each of them.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, StringConstraints

from retraining.core.spec.section import Section

TestName = Literal[
    "feature_schema",
    "feature_benefit",
    "feature_cost",
    "feature_requirements",
    "privacy",
    "new_features",
    "feature_code",
    "spec_review",
    "online_metrics",
    "hyperparameters",
    "staleness_impact",
    "simpler_model",
    "slices",
    "inclusion",
    "reproducibility",
    "spec_tests",
    "pipeline_test",
    "quality_gate",
    "debugging",
    "canary",
    "rollback",
    "dependencies",
    "data_invariants",
    "training_serving_skew",
    "staleness",
    "numerical_stability",
    "computing_performance",
    "prediction_quality",
]
TEST_NAMES: tuple[TestName, ...] = get_args(TestName)
"""Seven of the data, seven of the model, seven of the infrastructure, seven of monitoring, in the paper's order."""
_LINK = re.compile(r"https://[^\s/?#@:]+\.[^\s@]*|(?!.*(?:^|/)\.\.(?:/|$))[A-Za-z0-9_][A-Za-z0-9_./#-]*")


def _one_line(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError(f"{text!r} is not plain text of one line: write the name and nothing else")
    return text


def _link(text: str) -> str:
    if not _LINK.fullmatch(text):
        raise ValueError(
            f"{text!r} is no address of what was written down; expected https://… or a path in the repository, such as "
            "docs/reviews/privacy.md"
        )
    return text


class Review(Section):
    """A test that a person made by hand: worth half a point for a year."""

    test: TestName
    """[Name of the test](ml-test-score.md#the-tests)."""
    by: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_one_line)]
    """Who made it."""
    day: date
    """When, as `2026-11-20`. One of days to come does not count, nor one that is more than 365 days ago."""
    where: Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_link)]
    """Where the result is written down: `https://…`, or a path in the repository."""
