"""Messages name the command that a person has: make's in a checkout, the program's where the package is installed."""

from __future__ import annotations

import pytest

from retraining.core import program
from retraining.core.program import command_line

CASES = [
    (("check-models",), {}, "make check-models", "retraining check-models"),
    (
        ("check-models",),
        {"RETRAINING_REGION": "r"},
        "make check-models RETRAINING_REGION=r",
        "RETRAINING_REGION=r retraining check-models",
    ),
    (
        ("preview", "late"),
        {"AS_OF": "2026-01-22T03:00:00Z"},
        "make preview MODEL=late AS_OF=2026-01-22T03:00:00Z",
        "retraining preview late --as-of 2026-01-22T03:00:00Z",
    ),
    (("run", "late"), {}, "make retraining DO='run late'", "retraining run late"),
]


@pytest.mark.parametrize(("words", "values", "checkout", "installed"), CASES)
def test_it_is_the_one_that_is_here(monkeypatch, words, values, checkout: str, installed: str) -> None:
    """Options become make's variables or the program's options, settings stand where each takes them."""
    monkeypatch.setattr(program, "is_installed", lambda: False)
    assert command_line(*words, **values) == checkout
    monkeypatch.setattr(program, "is_installed", lambda: True)
    assert command_line(*words, **values) == installed


def test_this_checkout_is_none_that_is_installed() -> None:
    """Its environments have the packages that it needs, not itself."""
    assert not program.is_installed()


@pytest.mark.parametrize("target", sorted(program.TARGETS))
def test_the_makefile_has_the_targets(target: str) -> None:
    """By these names, with these variables."""
    from tests.support.product import REPOSITORY

    assert f"\n{target}:" in (REPOSITORY / "Makefile").read_text()
