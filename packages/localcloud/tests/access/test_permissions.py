"""What callers are told of the IAM table, of the APIs and of the images, in the words of Google's REST APIs."""

from __future__ import annotations

import datetime
import email.utils
import time
import uuid

import pytest
import requests
from google.cloud import bigquery, storage

from localcloud.access.iam import Iam
from localcloud.projects import Projects
from localcloud.state import State

OWN = "local-cloud@local-project.iam.gserviceaccount.com"
AGENT = "service-123456789012@gcp-sa-aiplatform.iam.gserviceaccount.com"
PROJECT = "projects/local-project"
ACCOUNT = f"{PROJECT}/serviceAccounts/trainer@local-project.iam.gserviceaccount.com"
REPOSITORY = f"{PROJECT}/locations/us-central1/repositories/retraining"
PROJECTS = "https://cloudresourcemanager.googleapis.com/v3/projects"
SERVICES = f"https://serviceusage.googleapis.com/v1/{PROJECT}/services"
IMAGES = f"https://artifactregistry.googleapis.com/v1/{REPOSITORY}"
BIGQUERY = f"https://bigquery.googleapis.com/bigquery/v2/{PROJECT}/datasets"
STORAGE = "https://storage.googleapis.com/storage/v1/b"


@pytest.fixture
def table(local_cloud):
    """Puts a table in force for one test: triples of principal, role and resource, or whole bindings."""
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"

    def put(*rows):
        bindings = [
            row if isinstance(row, dict) else dict(zip(("principal", "role", "resource"), row, strict=True))
            for row in rows
        ]
        answer = local_cloud.http.post(url, json={"bindings": bindings}, timeout=60)
        assert answer.status_code == 200, answer.text

    yield put
    assert local_cloud.http.delete(url, timeout=60).status_code == 200


def test_what_a_caller_may(local_cloud, table):
    """Of each kind of resource those that the table grants; with nothing granted no list at all, as the services do."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    objects = ["storage.objects.get", "storage.objects.create"]

    def ask(url, *permissions):
        answer = local_cloud.http.post(f"{url}:testIamPermissions", json={"permissions": permissions}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json().get("permissions")

    questions = [
        lambda: ask(f"{PROJECTS}/local-project", "bigquery.jobs.create", "logging.logs.list"),
        lambda: ask(f"https://iam.googleapis.com/v1/{ACCOUNT}", "iam.serviceAccounts.actAs"),
        lambda: ask(f"{BIGQUERY}/data/tables/t", "bigquery.tables.get", "bigquery.tables.update"),
    ]
    assert bucket.test_iam_permissions(objects) == objects
    table()
    assert [question() for question in questions] == [None, None, None]
    assert bucket.test_iam_permissions(objects) == []
    table(
        (OWN, "roles/bigquery.jobUser", PROJECT),
        (OWN, "roles/iam.serviceAccountUser", ACCOUNT),
        (OWN, "roles/bigquery.dataViewer", f"{PROJECT}/datasets/data"),
        (OWN, "roles/storage.objectViewer", f"buckets/{local_cloud.bucket}"),
        (AGENT, "roles/storage.objectUser", f"buckets/{local_cloud.bucket}"),
    )
    expected = [["bigquery.jobs.create"], ["iam.serviceAccounts.actAs"], ["bigquery.tables.get"]]
    assert [question() for question in questions] == expected
    assert bucket.test_iam_permissions(objects) == ["storage.objects.get"]


def test_a_signed_address_may_what_its_signer_may(local_cloud, table):
    """And no more: who may read signs no address that writes."""
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(f"tests/{uuid.uuid4().hex}")
    blob.upload_from_string(b"a")
    until = datetime.timedelta(minutes=1)
    read, write = (blob.generate_signed_url(version="v4", expiration=until, method=verb) for verb in ("GET", "PUT"))
    table((OWN, "roles/storage.objectViewer", f"buckets/{local_cloud.bucket}"))
    assert requests.get(read, timeout=30).content == b"a"
    refused = requests.put(write, b"b", timeout=30)
    assert (refused.status_code, "<Code>AccessDenied</Code>" in refused.text) == (403, True)
    table((AGENT, "roles/storage.objectUser", f"buckets/{local_cloud.bucket}"))
    assert requests.get(read, timeout=30).status_code == 403


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", f"{STORAGE}/nobody-has-it/iam/testPermissions?permissions=storage.objects.get", 404),
        ("GET", f"{STORAGE}/local-retraining/iam/testPermissions", 400),
        ("GET", f"{STORAGE}/local-retraining/iam/testPermissions?permissions=bigquery.jobs.create", 400),
        ("GET", f"{STORAGE}/local-retraining/iam/testPermissions?permissions=storage.objects.get&x=1", 400),
        ("GET", f"{STORAGE}/nobody-has-it/iam", 404),
        ("POST", f"{PROJECTS}/another-project:testIamPermissions", 403),
        ("POST", f"{PROJECTS}/another-project:getIamPolicy", 403),
        ("POST", f"{PROJECTS}/local-project:testIamPermissions", 400),
        ("GET", f"{SERVICES}:batchGet", 400),
        ("GET", f"{SERVICES}:batchGet?names=all", 400),
        ("GET", SERVICES.replace("local-project", "another-project") + "/storage.googleapis.com", 403),
        ("POST", f"{SERVICES}/storage.googleapis.com:check", 404),
        ("GET", f"{IMAGES}/packages/nobody/tags/1", 404),
        ("GET", f"{IMAGES}/packages/trainer", 404),
        ("GET", IMAGES.replace("local-project", "another-project") + ":getIamPolicy", 403),
    ],
)
def test_what_cannot_be_asked_is_refused(local_cloud, method, url, status):
    assert local_cloud.http.request(method, url, json={}, timeout=60).status_code == status


def test_policies_are_the_tables_own(local_cloud, table):
    """Of the resource itself, not of what it is in, with conditions; only to who may read them."""
    urls = {
        "project": ("POST", f"{PROJECTS}/local-project:getIamPolicy"),
        "bucket": ("GET", f"{STORAGE}/{local_cloud.bucket}/iam?optionsRequestedPolicyVersion=3"),
        "repository": ("GET", f"{IMAGES}:getIamPolicy"),
    }

    def ask(name):
        method, url = urls[name]
        return local_cloud.http.request(method, url, timeout=60)

    everybody = {"role": "roles/bigquery.jobUser", "members": ["allAuthenticatedUsers"]}
    assert all(everybody in ask(name).json()["bindings"] for name in urls)
    condition = {"expression": f"resource.name.startsWith('projects/_/buckets/{local_cloud.bucket}/objects/jobs/')"}
    bucket = {"principal": AGENT, "role": "roles/storage.objectUser", "resource": f"buckets/{local_cloud.bucket}"}
    rows = [
        (AGENT, "roles/bigquery.jobUser", "projects/123456789012"),
        {**bucket, "condition": condition},
        (AGENT, "roles/artifactregistry.reader", REPOSITORY),
    ]
    table(*rows)
    assert [ask(name).status_code for name in urls] == [403, 403, 403]
    table(*rows, (OWN, "roles/iam.securityReviewer", PROJECT))
    member = [f"serviceAccount:{AGENT}"]
    assert {"role": "roles/bigquery.jobUser", "members": member} in ask("project").json()["bindings"]
    conditional = {"role": "roles/storage.objectUser", "members": member, "condition": condition}
    assert ask("bucket").json()["bindings"] == [conditional]
    assert ask("repository").json()["bindings"] == [{"role": "roles/artifactregistry.reader", "members": member}]


def test_a_dataset_says_who_may(local_cloud, table):
    """By the old names of basic roles, while a table is in force."""
    name = f"access_{uuid.uuid4().hex[:8]}"
    bigquery.Client(project=local_cloud.project).create_dataset(name)
    assert "access" not in local_cloud.http.get(f"{BIGQUERY}/{name}", timeout=60).json()
    resource = f"{PROJECT}/datasets/{name}"
    table((OWN, "roles/bigquery.dataViewer", resource), (AGENT, "roles/bigquery.dataEditor", resource))
    found = bigquery.Client(project=local_cloud.project).get_dataset(name).access_entries
    assert {(each.role, each.entity_id) for each in found} == {("READER", OWN), ("WRITER", AGENT)}
    assert local_cloud.http.get(f"{BIGQUERY}/absent", timeout=60).status_code == 403


def test_an_api_is_disabled_and_enabled(local_cloud, table):
    """By the service's own methods, for who may."""
    name = "secretmanager.googleapis.com"
    batch = f"{SERVICES}:batchGet?names={PROJECT}/services/{name}&names={PROJECT}/services/storage.googleapis.com"

    def states():
        found = local_cloud.http.get(batch, timeout=60).json()["services"]
        return {each["config"]["name"]: each["state"] for each in found}

    assert states() == {name: "ENABLED", "storage.googleapis.com": "ENABLED"}
    assert local_cloud.http.post(f"{SERVICES}/{name}:disable", json={}, timeout=60).json()["done"] is True
    try:
        assert states() == {name: "DISABLED", "storage.googleapis.com": "ENABLED"}
        assert local_cloud.http.get(f"{SERVICES}/{name}", timeout=60).json()["state"] == "DISABLED"
    finally:
        assert local_cloud.http.post(f"{SERVICES}/{name}:enable", json={}, timeout=60).status_code == 200
    assert states()[name] == "ENABLED"
    table((OWN, "roles/serviceusage.serviceUsageViewer", PROJECT))
    assert states()[name] == "ENABLED"
    assert local_cloud.http.post(f"{SERVICES}/{name}:disable", json={}, timeout=60).status_code == 403


def test_a_quota_is_lowered_by_an_override(local_cloud, table):
    """In one region; a metric that there is not is none."""
    name = "aiplatform.googleapis.com%2Fcustom_model_training_cpus"
    metrics = f"{SERVICES.replace('/v1/', '/v1beta1/')}/aiplatform.googleapis.com/consumerQuotaMetrics"
    overrides = f"{metrics}/{name}/limits/%2Fproject%2Fregion/consumerOverrides"

    def limits():
        found = local_cloud.http.get(f"{metrics}/{name}?view=FULL", timeout=60).json()
        buckets = found["consumerQuotaLimits"][0]["quotaBuckets"]
        return {each.get("dimensions", {}).get("region"): each["effectiveLimit"] for each in buckets}

    assert limits() == {None: "1000"}
    body = {"overrideValue": "4", "dimensions": {"region": "europe-west4"}}
    assert local_cloud.http.post(overrides, json=body, timeout=60).json()["done"] is True
    assert limits() == {None: "1000", "europe-west4": "4"}
    assert local_cloud.http.post(overrides, json={"overrideValue": "4"}, timeout=60).status_code == 400
    assert local_cloud.http.delete(f"{overrides}/europe-west4", timeout=60).status_code == 200
    assert limits() == {None: "1000"}
    assert local_cloud.http.get(f"{metrics}/aiplatform.googleapis.com%2Fnothing", timeout=60).status_code == 404
    assert local_cloud.http.post(f"{metrics}/{name}", json={}, timeout=60).status_code == 404
    table((OWN, "roles/serviceusage.serviceUsageViewer", PROJECT))
    assert limits() == {None: "1000"}
    assert local_cloud.http.post(overrides, json=body, timeout=60).status_code == 403


def test_an_image_is_there_where_vertex_ai_could_run_it(local_cloud, table):
    tag = local_cloud.http.get(f"{IMAGES}/packages/trainer/tags/0.2.0", timeout=60).json()
    assert tag["name"] == f"{REPOSITORY}/packages/trainer/tags/0.2.0"
    assert "/packages/trainer/versions/sha256:" in tag["version"]
    table((OWN, "roles/artifactregistry.reader", REPOSITORY.replace("retraining", "another")))
    assert local_cloud.http.get(f"{IMAGES}/packages/trainer/tags/0.2.0", timeout=60).status_code == 403
    table((OWN, "roles/artifactregistry.reader", REPOSITORY))
    assert local_cloud.http.get(f"{IMAGES}/packages/trainer/tags/0.2.0", timeout=60).status_code == 200


def test_answers_are_dated(local_cloud):
    """Within the time that the question took."""
    before = time.time()
    answer = local_cloud.http.post(f"{PROJECTS}/local-project:getIamPolicy", timeout=60)
    said = email.utils.parsedate_to_datetime(answer.headers["Date"]).timestamp()
    assert before - 1 <= said <= time.time()


def test_a_condition_is_not_of_the_bucket_itself(tmp_path):
    """So `testIamPermissions` of a bucket does not tell of it."""
    iam = Iam(State(tmp_path), Projects(["local-project"]))
    condition = {"expression": "resource.name.startsWith('projects/_/buckets/b/objects/jobs/')"}
    iam.put(
        {
            "bindings": [
                {"principal": OWN, "role": "roles/storage.objectUser", "resource": "buckets/b", "condition": condition}
            ]
        }
    )
    assert iam.granted(OWN, ["storage.objects.get"], "buckets/b") == []
    assert iam.granted(OWN, ["storage.objects.get"], "buckets/b/objects/jobs/x") == ["storage.objects.get"]
