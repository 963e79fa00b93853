"""The command `doctor` on the local cloud: nothing is wrong; then one thing is broken, and its line alone says so.

What accounts may is in `test_doctor_roles.py`.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from retraining.__main__ import main
from retraining.commands import doctor_airflow
from retraining.commands.diagnosis import Finding, State
from retraining.commands.doctor import CHECKS, render_page
from retraining.commands.shell import Shell
from retraining.core.permissions import ROLES
from retraining.hooks.clock import Clock
from retraining.hooks.cloud import OwnCloud
from tests.support.mlflow_server import connection, mlflow_server
from tests.support.parcels import SPEC, WHERE, write_parcels
from tests.support.scenes.airflow_home import airflow_home
from tests.support.sinks import mail_sink

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


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An Airflow environment in which nothing is wrong; its DAG file."""
    return airflow_home(tmp_path / "airflow", monkeypatch)


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


NOT_SAID = {"agent/bigquery.dataEditor@dataset": "hidden"}
"""Without an IAM table datasets of the local cloud do not say who may what."""


def states(lines):
    found = {name: line.split()[0] for name, line in lines.items() if not line.startswith("ok ")}
    return {name: state for name, state in found.items() if NOT_SAID.get(name) != state}


def roles_on(*places):
    """The lines of roles that need a place, or what jobs run as."""
    return {role.name: "unknown" for role in ROLES if role.on in places}


def test_a_good_cloud_is_well(doctor):
    status, lines = doctor()
    assert (status, states(lines)) == (0, {})


def test_machines_read_the_same(places, include, capsys, monkeypatch):
    monkeypatch.setenv("RETRAINING_DATASET", "doctor")
    assert main(["doctor", "--json", "--include", str(include)]) == 0
    assert [each["check"] for each in json.loads(capsys.readouterr().out)] == [check.name for check in CHECKS]


OF_DATASET = {"connection/bigquery.dataEditor@dataset": "unknown"}


@pytest.mark.parametrize(
    ("settings", "wrong", "others", "words"),
    [
        (
            {"bucket": "doctor-absent", "results_bucket": "doctor-far", "environment": "doctor"},
            "bucket",
            {**dict.fromkeys(("bucket-location", "objects", "owner"), "unknown"), **roles_on("bucket")},
            "gcloud storage buckets create gs://doctor-absent --project=",
        ),
        (
            {"results_bucket": "doctor-absent"},
            "results-bucket",
            {**dict.fromkeys(("bucket-location", "objects"), "unknown"), **roles_on("results", "results-jobs")},
            "gcloud storage buckets create gs://doctor-absent --project=",
        ),
        ({"results_bucket": "doctor-far"}, "bucket-location", {}, "doctor-far is in EUROPE-WEST4"),
        ({"bucket": "doctor-theirs", "environment": "ours"}, "owner", {}, "somebody-else"),
        ({"dataset": "absent"}, "dataset", {"dataset-location": "unknown", **roles_on("dataset")}, "mk --dataset"),
        ({"dataset": "doctor_us"}, "dataset-location", OF_DATASET, "doctor_us is in US"),
        ({"dataset": "doctor_far"}, "dataset-location", OF_DATASET, "location europe-west4"),
    ],
    ids=["bucket", "results", "bucket elsewhere", "bucket of others", "dataset", "dataset near", "dataset far"],
)
def test_what_is_not_there_is_named(doctor, settings, wrong, others, words):
    status, lines = doctor(**settings)
    assert (status, states(lines)) == (1, {wrong: "wrong", **others})
    assert words in lines[wrong]


BY_STATEMENTS = ("connection/bigquery.dataViewer@sources", "connection/bigquery.dataEditor@dataset", "queries")
SERVICES = [
    ("storage.objects.list gs://*", "objects", (), "roles/storage.objectUser"),
    ("bigquery.jobs.insert", "statements", BY_STATEMENTS, "roles/bigquery.jobUser"),
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
    role = "connection/bigquery.jobUser@project"
    blocked = ("statements", *BY_STATEMENTS)
    assert (status, states(lines)) == (1, {role: "wrong", **dict.fromkeys(blocked, "unknown")})
    assert "the-payer" in lines[role]


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
    well = {"settings", "models", "parallelism", "parsing", "approval", "plugin"}
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
            dict.fromkeys(
                (
                    "machines",
                    "quotas",
                    "google-quotas",
                    "queries",
                    "images",
                    "parallelism",
                    "parsing",
                    "approval",
                    "messages",
                    "trackers",
                    "connection/bigquery.dataViewer@sources",
                    "connection/iam.serviceAccountUser@account",
                    *(role.name for role in ROLES if role.who == "jobs"),
                ),
                "unknown",
            ),
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


def test_the_bucket_of_a_stage_belongs_to_an_environment_that_says_so(doctor, include, own_cloud):
    """With the variable to set; one that says so, and one that is no stage's, are well."""
    bucket = own_cloud.settings.bucket
    (include / "environments.yaml").write_text(f"stages:\n  dev: {{bucket: my-dev}}\n  live: {{bucket: {bucket}}}\n")
    status, lines = doctor()
    assert (status, states(lines)) == (1, {"stage": "wrong"})
    assert "Set RETRAINING_STAGE=live" in lines["stage"]
    status, lines = doctor(stage="live", include=str(include))
    assert (status, states(lines)) == (0, {})
    assert "live, of dev, live" in lines["stage"]


def test_a_folder_without_models_is_wrong(doctor, include):
    (include / "models" / "parcels.yaml").unlink()
    status, lines = doctor()
    assert status == 1
    assert "make new-model" in lines["models"]


def test_an_api_that_is_not_enabled_is_named(doctor, local_cloud):
    """With the command for it alone."""
    url = f"https://serviceusage.googleapis.com/v1/projects/{local_cloud.project}/services/monitoring.googleapis.com"
    assert local_cloud.http.post(f"{url}:disable", json={}, timeout=60).status_code == 200
    try:
        status, lines = doctor()
    finally:
        local_cloud.http.post(f"{url}:enable", json={}, timeout=60)
    assert (status, states(lines)) == (1, {"apis": "wrong"})
    command = f"gcloud services enable monitoring.googleapis.com --project={local_cloud.project}"
    assert lines["apis"].endswith(command)


def test_a_quota_of_google_that_is_too_small_is_named(doctor, local_cloud):
    """With the job, what it needs and what there is."""
    metric = "consumerQuotaMetrics/aiplatform.googleapis.com%2Fcustom_model_training_cpus"
    service = f"projects/{local_cloud.project}/services/aiplatform.googleapis.com"
    url = f"https://serviceusage.googleapis.com/v1beta1/{service}/{metric}/limits/%2Fproject%2Fregion/consumerOverrides"
    body = {"overrideValue": "1", "dimensions": {"region": local_cloud.region}}
    assert local_cloud.http.post(url, json=body, timeout=60).status_code == 200
    try:
        status, lines = doctor()
    finally:
        local_cloud.http.delete(f"{url}/{local_cloud.region}", timeout=60)
    assert (status, states(lines)) == (1, {"google-quotas": "wrong"})
    assert "the job train of parcels needs " in lines["google-quotas"]
    assert "of 1 cpus" in lines["google-quotas"]


@pytest.mark.parametrize("hours", [-1, 1], ids=["slow", "fast"])
def test_a_clock_that_is_wrong_is_named(doctor, monkeypatch, hours):
    """In either direction."""
    now = Clock.now
    monkeypatch.setattr(Clock, "now", lambda self: now(self) + timedelta(hours=hours))
    status, lines = doctor()
    assert (status, states(lines)) == (1, {"clock": "wrong"})
    assert "s away from Google's" in lines["clock"]


def test_an_image_that_is_not_pushed_is_named(doctor):
    image = "us-central1-docker.pkg.dev/local-project/retraining/nobodys:1"
    status, lines = doctor(trainer_image=image)
    assert (status, states(lines)) == (1, {"images": "wrong"})
    assert lines["images"].endswith(f"docker push {image}")


def test_an_image_elsewhere_cannot_be_looked_at(doctor):
    """No registry of others is asked."""
    status, lines = doctor(serving_image="registry.example.com/tensorflow-serving:1")
    assert (status, states(lines)) == (0, {"images": "hidden"})
    assert "registry.example.com" in lines["images"]


@pytest.mark.parametrize(
    ("variable", "value", "wrong"),
    [
        ("AIRFLOW__CORE__PARALLELISM", "0", "parallelism"),
        ("AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG", "1", "parallelism"),
        ("AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT", "0.001", "parsing"),
        ("AIRFLOW__CORE__PLUGINS_FOLDER", "/nowhere", "plugin"),
    ],
)
def test_a_setting_of_airflow_that_does_not_do_is_named(doctor, monkeypatch, variable, value, wrong):
    monkeypatch.setenv(variable, value)
    status, lines = doctor()
    assert (status, states(lines)) == (1, {wrong: "wrong"})
    assert " Mend it with: " in lines[wrong]


def test_many_models_take_turns(doctor, include, monkeypatch):
    """A hundred models need no more than Airflow's own default."""
    text = (include / "models" / "parcels.yaml").read_text(encoding="utf-8")
    for number in range(3):
        other = include / "models" / f"other_{number}.yaml"
        other.write_text(text.replace("name: parcels", f"name: other_{number}", 1), encoding="utf-8")
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "2")
    _, lines = doctor()
    assert lines["parallelism"].startswith("ok ")
    assert "parallelism 2 for 4 models" in lines["parallelism"]


def test_a_dag_file_that_cannot_be_loaded_is_named(doctor, home):
    """With the last line of what it says."""
    home.write_text("import retraining.nothing_of_that_name\n", encoding="utf-8")
    status, lines = doctor()
    assert (status, states(lines)) == (1, {"parsing": "wrong"})
    assert "nothing_of_that_name" in lines["parsing"]


def test_a_person_cannot_be_asked_without_the_provider(doctor, include, monkeypatch):
    """Where a model asks one."""
    (include / "models" / "parcels.yaml").write_text(SPEC + "deployment: {approval: always}\n", encoding="utf-8")
    assert states(doctor()[1]) == {}
    monkeypatch.setattr(doctor_airflow, "_HITL", "airflow.providers.standard.operators.no_such_thing")
    status, lines = doctor()
    assert (status, states(lines)) == (1, {"approval": "wrong"})


def test_a_mail_server_is_reached_and_told_nothing(doctor, monkeypatch):
    """And one that is away is named; of a webhook's connection nothing is shown but its id."""
    with mail_sink() as mails:
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", f"smtp://127.0.0.1:{mails.port}")
        status, lines = doctor(notify_owners="ml@example.com")
        assert (status, states(lines)) == (0, {})
        assert mails.mails == []
    assert "smtp_default" in lines["messages"]
    status, lines = doctor(notify_owners="ml@example.com", notify_channels="team")
    assert (status, states(lines)) == (1, {"messages": "wrong"})
    assert "connection team" in lines["messages"]
    assert "cannot be reached" in lines["messages"]


def test_a_tracker_is_asked_and_nothing_is_made_there(doctor, monkeypatch):
    """And one that does not answer is named, with its connection."""
    with mlflow_server() as server:
        monkeypatch.setenv("AIRFLOW_CONN_MLFLOW_DEFAULT", connection(server.port))
        status, lines = doctor(tracking="vertex,mlflow")
        assert (status, states(lines)) == (0, {})
        assert server.calls == ["experiments/get-by-name"]
    assert "vertex and mlflow answered" in lines["trackers"]
    monkeypatch.delenv("AIRFLOW_CONN_MLFLOW_DEFAULT")
    status, lines = doctor(tracking="mlflow")
    assert (status, states(lines)) == (1, {"trackers": "wrong"})
    assert "RETRAINING_MLFLOW_CONNECTION" in lines["trackers"]


def test_a_machine_without_airflow_cannot_say(doctor, monkeypatch):
    """And no Airflow is made there."""
    monkeypatch.delenv("AIRFLOW_HOME")
    status, lines = doctor()
    assert (status, states(lines)) == (0, dict.fromkeys(("parallelism", "parsing", "plugin"), "hidden"))


def test_airflows_connection_may_ask(places, include, capsys, monkeypatch):
    """And the line of the credentials says so."""
    monkeypatch.setenv("RETRAINING_DATASET", "doctor")
    assert main(["doctor", "--json", "--as-connection", "--include", str(include)]) == 0
    found = {each["check"]: each["text"] for each in json.loads(capsys.readouterr().out)}
    assert "by the connection google_cloud_default" in found["credentials"]


def test_a_page_has_every_line():
    """With what is wrong escaped, and the command."""
    findings = [
        Finding(check="bucket", state=State.WRONG, text="no <b>bucket</b>", command="gcloud storage"),
        *(Finding(check=name, state=State.OK, text="well") for name in ("one", "two")),
    ]
    page = render_page(findings, datetime(2026, 11, 27, 20, tzinfo=UTC))
    assert "2 ok, 1 wrong" in page
    assert "no &lt;b&gt;bucket&lt;/b&gt;<br>Mend it with: <code>gcloud storage</code>" in page
    assert page.count("<td><code>") == 3


def test_a_page_is_written(doctor, tmp_path, monkeypatch, include, places):
    """Beside the lines."""
    monkeypatch.setenv("RETRAINING_DATASET", "doctor")
    path = tmp_path / "page.html"
    assert main(["doctor", "--page", str(path), "--include", str(include)]) == 0
    text = path.read_text(encoding="utf-8")
    assert all(f"<td><code>{check.name}</code></td>" in text for check in CHECKS)
