"""The key `deployment.approval`: a mode, or the yes and no of earlier files."""

from __future__ import annotations

import pytest

from retraining.core.errors import SpecError
from retraining.core.spec.files import load_spec
from tests.support.small_model import SPEC_YAML


def load(path, approval):
    """The small model's file with an approval."""
    file = path / "late.yaml"
    file.write_text(f"{SPEC_YAML}deployment: {{{approval}}}\n")
    return load_spec(file)


@pytest.mark.parametrize(
    ("approval", "asks"),
    [
        ("approval: first", "first"),
        ("approval: on_warning", "on_warning"),
        ("approval: true", "always"),
        ("approval: false", "never"),
        ("", "never"),
    ],
)
def test_approval_takes_the_yes_and_no_of_earlier_files(tmp_path, approval, asks):
    assert load(tmp_path, approval).deployment.asks == asks


def test_a_misspelt_mode_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(SpecError, match=r"deployment\.approval.*'first', 'always', 'never' or 'on_warning'"):
        load(tmp_path, "approval: frist")
