"""`infra/`: what Terraform makes is what docs/composer.md asks for, by arguments that Google's provider has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retraining.core.permissions import APIS
from tests.support.google_provider import ARGUMENTS
from tests.support.scenes.roles import documented_roles, table_rows
from tests.support.terraform import BLOCK, Folder, misfits, plain

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
DYNAMIC = {
    "google_storage_bucket": ("encryption", "default_kms_key_name"),
    "google_bigquery_dataset": ("default_encryption_configuration", "kms_key_name"),
    "google_vertex_ai_tensorboard": ("encryption_spec", "kms_key_name"),
}
"""Blocks that are there only with a key, and their one argument."""


@pytest.fixture(scope="module")
def infra() -> Folder:
    return Folder(ROOT / "infra")


def test_the_roles_are_those_of_the_table(infra) -> None:
    """None is missing, and none is too much."""
    tables = infra.named("locals")
    made = {
        (who, role, where)
        for where, table in WHERE.items()
        for who, roles in tables[table].items()
        if who != BLOCK
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
        for kind, name, body in infra.resources()
        if kind.endswith("_iam_member")
        for used in re.findall(r"local\.(\w+_(?:roles|grants))", str(body["for_each"]))
        if not name.startswith("models")
    }
    assert granted == {*WHERE.values(), "file_roles", "secret_roles"} - {"project_roles"} | {"project_grants"}
    assert "local.project_roles" in infra.named("locals")["project_grants"]


def test_a_models_own_account_has_the_roles_of_the_jobs_account(infra) -> None:
    """And it may write below its own folder alone."""
    theirs = [(kind, name, body) for kind, name, body in infra.resources() if name.startswith("models")]
    granted = {table for _, _, body in theirs for table in re.findall(r"local\.(\w+_roles)\.jobs", str(body))}
    tables = infra.named("locals")
    assert granted == {name for name, table in tables.items() if name.endswith("_roles") and "jobs" in table}
    assert [name for kind, name, _ in theirs if kind == "google_service_account_iam_member"] == ["models"]


def test_jobs_write_below_their_folder_alone(infra) -> None:
    """What may write and is not the connection's account has a condition by the beginning of objects' names."""
    for kind, name, body in infra.resources():
        if kind != "google_storage_bucket_iam_member" or "jobs_roles" not in f"{body['for_each']}{body['role']}":
            continue
        (condition,) = body["condition"]
        own = "${each.key}/" if name.startswith("models") else ""
        wanted = f'resource.name.startsWith("${{local.jobs_objects}}{own}")'
        assert condition["expression"].replace("\\", "") == wanted, name
    tables = infra.named("locals")
    assert tables["bucket_roles"]["jobs"] == tables["results_roles"]["jobs"] == "roles/storage.objectViewer"
    assert tables["jobs_objects"] == "projects/_/buckets/${local.results_bucket}/objects/jobs/"


def test_nothing_takes_a_role_from_others(infra) -> None:
    """`_iam_binding` and `_iam_policy` would remove who is not named."""
    assert not [kind for kind, _, _ in infra.resources() if kind.endswith(("_iam_binding", "_iam_policy"))]


def test_the_provider_has_every_argument(infra) -> None:
    for kind, name, body in infra.resources():
        assert not misfits(body, ARGUMENTS[kind], f"{kind}.{name}")


def test_a_key_is_that_of_everything_which_is_kept(infra) -> None:
    """And the agents of the four services may use it, before anything is made with it."""
    for kind, name, body in infra.resources():
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
    assert len(re.findall("gserviceaccount", str(infra.named("locals")["key_agents"]))) == 4


def test_what_is_referred_to_is_declared(infra) -> None:
    assert not infra.dangling()
    assert set(re.findall(r"\bvar\.(\w+)", infra.text)) == set(infra.named("variable"))


def test_a_folder_may_use_it_as_a_module(infra) -> None:
    """Which brings no provider of its own, so that it can be there twice, and wait for something."""
    assert "provider" not in infra.blocks
    for kind, name, body in infra.resources():
        if "project" in ARGUMENTS[kind]:
            assert "project" in body, f"{kind}.{name} would be in the provider's project"


def test_the_page_names_every_variable(infra) -> None:
    documented = {cell.strip("`") for cell, *_ in table_rows("infra/README.md", "## Variables")}
    assert documented == set(infra.named("variable"))
    settings = infra.named("output")["environment_variables"]["value"]
    rows = table_rows("docs/composer.md", "## 2. Variables of the environment")
    wanted = [variable.strip("`") for variable, default, _ in rows if default == "required"]
    assert set(wanted) <= set(settings)


def test_nothing_that_serves_is_destroyed_with_it(infra) -> None:
    found = {kind: body for kind, _, body in infra.resources()}
    assert found["google_storage_bucket"]["force_destroy"] is False
    for kind, name, body in infra.resources():
        if kind == "google_storage_bucket":
            (kept,) = body["soft_delete_policy"]
            assert kept["retention_duration_seconds"] == "${var.soft_delete_days * 86400}", name
    assert found["google_storage_bucket"]["public_access_prevention"] == "enforced"
    assert found["google_bigquery_dataset"]["delete_contents_on_destroy"] is False
    assert found["google_project_service"]["disable_on_destroy"] is False


def test_the_apis_are_those_that_doctor_looks_for(infra) -> None:
    """Each that is enabled, and no other."""
    assert sorted(infra.named("locals")["services"]) == sorted(APIS)
