"""Each field and parameter that Google defines for what is served has a fate, which the documentation shows.

With LOCALCLOUD_RENDER=1 the pages are written anew.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from localcloud.fields import Fate, Fields, Rule, Table, read_fields
from packages.localcloud.tests.google_fields import Discovery, render_page

PACKAGE = Path(__file__).parents[1]
SOURCE = PACKAGE / "src" / "localcloud"


@dataclass(frozen=True, kw_only=True)
class Described:
    """A service whose fields are listed."""

    title: str
    document: str
    folder: str

    @property
    def fields(self) -> Fields:
        """What becomes of them."""
        return read_fields(SOURCE / self.folder / "fields.json")

    @property
    def page(self) -> Path:
        """Where it is shown."""
        return PACKAGE / "docs" / f"fields-{self.folder}.md"


SERVICES = [
    Described(title="Cloud Storage", document="storage.v1", folder="storage"),
    Described(title="BigQuery", document="bigquery.v2", folder="bigquery"),
]
each_service = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.folder)


@each_service
def test_every_field_has_a_fate(service) -> None:
    """Of each resource, those that Google defines: all of them, and no other."""
    discovery = Discovery(service.document)
    for resource, table in service.fields.resources.items():
        google = {path for path, _ in discovery.fields(resource, table)}
        ours = {path for path in table.rules if not path.endswith(".**")}
        assert google - ours == set(), f"{resource}: fields that have no fate. Expected a line of each in fields.json"
        assert ours - google == set(), f"{resource}: fields that Google does not have"


@each_service
def test_every_parameter_has_a_fate(service) -> None:
    """Of each method, those that Google defines; no method knows another one's."""
    discovery, fields = Discovery(service.document), service.fields
    methods = set(fields.parameters) - {"*"}
    assert methods <= set(discovery.methods)
    for method in methods:
        missing = {
            name for name in discovery.parameters(method) | discovery.standard if not fields.parameter(method, name)
        }
        assert missing == set(), f"{method}: parameters that have no fate. Expected a line of each in fields.json"
        own = set(fields.parameters[method].rules)
        allowed = discovery.parameters(method) | {"uploadType", "upload_id", "upload_protocol"}
        assert own - allowed == set(), f"{method}: parameters that Google does not have"


@each_service
def test_the_resources_of_every_method_are_there(service) -> None:
    """A method's body is one of the resources, so that none is taken as it comes."""
    discovery, fields = Discovery(service.document), service.fields
    bodies = {discovery.methods[method].get("request", {}).get("$ref") for method in set(fields.parameters) - {"*"}}
    assert bodies - {None} <= set(fields.resources)


@each_service
def test_the_page_shows_them(service) -> None:
    """As the code has them."""
    source = f"packages/localcloud/src/localcloud/{service.folder}/fields.json"
    rendered = render_page(service.title, source, service.fields)
    if os.environ.get("LOCALCLOUD_RENDER"):
        service.page.write_text(rendered, encoding="utf-8")
    assert service.page.read_text(encoding="utf-8") == rendered, "run this test with LOCALCLOUD_RENDER=1"


def test_a_fate_needs_its_reason() -> None:
    """Who ignores or refuses a field says why."""
    assert Rule.read("kept") == Rule(fate=Fate.KEPT)
    for text in ("ignored", "refused", "dropped: it", "refused:"):
        with pytest.raises(ValueError, match=r"reason|not a valid Fate"):
            Rule.read(text)


def test_a_document_is_read_by_its_table() -> None:
    """Through lists, maps and what another table reads."""
    rules = {
        "a": "kept",
        "a[].x": "kept",
        "a[].y": "ignored: why",
        "m": "kept",
        "m.*": "held",
        "o": "held",
        "o.**": "held",
        "off": "refused: why",
    }
    table = Table({path: Rule.read(text) for path, text in rules.items()})
    document = {"a": [{"x": 1, "y": 2}], "m": {"q": "r"}, "o": {"anything": 1}, "off": False}
    assert list(table.problems({"off": {"names": []}})) == []
    assert list(table.problems(document)) == []
    assert table.kept(document) == {"a": [{"x": 1}], "m": {"q": "r"}, "o": {"anything": 1}, "off": False}
    for wrong, path, close in (
        ({"a": [{"z": 1}]}, "a[].z", ""),
        ({"A": 1}, "A", "a"),
        ({"m": {"q": {"deep": 1}}}, "m.*.deep", ""),
        ({"off": {"x": 1}}, "off", ""),
    ):
        (problem,) = table.problems(wrong)
        assert (problem.path, problem.close) == (path, close)
