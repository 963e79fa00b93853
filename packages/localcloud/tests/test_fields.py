"""Each field and parameter that Google defines for what is served has a fate, which the documentation shows.

With LOCALCLOUD_RENDER=1 the pages are written anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery_storage_v1, logging_v2, monitoring_v3, resourcemanager_v3, secretmanager_v1
from google.cloud.aiplatform_v1 import types

from localcloud.fields import Fate, Fields, Rule, Table, read_fields
from localcloud.gateway import resource_manager
from localcloud.gateway.secretmanager import service as secret_manager
from localcloud.logs import service as logs
from localcloud.logs.metrics import service as metrics
from localcloud.message_fields import MessageFields
from localcloud.vertex.wire import fields as vertex_fields
from localcloud.vertex.wire.methods import load_methods, raw
from packages.localcloud.tests.google_calls import render_calls
from packages.localcloud.tests.google_fields import Discovery, render_page
from packages.localcloud.tests.google_messages import Requests, name_of

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


@dataclass(frozen=True, kw_only=True)
class Messages:
    """A service whose requests are messages of protobuf."""

    title: str
    folder: str
    requests: Requests

    @property
    def fields(self) -> Fields:
        """What becomes of them."""
        return self.requests.fields.fields

    @property
    def page(self) -> Path:
        """Where it is shown."""
        return PACKAGE / "docs" / f"fields-{self.folder.replace('/', '-')}.md"


def _vertex() -> Requests:
    table = vertex_fields.FIELDS
    types = {
        each.full_name: raw(each.request_type()).DESCRIPTOR
        for each in load_methods()
        if each.full_name in table.fields.parameters
    }
    return Requests(fields=table, types=types)


def _requests(table: MessageFields, package: Any) -> Requests:
    """Return the requests of a service's methods, by the names of their types in a package of Google's."""
    names = {method: f"{method.partition('.')[2]}Request" for method in table.fields.parameters if method != "*"}
    kinds = {method: getattr(package, name) for method, name in names.items()}
    return Requests(fields=table, types={method: kind.pb(kind()).DESCRIPTOR for method, kind in kinds.items()})


MESSAGES = [
    Messages(title="Vertex AI", folder="vertex", requests=_vertex()),
    Messages(title="Cloud Logging", folder="logs", requests=_requests(logs.FIELDS, logging_v2.types)),
    Messages(title="Cloud Monitoring", folder="logs/metrics", requests=_requests(metrics.FIELDS, monitoring_v3.types)),
    Messages(
        title="Resource Manager",
        folder="gateway",
        requests=_requests(resource_manager.FIELDS, resourcemanager_v3.types),
    ),
    Messages(
        title="Secret Manager",
        folder="gateway/secretmanager",
        requests=_requests(secret_manager.FIELDS, secretmanager_v1),
    ),
    Messages(
        title="BigQuery Storage Read",
        folder="bigquery/read",
        requests=_requests(
            MessageFields(read_fields(SOURCE / "bigquery/read/fields.json"), "google.cloud.bigquery.storage.v1."),
            bigquery_storage_v1.types,
        ),
    ),
]
each_of_messages = pytest.mark.parametrize("service", MESSAGES, ids=lambda service: service.folder)
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


@each_of_messages
def test_every_field_of_every_message_has_a_fate(service) -> None:
    """Of each method that has a table: its request, and every type that is looked at in it; and no other."""
    assert set(service.fields.parameters) - {"*"} == set(service.requests.types), "methods that Google does not have"
    assert service.requests.missing() == [], "fields that have no fate. Expected a line of each in fields.json"
    assert service.requests.strange() == [], "fields, or tables, that Google's requests do not have"


@each_of_messages
def test_what_only_the_service_sets_is_ignored(service) -> None:
    """By Google's documentation of each type; some of it the service takes all the same."""
    for full_name, kind in service.requests.reached().items():
        table, documented = service.requests.fields.table_of(full_name), output_only(full_name)
        taken = {name_of(each) for each in kind.fields if each.name in documented} - {
            path for path, rule in table.rules.items() if rule.fate is Fate.IGNORED
        }
        assert taken == TAKEN.get(full_name.rpartition(".")[2], set()), full_name


TAKEN = {
    "Endpoint": {"name"},
    "Artifact": {"name"},
    "Tensorboard": {"name"},
    "TensorboardExperiment": {"name"},
    "TensorboardRun": {"name"},
    "TensorboardTimeSeries": {"name"},
    "Trial": {"state", "parameters", "final_measurement", "measurements", "client_id", "infeasible_reason"},
    "Parameter": {"parameter_id", "value"},
    "Measurement": {"elapsed_duration", "step_count", "metrics"},
    "Metric": {"metric_id", "value"},
    "ModelEvaluationSlice": {"slice", "metrics_schema_uri", "metrics", "model_explanation"},
    "Slice": {"dimension", "value", "slice_spec"},
    "ModelExplanation": {"mean_attributions"},
    "Attribution": {
        "baseline_output_value",
        "instance_output_value",
        "feature_attributions",
        "output_index",
        "output_display_name",
        "approximation_error",
        "output_name",
    },
}
"""What is documented as the service's own, and which requests are there to give."""


def output_only(full_name: str) -> set[str]:
    """Return the fields of a type of Vertex AI that only the service sets, by its docstring."""
    kind: Any = types
    for part in full_name.removeprefix("google.cloud.aiplatform.v1.").split("."):
        kind = getattr(kind, part, None)
    form = re.compile(r"^ {8,}(\w+) \([^\n]*?\):\n\s+(?:Optional\. |Immutable\. )?Output only\.", re.MULTILINE)
    return set(form.findall(getattr(kind, "__doc__", None) or ""))


@pytest.mark.parametrize("service", [*SERVICES, *MESSAGES], ids=lambda service: service.folder)
def test_the_page_shows_them(service) -> None:
    """As the code has them."""
    source = f"packages/localcloud/src/localcloud/{service.folder}/fields.json"
    rendered = render_page(service.title, source, service.fields, of_messages=isinstance(service, Messages))
    if os.environ.get("LOCALCLOUD_RENDER"):
        service.page.write_text(rendered, encoding="utf-8")
    assert service.page.read_text(encoding="utf-8") == rendered, "run this test with LOCALCLOUD_RENDER=1"


def known_methods(service: Described | Messages) -> set[str]:
    """Return all that Google has; of clients that do not say, those that are answered."""
    if isinstance(service, Described):
        return set(Discovery(service.document).methods)
    return {each.full_name for each in load_methods()} if service.folder == "vertex" else set(service.requests.types)


def test_the_page_of_calls_shows_them() -> None:
    """Every method that has a table, beside the number of those that Google has."""
    services: list[tuple[str, str, set[str], set[str]]] = []
    described: list[Described | Messages] = [*SERVICES, *MESSAGES]
    for service in described:
        answered, known = set(service.fields.parameters) - {"*"}, known_methods(service)
        assert answered <= known
        services.append((service.title, service.page.name, answered, known))
    page, rendered = PACKAGE / "docs" / "calls.md", render_calls(services)
    if os.environ.get("LOCALCLOUD_RENDER"):
        page.write_text(rendered, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == rendered, "run this test with LOCALCLOUD_RENDER=1"


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


def test_a_message_is_read_by_its_tables() -> None:
    """The table of what a type stands in comes before its own; what is ignored goes, what says nothing passes."""
    from google.cloud.aiplatform_v1.types import CreateCustomJobRequest

    fields = Fields(
        resources={
            "CustomJob": table({"display_name": "kept", "name": "ignored: why", "job_spec": "held", "labels": "kept"}),
            "CustomJobSpec": table({"network": "kept", "scheduling": "refused: why", "worker_pool_specs": "held"}),
            "WorkerPoolSpec": table({"container_spec": "refused: why", "replica_count": "refused unless 3: why"}),
        },
        parameters={"Create": table({"custom_job": "held", "custom_job.job_spec.network": "refused: here"})},
        headers={},
    )
    messages = MessageFields(fields, "google.cloud.aiplatform.v1.")

    def paths(**job: Any) -> list[str]:
        request = CreateCustomJobRequest.pb(CreateCustomJobRequest(custom_job=job))
        found = [problem.path for problem in messages.request_problems("Create", request)]
        assert not request.custom_job.name
        return found

    assert paths(name="x", display_name="y", labels={"a": "b"}, job_spec={"scheduling": {}}) == []
    assert paths(job_spec={"network": "n"}) == ["custom_job.job_spec.network"]
    assert paths(job_spec={"scheduling": {"disable_retries": True}}) == ["custom_job.job_spec.scheduling"]
    assert paths(job_spec={"worker_pool_specs": [{"replica_count": 3}]}) == []
    pools = [{"replica_count": 3}, {"container_spec": {}, "replica_count": 4}]
    at = "custom_job.job_spec.worker_pool_specs[1]"
    assert paths(job_spec={"worker_pool_specs": pools}) == [f"{at}.replica_count", f"{at}.container_spec"]
    assert paths(encryption_spec={}) == ["custom_job.encryption_spec"]
    later = CreateCustomJobRequest.pb(CreateCustomJobRequest(custom_job={"display_name": "y"}))
    later.custom_job.MergeFromString(b"\xf8\x7f\x01")
    assert [each.path for each in messages.request_problems("Create", later)] == ["custom_job#2047"]


def table(rules: dict[str, str]) -> Table:
    return Table({path: Rule.read(text) for path, text in rules.items()})
