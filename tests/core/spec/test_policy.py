"""The section `monitoring.policy` of a model's file: careful defaults; what cannot be is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from retraining.core.catalog.model_check import contradictions_of
from retraining.core.errors import SpecError
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from tests.support.small_model import SPEC_YAML


def load(path: Path, policy: str) -> ModelSpec:
    """A file `late.yaml` with a policy."""
    file = path / "late.yaml"
    file.write_text(f"{SPEC_YAML}monitoring: {{policy: {policy}}}\n")
    return files.load_spec(file)


def test_by_default_nothing_is_ordered_by_one_window_and_nothing_goes_back_by_itself(tmp_path: Path) -> None:
    """A false alarm costs a night; a way back that nobody asked for costs more."""
    policy = load(tmp_path, "{}").monitoring.policy
    assert (policy.windows.exceeded, policy.windows.of, policy.max_retrainings_per_week) == (2, 3, 3)
    assert "rollback" not in dict(policy.actions).values()


def test_one_action_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    """Unlike a mapping that replaces another."""
    actions = load(tmp_path, "{actions: {errors: rollback}}").monitoring.policy.actions
    assert (actions.errors, actions.skew, actions.drift) == ("rollback", "retrain", "warn")


def test_quiet_hours_are_kept_as_written(tmp_path: Path) -> None:
    """They may pass midnight."""
    quiet = load(tmp_path, '{quiet_hours: {start: "22:00", end: "05:30"}}').monitoring.policy.quiet_hours
    assert quiet is not None
    assert (quiet.start, quiet.end) == ("22:00", "05:30")


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("{windows: {exceeded: 4, of: 3}}", "4 of 3 windows can never be"),
        ("{windows: {exceeded: 0}}", "windows.exceeded is 0"),
        ("{actions: {drfit: warn}}", r"unknown key 'drfit' in monitoring.policy.actions.*Did you mean 'drift'\?"),
        ("{actions: {skew: retrian}}", r"actions.skew is 'retrian'.*Did you mean 'retrain'\?"),
        ("{actions: {skew: tune}}", "actions.skew is tune, and the file has no section tuning"),
        ('{quiet_hours: {start: "22:00", end: "22:00"}}', "no hours or all"),
        ('{quiet_hours: {start: "24:00", end: "05:00"}}', "quiet_hours.start is '24:00'"),
        ("{quiet_hours: {start: 22:00, end: 05:00}}", "put it in quotes"),
        ("{max_retrainings_per_week: -1}", "max_retrainings_per_week is -1"),
        ("{rollback_within_hours: 0}", "rollback_within_hours is 0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(policy: str, words: str, tmp_path: Path) -> None:
    """With what is near."""
    with pytest.raises(SpecError, match=words):
        load(tmp_path, policy)


@pytest.mark.parametrize(
    ("monitoring", "words"),
    [
        ("{max_age_days: 30, policy: {max_retrainings_per_week: 0}}", "none will ever be ordered"),
        ("{max_age_days: 30, policy: {max_retrainings_per_week: 0, actions: {age: warn}}}", ""),
        ("{policy: {max_retrainings_per_week: 0}}", ""),
        ("{cooldown_hours: 48, policy: {actions: {errors: rollback}}}", "longer than policy.rollback_within_hours 24"),
        ("{cooldown_hours: 48, policy: {rollback_within_hours: 48, actions: {errors: rollback}}}", ""),
        ("{cooldown_hours: 48}", ""),
    ],
)
def test_limits_that_contradict_each_other_are_named(monitoring: str, words: str, tmp_path: Path) -> None:
    """As a warning of check-models: such a file was taken before."""
    file = tmp_path / "late.yaml"
    file.write_text(f"{SPEC_YAML}monitoring: {monitoring}\n")
    found = contradictions_of(files.load_spec(file))
    assert [words in warning for warning in found] == ([True] if words else [])
