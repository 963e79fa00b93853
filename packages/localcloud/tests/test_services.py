"""What `service.json` of each folder says: read as it stands, shown in the documentation, refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localcloud.errors import LocalCloudError
from localcloud.http.routes import Routes
from localcloud.services import read_service, services
from localcloud.state import State

PAGE = (Path(__file__).parents[1] / "docs" / "localcloud.md").read_text(encoding="utf-8")
LEAST = {"name": "notes", "title": "Notes", "made_of": "ours", "hosts": {}, "methods": {}}


@pytest.mark.parametrize("service", services(), ids=lambda service: service.name)
def test_the_page_has_its_row(service) -> None:
    """With its title, what it is made of, and its hosts."""
    hosts = ", ".join(f"`{host.name}`" for host in service.hosts)
    row = f"| {service.title} | {service.made_of} | {hosts} |"
    assert row in PAGE, f"expected in the table of servers:\n{row}"


@pytest.mark.parametrize("kind", ["name", "methods"])
def test_no_two_say_the_same(kind) -> None:
    """Of a name or method that stood twice, the second would hold, in silence."""
    said = [each for service in services() for each in ([service.name] if kind == "name" else service.methods)]
    assert len(said) == len(set(said))


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        (json.dumps({**LEAST, "host": {}}), "'host'"),
        (json.dumps({key: value for key, value in LEAST.items() if key != "methods"}), "'methods'"),
        (json.dumps({**LEAST, "hosts": {"notes.googleapis.com": {"soap": "gateway"}}}), "'soap'"),
    ],
    ids=["no JSON", "no object", "unknown", "missing", "unknown of a host"],
)
def test_what_is_no_service_is_refused(tmp_path, document, found) -> None:
    """By its file's name, with what is wrong and what each key is."""
    path = tmp_path / "service.json"
    path.write_text(document)
    with pytest.raises(LocalCloudError, match=r"localcloud/services\.py") as refused:
        read_service(path)
    assert refused.value.where == str(path)
    assert found in refused.value.found


def test_a_service_that_nobody_answers_for_is_named(tmp_path) -> None:
    """When the gateway starts, before a client meets it."""
    with pytest.raises(LocalCloudError, match=r"service \w+: .*gateway/services\.py"):
        Routes(State(tmp_path), {})
