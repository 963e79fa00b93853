"""`infra/examples/`: each applies, and what it promises holds: perimeters let everything through that is called."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import pytest

from retraining.core.permissions import APIS
from tests.support.google_provider import ARGUMENTS
from tests.support.scenes.roles import table_rows
from tests.support.terraform import Folder, misfits

INFRA = Path(__file__).resolve().parents[2] / "infra"
EXAMPLES = sorted(path.name for path in (INFRA / "examples").iterdir())


@pytest.fixture(params=EXAMPLES)
def example(request) -> Folder:
    return Folder(INFRA / "examples" / request.param)


def one(name: str) -> Folder:
    return Folder(INFRA / "examples" / name)


def test_the_page_has_a_row_of_each() -> None:
    rows = table_rows("infra/README.md", "## Examples")
    assert sorted(re.findall(r"\]\(examples/(\w+)/", "".join(row[0] for row in rows))) == EXAMPLES


def test_the_provider_has_every_argument(example) -> None:
    for kind, name, body in example.resources():
        assert not misfits(body, ARGUMENTS[kind], f"{kind}.{name}")


def test_what_is_referred_to_is_declared(example) -> None:
    assert not example.dangling()
    assert set(re.findall(r"\bvar\.(\w+)", example.text)) >= set(example.named("variable"))


def test_the_module_takes_what_it_is_given(example) -> None:
    module = Folder(INFRA)
    for name in example.named("module"):
        given = example.arguments_of(name)
        assert given <= set(module.named("variable"))
        assert {key for key, body in module.named("variable").items() if "default" not in body} <= given
        used = set(re.findall(rf"module\.{name}\.(\w+)", example.text))
        assert used <= set(module.named("output"))


def test_nothing_is_in_a_project_of_chance(example) -> None:
    for kind, name, body in example.resources():
        if "project" in ARGUMENTS[kind]:
            assert "project" in body, f"{kind}.{name}"


def test_the_state_is_kept_in_a_bucket(example) -> None:
    """With its older versions; only the bucket of the state has its own state at hand."""
    if example.path.name != "state":
        assert "gcs" in str(example.blocks["terraform"])
        return
    ((_, _, bucket),) = example.resources()
    assert bucket["versioning"][0]["enabled"] is True
    assert bucket["public_access_prevention"] == "enforced"


def test_a_perimeter_holds_and_lets_through_all_that_is_called() -> None:
    """Composer reaches no service in a perimeter that it does not name."""
    perimeter = one("perimeter")
    software = perimeter.named("locals")["software"]
    assert sorted(software) == sorted(APIS)
    ((_, _, body),) = perimeter.resources()
    status = body["dynamic"][0]["status"]["content"][0]
    for part in (status, body["spec"][0]):
        assert part["vpc_accessible_services"][0]["allowed_services"] == ["RESTRICTED-SERVICES"]
        assert part["access_levels"] == "${var.access_levels}"
    assert perimeter.named("variable")["enforced"]["default"] is False


def test_a_private_network_has_one_way_out() -> None:
    """To restricted.googleapis.com; every name of a service and of an image leads there."""
    private = one("private")
    found = {(kind, name): body for kind, name, body in private.resources()}
    assert found["google_compute_network", "this"]["delete_default_routes_on_create"] is True
    routes = [body for (kind, _), body in found.items() if kind == "google_compute_route"]
    ways = [ipaddress.ip_network(route["dest_range"]) for route in routes]
    assert ways == [ipaddress.ip_network("199.36.153.4/30")]
    names = private.named("locals")
    assert all(ipaddress.ip_address(address) in ways[0] for address in names["restricted"])
    assert set(names["zones"].values()) >= {"googleapis.com.", "pkg.dev."}
    ranges = private.named("variable")["ranges"]["default"]
    nets = [ipaddress.ip_network(text) for name, text in ranges.items() if name in {"composer", "jobs", "endpoints"}]
    assert len(nets) == 3
    assert not any(a.overlaps(b) for i, a in enumerate(nets) for b in nets[i + 1 :])


def test_a_private_environment_is_given_what_the_software_needs() -> None:
    private = one("private")
    (environment,) = [body for kind, _, body in private.resources() if kind == "google_composer_environment"]
    (config,) = environment["config"]
    assert config["enable_private_environment"] is True
    given = str(config["software_config"][0]["env_variables"])
    assert "module.retraining.environment_variables" in given
    assert "RETRAINING_TRAINER_IMAGE" in given


def test_alerts_are_of_series_that_are_there() -> None:
    """The metrics of Composer, and of endpoints that the ramp reads."""
    text = one("alerts").text
    metrics = set(re.findall(r'metric\.type=\\"([^"\\]+)', text))
    assert metrics == {
        "composer.googleapis.com/environment/healthy",
        "composer.googleapis.com/workflow/run_count",
        "aiplatform.googleapis.com/prediction/online/response_count",
    }
    read = (INFRA.parent / "plugins" / "retraining" / "hooks" / "serving_metrics.py").read_text(encoding="utf-8")
    assert "response_count" in read
    assert (INFRA.parent / "dags" / "maintain.py").is_file()


def test_data_of_another_project_is_read_there() -> None:
    projects = one("projects")
    assert "${var.data_project}.${dataset}" in projects.text
    module = Folder(INFRA)
    (grant,) = [body for kind, name, body in module.resources() if name == "sources"]
    where = re.search(r'regex\("([^"]+)", each\.value\[1\]\)', grant["project"].replace("\\\\", "\\"))
    dataset = re.search(r'regex\("([^"]+)"', grant["dataset_id"])
    assert where
    assert dataset
    for name, wanted in (("my-data.sales", ("my-data", "sales")), ("x.com:p.sales", ("x.com:p", "sales"))):
        assert re.match(where[1], name)[1] == wanted[0]
        assert re.search(dataset[1], name)[0] == wanted[1]
    assert re.match(where[1], "sales") is None
