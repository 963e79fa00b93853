"""The command `doctor` on the local cloud: nothing is wrong; then one thing is broken, and its line alone says so."""

from __future__ import annotations

import json
import os

import pytest

from retraining.__main__ import main
from retraining.commands.doctor import CHECKS
from retraining.commands.shell import Shell
from retraining.hooks.cloud import OwnCloud
from tests.support.parcels import SPEC, WHERE, write_parcels

SQL = f"""SELECT id, happened, carrier, weight, late
FROM (SELECT 'a' AS id, TIMESTAMP '2024-01-01' AS happened, 'AA' AS carrier, 1.5 AS weight, 1 AS late)
{WHERE}"""


@pytest.fixture
def include(tmp_path):
    """A model's files."""
    write_parcels(tmp_path, SQL)
    return tmp_path


@pytest.fixture(scope="module")
def places(own_cloud):
    """A dataset where the jobs run, a bucket and a dataset elsewhere, and a bucket that another environment has."""
    from google.cloud import bigquery, storage

    project, region = own_cloud.settings.project, own_cloud.settings.region
    datasets, buckets = bigquery.Client(project=project), storage.Client(project=project)
    for name, location in (("doctor", region), ("doctor_us", "US"), ("doctor_far", "europe-west4")):
        dataset = bigquery.Dataset(f"{project}.{name}")
        dataset.location = location
        datasets.create_dataset(dataset, exists_ok=True)
    buckets.create_bucket("doctor-far", location="europe-west4")
    theirs = buckets.create_bucket("doctor-theirs", location=region)
    theirs.blob("environment.txt").upload_from_string("somebody-else")


@pytest.fixture
def doctor(own_cloud, places, include, capsys):
    """What the command prints of each check, and its status; settings by name replace those of the local cloud."""

    def doctor(**settings):
        named = {f"RETRAINING_{name.upper()}": value for name, value in {"dataset": "doctor", **settings}.items()}
        environ = {**os.environ, **named}
        shell = Shell(connect=lambda: OwnCloud(environ), find_include=lambda: include)
        status = main(["doctor"], shell)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[1] for line in lines] == [check.name for check in CHECKS]
        return status, {line.split()[1]: line for line in lines}

    return doctor


def states(lines):
    return {name: line.split()[0] for name, line in lines.items() if not line.startswith("ok ")}


def test_a_good_cloud_is_well(doctor):
    status, lines = doctor()
    assert (status, states(lines)) == (0, {})


def test_machines_read_the_same(places, include, capsys, monkeypatch):
    monkeypatch.setenv("RETRAINING_DATASET", "doctor")
    assert main(["doctor", "--json", "--include", str(include)]) == 0
    assert [each["check"] for each in json.loads(capsys.readouterr().out)] == [check.name for check in CHECKS]


@pytest.mark.parametrize(
    ("settings", "wrong", "others", "words"),
    [
        (
            {"bucket": "doctor-absent", "results_bucket": "doctor-far", "environment": "doctor"},
            "bucket",
            {"bucket-location": "unknown", "owner": "unknown"},
            "gcloud storage buckets create gs://doctor-absent --project=",
        ),
        (
            {"results_bucket": "doctor-absent"},
            "results-bucket",
            {"bucket-location": "unknown"},
            "gcloud storage buckets create gs://doctor-absent --project=",
        ),
        ({"results_bucket": "doctor-far"}, "bucket-location", {}, "doctor-far is in EUROPE-WEST4"),
        ({"bucket": "doctor-theirs", "environment": "ours"}, "owner", {}, "somebody-else"),
        ({"dataset": "absent"}, "dataset", {"dataset-location": "unknown"}, "mk --dataset"),
        ({"dataset": "doctor_us"}, "dataset-location", {}, "doctor_us is in US"),
        ({"dataset": "doctor_far"}, "dataset-location", {}, "location europe-west4"),
    ],
    ids=["bucket", "results", "bucket elsewhere", "bucket of others", "dataset", "dataset near", "dataset far"],
)
def test_what_is_not_there_is_named(doctor, settings, wrong, others, words):
    status, lines = doctor(**settings)
    assert (status, states(lines)) == (1, {wrong: "wrong", **others})
    assert words in lines[wrong]


SERVICES = [
    ("storage.objects.list gs://*", "bucket", ("bucket-location", "owner"), "roles/storage.objectUser"),
    ("bigquery.jobs.insert", "statements", ("queries",), "roles/bigquery.jobUser"),
    ("JobService.*", "jobs", (), "roles/aiplatform.user"),
    ("ModelService.*", "registry", (), "roles/aiplatform.user"),
    ("EndpointService.*", "endpoints", (), "roles/aiplatform.user"),
]


@pytest.mark.parametrize(("fault", "wrong", "others", "role"), SERVICES, ids=[each[1] for each in SERVICES])
def test_a_service_that_refuses_the_account_is_named_with_the_role(doctor, add_fault, fault, wrong, others, role):
    add_fault(fault, "error", code="PERMISSION_DENIED", message="not for you")
    status, lines = doctor()
    assert (status, states(lines)) == (1, {wrong: "wrong", **dict.fromkeys(others, "unknown")})
    assert "not for you" in lines[wrong]
    assert "add-iam-policy-binding" in lines[wrong]
    assert lines[wrong].endswith(f"--role={role}")


@pytest.mark.parametrize(("fault", "name", "others", "role"), SERVICES, ids=[each[1] for each in SERVICES])
def test_a_service_that_is_not_there_is_unknown(doctor, add_fault, fault, name, others, role):
    """By 501: that is no finding about the project, and it is not well either."""
    add_fault(fault, "error", code="UNIMPLEMENTED")
    status, lines = doctor()
    assert (status, states(lines)) == (1, dict.fromkeys((name, *others), "unknown"))


def test_the_role_for_statements_is_on_the_project_that_pays(doctor):
    """A misspelt one is named too."""
    status, lines = doctor(query_project="the-payer")
    assert (status, states(lines)) == (1, {"statements": "wrong", "queries": "unknown"})
    assert "gcloud projects add-iam-policy-binding the-payer " in lines["statements"]
    assert "RETRAINING_QUERY_PROJECT" in lines["statements"]


def test_buckets_and_dataset_must_have_the_key_of_everything_else(doctor, own_cloud):
    """The line has a command for each that has not, and no other."""
    from google.cloud import bigquery, storage

    project, region = own_cloud.settings.project, own_cloud.settings.region
    key = f"projects/keys/locations/{region}/keyRings/ring/cryptoKeys/key"
    bucket = storage.Client(project=project).create_bucket("doctor-key", location=region)
    asked = {"bucket": bucket.name, "results_bucket": bucket.name, "environment": "ours", "encryption_key": key}
    status, lines = doctor(**asked)
    assert (status, states(lines)) == (1, {"encryption": "wrong"})
    for command in (
        f"gcloud storage buckets update gs://doctor-key --default-encryption-key={key}",
        f"bq update --default_kms_key={key} {project}:doctor",
    ):
        assert command in lines["encryption"]
    bucket.default_kms_key_name = key
    bucket.patch()
    _, lines = doctor(**asked)
    assert lines["encryption"].endswith(f". bq update --default_kms_key={key} {project}:doctor.")
    client = bigquery.Client(project=project)
    dataset = client.get_dataset("doctor")
    dataset.default_encryption_configuration = bigquery.EncryptionConfiguration(key)
    client.update_dataset(dataset, ["default_encryption_configuration"])
    status, lines = doctor(**asked)
    assert (status, states(lines)) == (0, {})
    assert "have the key" in lines["encryption"]
    dataset.default_encryption_configuration = None
    client.update_dataset(dataset, ["default_encryption_configuration"])


def test_where_a_bucket_is_may_be_hidden(doctor, add_fault):
    """No role that a run needs has `storage.buckets.get`."""
    add_fault("storage.buckets.get gs://*", "error", code="PERMISSION_DENIED")
    status, lines = doctor()
    assert (status, states(lines)) == (0, {"bucket-location": "hidden"})


def test_no_credentials_are_named_first(doctor, monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    status, lines = doctor()
    assert (status, lines["credentials"].split()[0]) == (1, "wrong")
    assert lines["credentials"].endswith("gcloud auth application-default login")


def test_no_role_is_offered_on_a_bucket_of_others(doctor):
    """It would let two environments write into one bucket."""
    _, lines = doctor(bucket="doctor-theirs", environment="ours")
    assert lines["owner"].startswith("wrong")
    assert "gcloud" not in lines["owner"]


def test_settings_are_read_first(doctor):
    status, lines = doctor(region="nowhere")
    well = {"settings", "models"}
    assert status == 1
    assert states(lines) == {"settings": "wrong"} | {c.name: "unknown" for c in CHECKS if c.name not in well}
    assert "RETRAINING_REGION is 'nowhere'" in lines["settings"]


@pytest.mark.parametrize(
    ("file", "text", "wrong", "others", "words"),
    [
        ("sql/parcels/examples.sql", SQL.replace("carrier, weight,", "carrier, wieght,", 1), "queries", {}, "wieght"),
        (
            "models/parcels.yaml",
            SPEC.replace("label:", "lable:"),
            "models",
            dict.fromkeys(("machines", "quotas", "queries"), "unknown"),
            "lable",
        ),
        ("quotas.yaml", "regions: {us-central1: {jobs: many}}", "quotas", {}, "quotas.yaml"),
    ],
    ids=["query", "model", "quotas"],
)
def test_a_file_that_is_wrong_is_named(doctor, include, file, text, wrong, others, words):
    (include / file).write_text(text, encoding="utf-8")
    status, lines = doctor()
    assert (status, states(lines)) == (1, {wrong: "wrong", **others})
    assert words in lines[wrong]


@pytest.mark.parametrize(
    ("file", "text", "wrong", "words"),
    [
        (
            "models/parcels.yaml",
            SPEC + "deployment: {machine: n1-standard-4000}\n",
            "models",
            "n1-standard-4000",
        ),
        ("quotas.yaml", "regions: {us-central1: {cpus: 1}}", "quotas", "parcels"),
    ],
    ids=["machine", "quota"],
)
def test_machines_that_cannot_be_had_are_named(doctor, include, file, text, wrong, words):
    (include / file).write_text(text, encoding="utf-8")
    status, lines = doctor()
    assert (status, lines[wrong].split()[0]) == (1, "wrong")
    assert words in lines[wrong]


def test_a_folder_without_models_is_wrong(doctor, include):
    (include / "models" / "parcels.yaml").unlink()
    status, lines = doctor()
    assert status == 1
    assert "make new-model" in lines["models"]
