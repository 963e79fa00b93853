"""`infra/`: what Terraform makes is what docs/composer.md asks for, by arguments that Google's provider has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hcl2
import pytest

from retraining.core.permissions import APIS
from tests.support.scenes.roles import documented_roles, table_rows

ROOT = Path(__file__).resolve().parents[2]
WHO = {"the connection's account": "connection", "the jobs' account": "jobs", "Vertex AI's service agent": "agent"}
WHERE = {
    "project": "project_roles",
    "source datasets": "source_roles",
    "RETRAINING_DATASET": "dataset_roles",
    "RETRAINING_BUCKET": "bucket_roles",
    "RETRAINING_RESULTS_BUCKET": "results_roles",
    "jobs/ in RETRAINING_RESULTS_BUCKET": "jobs_roles",
    "RETRAINING_SERVICE_ACCOUNT": "account_roles",
    "the image's repository": "repository_roles",
}
# The arguments of hashicorp/google 6.50.0 that are used here, and those that it requires; read in its schema.
IAM = {"role", "member"}
ARGUMENTS: dict[str, tuple[set[str], set[str]]] = {
    "google_project_service": ({"service"}, {"project", "disable_on_destroy"}),
    "google_storage_bucket": (
        {"name", "location"},
        {
            "project",
            "uniform_bucket_level_access",
            "public_access_prevention",
            "force_destroy",
            "lifecycle_rule",
            "soft_delete_policy",
            "labels",
            "dynamic",
        },
    ),
    "google_bigquery_dataset": (
        {"dataset_id"},
        {"project", "location", "delete_contents_on_destroy", "labels", "dynamic"},
    ),
    "google_artifact_registry_repository": (
        {"repository_id", "format"},
        {"project", "location", "docker_config", "kms_key_name", "labels"},
    ),
    "google_network_connectivity_service_connection_policy": (
        {"name", "location", "service_class", "network"},
        {"project", "psc_config"},
    ),
    "google_service_account": ({"account_id"}, {"project", "display_name"}),
    "google_project_iam_member": ({"project", *IAM}, set()),
    "google_bigquery_dataset_iam_member": ({"dataset_id", *IAM}, {"project"}),
    "google_storage_bucket_iam_member": ({"bucket", *IAM}, {"condition"}),
    "google_secret_manager_secret_iam_member": ({"secret_id", *IAM}, {"project"}),
    "google_service_account_iam_member": ({"service_account_id", *IAM}, set()),
    "google_kms_crypto_key_iam_member": ({"crypto_key_id", *IAM}, set()),
    "google_artifact_registry_repository_iam_member": ({"repository", *IAM}, {"project", "location"}),
}
DYNAMIC = {
    "google_storage_bucket": ("encryption", "default_kms_key_name"),
    "google_bigquery_dataset": ("default_encryption_configuration", "kms_key_name"),
}
"""Blocks that are there only with a key, and their one argument."""
META = {"for_each", "count", "depends_on", "__is_block__", "__comments__"}


def plain(value: Any) -> Any:
    """Take the parser's quotes off names and texts."""
    if isinstance(value, dict):
        return {plain(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.removeprefix('"').removesuffix('"') if isinstance(value, str) else value


@pytest.fixture(scope="module")
def infra() -> dict[str, list[dict[str, Any]]]:
    """All blocks of the folder, by their kind."""
    blocks: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((ROOT / "infra").glob("*.tf")):
        with path.open(encoding="utf-8") as file:
            for kind, found in plain(hcl2.load(file)).items():
                if isinstance(found, list):
                    blocks.setdefault(kind, []).extend(found)
    return blocks


def names_in(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for block in blocks for name, value in block.items() if name != "__is_block__"}


def resources(infra: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(kind, name, body) for one in infra["resource"] for kind, by in one.items() for name, body in by.items()]


def test_the_roles_are_those_of_the_table(infra) -> None:
    """None is missing, and none is too much."""
    tables = names_in(infra["locals"])
    made = {
        (who, role, where)
        for where, table in WHERE.items()
        for who, roles in tables[table].items()
        if who != "__is_block__"
        for role in ([roles] if isinstance(roles, str) else roles)
    }
    assert made == {(WHO[row.who], row.role, row.on) for row in documented_roles()}
    page = (ROOT / "docs" / "composer.md").read_text(encoding="utf-8")
    for who in ("connection", "jobs"):
        assert tables["file_roles"][who] in page
    assert tables["secret_roles"]["connection"] in page


def test_every_table_of_roles_is_granted(infra) -> None:
    granted = {
        used
        for kind, name, body in resources(infra)
        if kind.endswith("_iam_member")
        for used in re.findall(r"local\.(\w+_(?:roles|grants))", str(body["for_each"]))
        if not name.startswith("models")
    }
    assert granted == {*WHERE.values(), "file_roles", "secret_roles"} - {"project_roles"} | {"project_grants"}
    assert "local.project_roles" in names_in(infra["locals"])["project_grants"]


def test_a_models_own_account_has_the_roles_of_the_jobs_account(infra) -> None:
    """And it may write below its own folder alone."""
    theirs = [(kind, name, body) for kind, name, body in resources(infra) if name.startswith("models")]
    granted = {table for _, _, body in theirs for table in re.findall(r"local\.(\w+_roles)\.jobs", str(body))}
    tables = names_in(infra["locals"])
    assert granted == {name for name, table in tables.items() if name.endswith("_roles") and "jobs" in table}
    assert [name for kind, name, _ in theirs if kind == "google_service_account_iam_member"] == ["models"]


def test_jobs_write_below_their_folder_alone(infra) -> None:
    """What may write and is not the connection's account has a condition by the beginning of objects' names."""
    for kind, name, body in resources(infra):
        if kind != "google_storage_bucket_iam_member" or "jobs_roles" not in f"{body['for_each']}{body['role']}":
            continue
        (condition,) = body["condition"]
        own = "${each.key}/" if name.startswith("models") else ""
        wanted = f'resource.name.startsWith("${{local.jobs_objects}}{own}")'
        assert condition["expression"].replace("\\", "") == wanted, name
    tables = names_in(infra["locals"])
    assert tables["bucket_roles"]["jobs"] == tables["results_roles"]["jobs"] == "roles/storage.objectViewer"
    assert tables["jobs_objects"] == "projects/_/buckets/${local.results_bucket}/objects/jobs/"


def test_nothing_takes_a_role_from_others(infra) -> None:
    """`_iam_binding` and `_iam_policy` would remove who is not named."""
    assert not [kind for kind, _, _ in resources(infra) if kind.endswith(("_iam_binding", "_iam_policy"))]


def test_the_provider_has_every_argument(infra) -> None:
    for kind, name, body in resources(infra):
        required, optional = ARGUMENTS[kind]
        given = set(body) - META
        assert required <= given <= required | optional, f"{kind}.{name}"


def test_a_key_is_that_of_everything_which_is_kept(infra) -> None:
    """And the agents of the four services may use it, before anything is made with it."""
    for kind, name, body in resources(infra):
        if kind not in {*DYNAMIC, "google_artifact_registry_repository"}:
            continue
        assert "google_kms_crypto_key_iam_member.agents" in str(body["depends_on"]), name
        if kind not in DYNAMIC:
            assert body["kms_key_name"] == "${var.encryption_key}"
            continue
        block, argument = DYNAMIC[kind]
        (dynamic,) = body["dynamic"]
        assert plain(dynamic)[block]["for_each"] == "${var.encryption_key[*]}", name
        assert argument in str(dynamic[block]["content"]), name
    assert len(re.findall("gserviceaccount", str(names_in(infra["locals"])["key_agents"]))) == 4


def test_what_is_referred_to_is_declared(infra) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "infra").glob("*.tf")))
    assert set(re.findall(r"\bvar\.(\w+)", text)) == set(names_in(infra["variable"]))
    assert set(re.findall(r"\blocal\.(\w+)", text)) <= set(names_in(infra["locals"]))
    declared = {f"{kind}.{name}" for kind, name, _ in resources(infra)}
    assert set(re.findall(r"\b(google_\w+\.\w+)\b", re.sub(r"data\.google_\w+", "data", text))) <= declared


def test_the_page_names_every_variable(infra) -> None:
    documented = {cell.strip("`") for cell, *_ in table_rows("infra/README.md", "## Variables")}
    assert documented == set(names_in(infra["variable"]))
    settings = infra["output"][0]["environment_variables"]["value"]
    rows = table_rows("docs/composer.md", "## 2. Variables of the environment")
    wanted = [variable.strip("`") for variable, default, _ in rows if default == "required"]
    assert set(wanted) <= set(settings)


def test_nothing_that_serves_is_destroyed_with_it(infra) -> None:
    found = {kind: body for kind, _, body in resources(infra)}
    assert found["google_storage_bucket"]["force_destroy"] is False
    for kind, name, body in resources(infra):
        if kind == "google_storage_bucket":
            (kept,) = body["soft_delete_policy"]
            assert kept["retention_duration_seconds"] == "${var.soft_delete_days * 86400}", name
    assert found["google_storage_bucket"]["public_access_prevention"] == "enforced"
    assert found["google_bigquery_dataset"]["delete_contents_on_destroy"] is False
    assert found["google_project_service"]["disable_on_destroy"] is False


def test_the_apis_are_those_that_doctor_looks_for(infra) -> None:
    """Each that is enabled, and no other."""
    assert sorted(names_in(infra["locals"])["services"]) == sorted(APIS)
