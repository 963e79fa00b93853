"""The commands that a run's page gives for going back, and those of the run-book, do what they promise."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from packages.localcloud.tests.vertex.conftest import REPOSITORY_PATH, deploy, poll
from retraining.core.report.page import render
from tests.support.contracts import EXAMPLES

RUN_BOOK = REPOSITORY_PATH / "docs" / "operations.md"
NEW_ID = "4"  # of the deployed model that is taken away again


@pytest.fixture
def promoted(api, upload, empty_endpoint, request) -> dict[str, str]:
    """A champion on an endpoint, and the version that it replaced."""
    model_id = request.node.callspec.id
    model = upload(model_id).model
    upload(model_id, parent_model=model)
    deploy(api, empty_endpoint, f"{model}@2", {"0": 100}, id=NEW_ID)
    api.models.merge_version_aliases(name=f"{model}@1", version_aliases=["previous"])
    api.models.merge_version_aliases(name=f"{model}@2", version_aliases=["champion"])
    return {"model": model, "endpoint": empty_endpoint}


def page_commands(promoted: dict[str, str]) -> list[tuple[str, Any]]:
    """Return path and body of each request that the page of the promoted run gives."""
    documents = {
        kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text())
        for kind, what in (("plan", "scheduled"), ("deployment", "champion"))
    }
    documents["deployment"].update(
        endpoint_name=promoted["endpoint"],
        deployed_model_id=NEW_ID,
        version_name=f"{promoted['model']}@2",
        previous_version_name=f"{promoted['model']}@1",
    )
    return commands(html.unescape(render(documents)))


def run_book_commands(promoted: dict[str, str]) -> list[tuple[str, Any]]:
    """Return those of the run-book, with this test's names in the place of its example's."""
    text = RUN_BOOK.read_text(encoding="utf-8")
    text = text.partition("\n## Go back to the previous version\n")[2].partition("\n## ")[0]
    parent, _, model_id = promoted["model"].rpartition("/models/")
    text = text.replace("'$PARENT'", parent).replace("models/flight_delays@3", f"models/{model_id}@1")
    text = text.replace("endpoints/flight-delays", f"endpoints/{Path(promoted['endpoint']).name}")
    text = text.replace("<the other one>", NEW_ID)
    return [(f"{parent}/{path}", body) for path, body in commands(text)]


def commands(text: str) -> list[tuple[str, Any]]:
    """Return path and body of each line `post <path> '<JSON>'`."""
    words = [shlex.split(line.split("</code>")[0]) for line in re.findall(r"^post \S+ '.*$", text, re.MULTILINE)]
    return [(path, json.loads(body)) for _, path, body in words]


@pytest.mark.parametrize("source", [page_commands, run_book_commands])
def test_the_previous_version_serves_again(api, rest, promoted, source):
    """Deploy it with all traffic, move the alias, undeploy the other: each request is taken as it is written."""
    found = source(promoted)
    assert [path.rpartition(":")[2] for path, _ in found] == ["deployModel", "mergeVersionAliases", "undeployModel"]
    for path, body in found:
        answer = rest("POST", f"/v1/{path}", body)
        assert answer.status_code == 200, answer.text
        if operation := re.search(r".*/operations/.*", answer.json()["name"]):
            name = operation.group()
            done = poll(lambda name=name: rest("GET", f"/v1/{name}").json(), lambda seen: seen.get("done"))
            assert "error" not in done, done
    endpoint = api.endpoints.get_endpoint(name=promoted["endpoint"])
    assert [deployed.model_version_id for deployed in endpoint.deployed_models] == ["1"]
    assert list(endpoint.traffic_split.values()) == [100]
    assert api.models.get_model(name=f"{promoted['model']}@champion").version_id == "1"
