"""The section `reviews`: what a person states of a test."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.core.spec.model import ModelSpec
from tests.support.small_model import make_plan, make_spec, spec_values

REVIEW = {"test": "privacy", "by": "Ada Lovelace", "day": "2013-11-01", "where": "https://example.com/reviews/1?x=2#a"}


@pytest.mark.parametrize("where", ["docs/reviews/privacy.md", "https://wiki.example.com/a%20b", "notes_1.md#data"])
def test_it_says_who_looked_when_and_where(where: str) -> None:
    """An address, or a path of the repository."""
    (review,) = make_spec(reviews=[{**REVIEW, "where": where}]).reviews
    assert (review.by, review.day.isoformat(), review.where) == ("Ada Lovelace", "2013-11-01", where)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": "privcy"}, "privacy"),
        ({"by": ""}, "at least 1"),
        ({"by": "a\nb"}, "one line"),
        ({"by": "a\u202eb"}, "one line"),
        ({"by": "a\x1b[2J"}, "one line"),
        ({"by": " a"}, "one line"),
        ({"by": "a" * 101}, "at most 100"),
        ({"day": "2013-02-30"}, "day"),
        ({"day": "yesterday"}, "day"),
        ({"where": "javascript:alert(1)"}, "expected https"),
        ({"where": "http://example.com"}, "expected https"),
        ({"where": "https://user@example.com/"}, "expected https"),
        ({"where": "//example.com/x"}, "expected https"),
        ({"where": "/etc/passwd"}, "expected https"),
        ({"where": "docs/../../x"}, "expected https"),
        ({"where": "a b"}, "expected https"),
        ({"where": "https://example.com/" + "a" * 500}, "at most 500"),
        ({"note": "x"}, "note"),
    ],
)
def test_what_is_no_statement_is_refused(changes: dict[str, Any], message: str) -> None:
    """With what was expected."""
    with pytest.raises(ValueError, match=message):
        make_spec(reviews=[{**REVIEW, **changes}])


def test_a_test_is_stated_once() -> None:
    """Two statements of one test: which of them counts?"""
    with pytest.raises(ValueError, match="names the test 'privacy' twice: leave the newest"):
        make_spec(reviews=[REVIEW, {**REVIEW, "by": "Grace"}])


def test_a_statement_makes_no_other_run() -> None:
    """It is of the file alone: what a run does and its key stay as they were."""
    plain, stated = make_plan(), make_plan(ModelSpec.model_validate(spec_values(reviews=[REVIEW])))
    assert stated.run_key == plain.run_key
    assert stated.to_bytes() == plain.to_bytes()
