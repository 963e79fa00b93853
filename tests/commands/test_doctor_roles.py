"""The command `doctor` about roles: each documented one has its line, and taken away it alone is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from localcloud.services import services
from retraining.__main__ import main
from retraining.commands.doctor import CHECKS
from retraining.commands.shell import Shell
from retraining.core.permissions import ROLES, Binding, is_bound
from retraining.hooks.cloud import OwnCloud
from tests.support.parcels import WHERE, write_parcels
from tests.support.scenes.airflow_home import airflow_home
from tests.support.scenes.roles import JOBS_ACCOUNT, PRINCIPALS, SOURCE, Role, condition, documented_roles

ROOT = Path(__file__).resolve().parents[2]
WHO = {"connection": "the connection's account", "jobs": "the jobs' account", "agent": "Vertex AI's service agent"}
ON = {
    "project": "project",
    "sources": "source datasets",
    "dataset": "RETRAINING_DATASET",
    "bucket": "RETRAINING_BUCKET",
    "results": "RETRAINING_RESULTS_BUCKET",
    "results-jobs": "jobs/ in RETRAINING_RESULTS_BUCKET",
    "account": "RETRAINING_SERVICE_ACCOUNT",
    "repository": "the image's repository",
}
RESULTS = "doctor-results"
DATASET = "doctor_roles"
SQL = f"SELECT id, happened, carrier, weight, late FROM {SOURCE}.doctor {WHERE}"
MAY_LOOK = ("iam.securityReviewer", "serviceusage.serviceUsageViewer", "artifactregistry.reader")
"""Roles of whoever sets a project up, by which all can be known."""
ELSEWHERE_IN_VERTEX = {
    "artifacts": ("create", "delete", "get", "list", "update"),
    "contexts": (
        *("addContextArtifactsAndExecutions", "addContextChildren", "queryContextLineageSubgraph"),
        *("create", "delete", "get", "list", "update"),
    ),
    "deploymentResourcePools": ("create", "delete", "get", "list", "queryDeployedModels"),
    "executions": ("get", "list"),
    "metadataStores": ("create", "get", "list"),
    "tensorboardExperiments": ("create", "delete", "get", "list", "update", "write"),
    "tensorboardRuns": ("batchCreate", "create", "delete", "get", "list", "update", "write"),
    "tensorboardTimeSeries": ("batchCreate", "batchRead", "create", "delete", "get", "list", "read", "update"),
    "tensorboards": ("create", "delete", "get", "list", "update"),
}
"""Of experiments, without which no run fails, and of machines that models share, which `plan` asks for by name."""
NOT_NEEDED = {
    "roles/aiplatform.user": (
        *(f"aiplatform.{kind}.{verb}" for kind, verbs in ELSEWHERE_IN_VERTEX.items() for verb in verbs),
        "aiplatform.models.export",
        "aiplatform.operations.list",
        "aiplatform.persistentResources.get",
        "aiplatform.persistentResources.list",
        "aiplatform.trainingPipelines.cancel",
        "aiplatform.trainingPipelines.create",
        "aiplatform.trainingPipelines.delete",
        "aiplatform.trainingPipelines.get",
        "aiplatform.trainingPipelines.list",
    ),
    "roles/bigquery.dataViewer": (
        "bigquery.datasets.get",
        "bigquery.models.getMetadata",
        "bigquery.models.list",
        "bigquery.routines.get",
        "bigquery.routines.list",
        "bigquery.tables.list",
    ),
    "roles/bigquery.dataEditor": (
        "bigquery.datasets.get",
        "bigquery.models.delete",
        "bigquery.models.getMetadata",
        "bigquery.models.list",
        "bigquery.models.updateMetadata",
        "bigquery.routines.create",
        "bigquery.routines.delete",
        "bigquery.routines.get",
        "bigquery.routines.list",
        "bigquery.routines.update",
    ),
    "roles/logging.viewer": ("logging.logs.list",),
}
"""Of documented roles what the local cloud lists beside what a run is refused without."""
ELSEWHERE = {
    "roles/secretmanager.secretAccessor",
    "roles/aiplatform.admin",
    "roles/cloudkms.cryptoKeyEncrypterDecrypter",
}
"""Roles that the page has for what not every project has, and for which docs/composer.md says that none looks."""


def documented(role):
    """The row of the page that a role of the product is."""
    return Role(WHO[role.who], f"roles/{role.role}", ON[role.on])


def test_every_documented_role_is_checked_and_no_other():
    """Those of docs/composer.md, which tests/ci/test_infra.py holds infra/ to."""
    assert sorted(map(documented, ROLES)) == sorted(documented_roles())
    assert {role.name for role in ROLES} <= {check.name for check in CHECKS}


def test_the_roles_of_the_text_are_named_as_not_looked_at():
    """Beside the table stand roles for what not every project has."""
    page = (ROOT / "docs" / "composer.md").read_text(encoding="utf-8")
    section = page.partition("\n## 4. Roles\n")[2].partition("\n## 5.")[0]
    named = set(re.findall(r"`(roles/[\w.]+)`", section))
    assert named - {row.role for row in documented_roles()} == ELSEWHERE - {
        "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    }
    told = page.partition("\n## 5. Before the first night\n")[2].partition("\n## 6.")[0]
    assert all(f"`{role}`" in told for role in ELSEWHERE)


def test_the_permissions_are_the_roles_own():
    """As the local cloud has them, whose methods ask for them; what is left out is named."""
    for role in ROLES:
        own = {permission for each in services() for permission in each.roles.get(f"roles/{role.role}", ())}
        own = {each for each in own if each != "resourcemanager.projects.get"}
        if role.who == "connection":
            assert set(role.permissions) == own - set(NOT_NEEDED.get(f"roles/{role.role}", ())), role.name
        else:
            assert role.permissions == ()


@pytest.fixture(scope="module")
def places(own_cloud):
    """A dataset, a source and a second bucket."""
    from google.cloud import bigquery, storage

    project, region = own_cloud.settings.project, own_cloud.settings.region
    client = bigquery.Client(project=project)
    for name in (SOURCE, DATASET):
        dataset = bigquery.Dataset(f"{project}.{name}")
        dataset.location = region
        client.create_dataset(dataset, exists_ok=True)
    columns = "'a' AS id, TIMESTAMP '2024-01-01' AS happened, 'AA' AS carrier, 1.5 AS weight, 1 AS late"
    client.query_and_wait(f"CREATE OR REPLACE TABLE {SOURCE}.doctor AS SELECT {columns}")
    buckets = storage.Client(project=project)
    if not buckets.bucket(RESULTS).exists():
        buckets.create_bucket(RESULTS, location=region)
    return client


@pytest.fixture
def table(local_cloud):
    """Puts documented roles in force, without one, and others for whoever asks."""
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"
    project = f"projects/{local_cloud.project}"
    resources = {
        "project": project,
        "source datasets": f"{project}/datasets/{SOURCE}",
        "RETRAINING_DATASET": f"{project}/datasets/{DATASET}",
        "RETRAINING_BUCKET": f"buckets/{local_cloud.bucket}",
        "RETRAINING_RESULTS_BUCKET": f"buckets/{RESULTS}",
        "RETRAINING_SERVICE_ACCOUNT": f"{project}/serviceAccounts/{JOBS_ACCOUNT}",
        "the image's repository": f"{project}/locations/{local_cloud.region}/repositories/retraining",
    }

    def binding(row):
        beginning, _, resource = row.on.rpartition(" in ")
        made = {"principal": PRINCIPALS[row.who], "role": row.role, "resource": resources[resource]}
        return {**made, "condition": condition(RESULTS, beginning)} if beginning else made

    def put(without=None, may_look=MAY_LOOK):
        bindings = [binding(row) for row in documented_roles() if row != without]
        own = PRINCIPALS[WHO["connection"]]
        bindings += [{"principal": own, "role": f"roles/{role}", "resource": project} for role in may_look]
        answer = local_cloud.http.post(url, json={"bindings": bindings}, timeout=60)
        assert answer.status_code == 200, answer.text

    yield put
    assert local_cloud.http.delete(url, timeout=60).status_code == 200


@pytest.fixture
def doctor(own_cloud, places, tmp_path, capsys, monkeypatch):
    """What the command prints of each check, and its status."""
    write_parcels(tmp_path, SQL)
    airflow_home(tmp_path / "airflow", monkeypatch)
    named = {"DATASET": DATASET, "RESULTS_BUCKET": RESULTS, "SERVICE_ACCOUNT": JOBS_ACCOUNT}

    def doctor():
        environ = {**os.environ, **{f"RETRAINING_{name}": value for name, value in named.items()}}
        shell = Shell(connect=lambda: OwnCloud(environ), find_include=lambda: tmp_path)
        status = main(["doctor"], shell)
        lines = capsys.readouterr().out.splitlines()
        found = {line.split()[1]: line for line in lines}
        assert list(found) == [check.name for check in CHECKS]
        return status, found, {name: line.split()[0] for name, line in found.items() if not line.startswith("ok ")}

    return doctor


def test_the_documented_roles_are_well(doctor, table):
    """To whoever may look, nothing is wrong, and nothing unknown; a bucket's location is in no role."""
    table()
    status, _, others = doctor()
    assert (status, others) == (0, {"bucket-location": "hidden"})


def test_the_connections_account_alone_cannot_know_of_others(doctor, table):
    """With exactly its documented roles: no run needs more, and each line says what would let it look.

    Who may what on the dataset is in what its role lets it read.
    """
    table(may_look=())
    status, lines, others = doctor()
    hidden = {
        "bucket-location",
        "apis",
        "google-quotas",
        "images",
        *(role.name for role in ROLES if role.who != "connection" and role.on != "dataset"),
    }
    assert (status, others) == (0, dict.fromkeys(hidden, "hidden"))
    assert all("roles/" in lines[name] for name in hidden - {"bucket-location"})


BLOCKED = {
    "connection/aiplatform.user@project": ("jobs", "registry", "endpoints"),
    "connection/bigquery.jobUser@project": (
        "statements",
        "queries",
        "connection/bigquery.dataViewer@sources",
        "connection/bigquery.dataEditor@dataset",
    ),
    "connection/bigquery.dataViewer@sources": ("queries",),
    "connection/storage.objectUser@bucket": ("objects", "owner"),
    "connection/storage.objectUser@results": ("objects",),
}
"""What is not asked without a role."""


@pytest.mark.parametrize("role", ROLES, ids=[role.name for role in ROLES])
def test_a_role_that_is_taken_away_is_named(doctor, table, role):
    """Its line and no other is wrong, with the command that gives it, to whom it belongs."""
    table(without=documented(role))
    status, lines, others = doctor()
    expected = {role.name: "wrong", **dict.fromkeys(BLOCKED.get(role.name, ()), "unknown"), "bucket-location": "hidden"}
    if role.name == "connection/bigquery.dataEditor@dataset":
        expected |= dict.fromkeys(("dataset", "dataset-location"), "hidden")
        expected |= {each.name: "hidden" for each in ROLES if each.on == "dataset" and each.who != "connection"}
    assert (status, others) == (1, expected)
    command = lines[role.name].partition(" Mend it with: ")[2]
    assert f"roles/{role.role}" in command
    assert ("MEMBER" if role.who == "connection" else PRINCIPALS[WHO[role.who]]) in command


def test_a_permission_that_the_service_does_not_know_is_no_missing_role(doctor, table, add_fault):
    """No command is offered for it."""
    table()
    add_fault("ServiceAccounts.TestIamPermissions", "error", code="INVALID_ARGUMENT", message="not valid here")
    status, lines, others = doctor()
    name = "connection/iam.serviceAccountUser@account"
    assert (status, others) == (1, {name: "unknown", "bucket-location": "hidden"})
    assert "not valid here" in lines[name]
    assert "Mend it with" not in lines[name]


@pytest.mark.parametrize(
    ("bindings", "found"),
    [
        ([("roles/storage.objectUser", "serviceAccount:a", "")], True),
        ([("roles/storage.objectAdmin", "serviceAccount:a", "")], True),
        ([("roles/storage.objectUser", "allAuthenticatedUsers", "")], True),
        ([("roles/storage.objectUser", "serviceAccount:a", "resource.name.startsWith('b/jobs/')")], True),
        ([("roles/storage.objectUser", "serviceAccount:a", "resource.name.startsWith('b/other/')")], False),
        ([("roles/storage.objectViewer", "serviceAccount:a", "")], False),
        ([("roles/storage.objectUser", "serviceAccount:b", "")], False),
        ([], False),
    ],
)
def test_what_a_policy_gives(bindings, found):
    """A role, or one that contains it, to the account or to everybody; under the one condition that is meant."""
    made = [Binding(role=role, member=member, condition=expression) for role, member, expression in bindings]
    assert is_bound(made, "roles/storage.objectUser", "a", "b/jobs/") is found
