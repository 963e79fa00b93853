"""The command `reasons`: an endpoint's attributions, in the order of their size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core.report.attributions import Attribution
from retraining.hooks.endpoints import Endpoint
from tests.support.fakes.cloud import FakeCloud

NAME = "projects/p/locations/r/endpoints/late"
ROW = {"carrier": "UA", "distance": 1400.0}
FOUND = Attribution(
    output="score", answer=0.75, baseline=0.25, features={"carrier": -0.125, "distance": 0.625}, error=0.031
)


@pytest.fixture
def cloud() -> FakeCloud:
    """An endpoint of two versions, of which one is explained."""
    cloud = FakeCloud()
    cloud.endpoints.endpoint = Endpoint(name=NAME, deployed={"1": "v1", "2": "v2"}, traffic={"2": 100})
    cloud.endpoints.attributions["2"] = [FOUND]
    return cloud


@pytest.fixture
def ask(cloud, include, tmp_path, capsys):
    """Status, answer and error of the command about a file."""

    def ask(document: Any, *words: str) -> tuple[int, str, str]:
        path = Path(tmp_path, "rows.json")
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        shell = Shell(connect=cloud.connect, find_include=lambda: include)
        status = main(("reasons", "late", str(path), *words), shell)
        return (status, *capsys.readouterr())

    return ask


def test_the_largest_attribution_comes_first_with_the_features_value(ask) -> None:
    status, out, _ = ask({"instances": [ROW]}, "--deployed-model", "2")
    assert status == 0
    assert out.splitlines() == [
        "instance 1: score 0.75, of the baseline 0.25, error 0.031",
        "        +0.625  distance  1400.0",
        '        -0.125  carrier   "UA"',
    ]


def test_a_model_that_is_not_explained_is_refused_by_the_services_words(ask) -> None:
    """One of both versions was registered without the key: the other is asked by its id."""
    status, _, error = ask({"instances": [ROW]})
    assert status != 0
    assert "Deployed model 1 does not support explanation" in error


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param("{", "Expecting property name", id="no JSON"),
        pytest.param([ROW], "no list of instances by name", id="a list"),
        pytest.param({"instances": []}, "no list of instances by name", id="none"),
        pytest.param({"instances": [[1, 2]]}, "no list of instances by name", id="without names"),
        pytest.param({"instances": [ROW] * 101}, "101 instances; expected at most 100", id="many"),
    ],
)
def test_what_is_no_request_is_refused_before_anything_is_asked(ask, cloud, document, words) -> None:
    status, _, error = ask(document)
    assert (status, cloud.endpoints.instances) == (1, [])
    assert words.split(";")[0] in error


def test_a_model_without_an_endpoint_is_named(ask, cloud) -> None:
    cloud.endpoints.by_name.clear()
    status, _, error = ask({"instances": [ROW]})
    assert status != 0
    assert "no endpoint" in error
