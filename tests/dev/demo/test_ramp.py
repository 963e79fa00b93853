"""The ramp's demonstration: its spec, its lines, and that no error of its customers is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from demo.bundle import change_spec, copy_bundle
from demo.customers import beside
from demo.dag_run import MODEL
from demo.ramp import CANARY, with_canary
from retraining.core.spec.files import load_spec
from retraining_laptop.summary import ramp_lines

STEP = {
    "percent": 10,
    "start": "2013-11-20T03:10:20Z",
    "gates": [
        {"name": "requests", "passed": True, "words": "120 requests in 1 min"},
        {"name": "errors", "passed": False, "words": "12 of 120 (10.00 %)"},
        {"name": "answers", "passed": None, "words": "too few are logged"},
    ],
}


def test_its_model_goes_up_in_steps(tmp_path: Path) -> None:
    """In a copy: the repository's own file stays as it is."""
    dags_path = copy_bundle(tmp_path / "bundle")
    change_spec(dags_path, MODEL, with_canary)
    canary = load_spec(dags_path / "include" / "models" / f"{MODEL}.yaml").deployment.canary
    assert canary is not None
    assert list(canary.percent) == CANARY["percent"]
    assert copy_bundle(tmp_path / "bundle") == dags_path
    assert load_spec(dags_path / "include" / "models" / f"{MODEL}.yaml").deployment.canary is None


def test_each_share_is_told_with_its_gates() -> None:
    """Those of a step that is not over come later, below it."""
    lines = ramp_lines([STEP])
    assert lines[0] == "ramp       10 % of the traffic from 03:10:20 UTC"
    assert [line.split()[0] for line in lines[1:]] == ["passed", "failed", "not"]
    assert ramp_lines([{**STEP, "gates": []}]) == lines[:1]


def test_an_error_beside_the_work_ends_it() -> None:
    """A customer who gets an error is not passed over."""
    tried = threading.Event()

    def act() -> None:
        tried.set()
        raise ConnectionError("no answer")

    with pytest.raises(ConnectionError), beside(act, 0.01):
        assert tried.wait(10)
