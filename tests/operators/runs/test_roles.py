"""The roles of docs/composer.md, executed: they are enough, and each one taken away fails by its name."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from google.cloud import bigquery

from retraining.core.data.sql import Query
from retraining.core.naming.vertex import endpoint_name
from retraining.hooks.cloud import Cloud
from retraining.hooks.logs import Cursor
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.roles import JOBS_ACCOUNT, NOT_TRIED, SOURCE, Role, Roles, documented_roles, table_rows
from tests.support.scenes.served_models import PREBUILT

TABLE = f"{SOURCE}.parcels"
READ = """
from google.cloud import bigquery_storage_v1 as api
client = api.BigQueryReadClient()
session = client.create_read_session(
    parent="projects/{project}",
    read_session=api.types.ReadSession(
        table="projects/{project}/datasets/{dataset}/tables/{table}", data_format=api.types.DataFormat.ARROW
    ),
    max_stream_count=1,
)
rows = sum(page.num_items for page in client.read_rows(session.streams[0].name).rows(session).pages)
assert rows == 3, rows
"""
WRITE = "from google.cloud import storage; storage.Client().bucket('{bucket}').blob('{name}').upload_from_string('x')"


class Scene(NamedTuple):
    """What an operation may use."""

    cloud: Cloud
    run_table: str
    name: str


def list_jobs(scene: Scene) -> None:
    scene.cloud.jobs.find_jobs({"owner": scene.name})


def run_query(scene: Scene) -> None:
    scene.cloud.warehouse.run_query(Query(sql="SELECT 1 AS one"), scene.name, "roles")


def read_source(scene: Scene) -> None:
    scene.cloud.warehouse.dry_run(Query(sql=f"SELECT * FROM {TABLE}"), "roles")


def make_run_table(scene: Scene) -> None:
    sql = f"CREATE TABLE {scene.cloud.settings.dataset}.{scene.name} AS SELECT 1 AS one"
    scene.cloud.warehouse.run_query(Query(sql=sql), scene.name, "roles")


def write_document(scene: Scene) -> None:
    scene.cloud.artifacts.write_once(f"gs://{scene.cloud.settings.bucket}/roles/{scene.name}.json", b"{}")


def read_lines(scene: Scene) -> None:
    scene.cloud.logs.read_new(scene.name, Cursor())


def read_measurements(scene: Scene) -> None:
    settings, now = scene.cloud.settings, scene.cloud.clock.now()
    name = endpoint_name(settings.project, settings.region, scene.name)
    scene.cloud.serving_metrics.served(name, now - timedelta(minutes=1), now)


def run_as_account(scene: Scene) -> None:
    run_job(scene, "pass")


def read_run_table(scene: Scene) -> None:
    settings = scene.cloud.settings
    run_job(scene, READ.format(project=settings.project, dataset=settings.dataset, table=scene.run_table))


def write_shard(scene: Scene) -> None:
    run_job(scene, WRITE.format(bucket=scene.cloud.settings.bucket, name=f"roles/{scene.name}"))


def upload_model(scene: Scene) -> None:
    """A version of a model, whose folder Vertex AI looks at."""
    from google.cloud import aiplatform_v1

    settings = scene.cloud.settings
    folder = f"gs://{settings.bucket}/roles/model"
    scene.cloud.artifacts.overwrite(f"{folder}/saved_model.pb", b"x", "application/octet-stream")
    client = aiplatform_v1.ModelServiceClient(client_options=scene.cloud.session.client_options)
    model = {
        "display_name": scene.name,
        "artifact_uri": folder,
        "container_spec": PREBUILT,
    }
    parent = f"projects/{settings.project}/locations/{settings.region}"
    client.upload_model(request={"parent": parent, "model": model, "model_id": scene.name}).result(timeout=60)


def run_job(scene: Scene, code: str) -> None:
    """Run a line of Python as a job with the jobs' account; its lines are the error when it fails."""
    container = {"image_uri": scene.cloud.settings.trainer_image, "command": ["python", "-c", code]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    spec = {"worker_pool_specs": [pool], "scheduling": {"timeout": "60s"}, "service_account": JOBS_ACCOUNT}
    job = scene.cloud.jobs.create({"display_name": "roles", "job_spec": spec, "labels": {"owner": scene.name}})
    until = time.monotonic() + 90
    while job.active:
        assert time.monotonic() < until
        time.sleep(0.1)
        job = scene.cloud.jobs.get(job.name)
    if job.state != "JOB_STATE_SUCCEEDED":
        lines = scene.cloud.logs.read_new(job.job_id, Cursor())
        raise RuntimeError("\n".join(line.text for line in lines))


class Case(NamedTuple):
    """A role, the smallest thing that fails without it, and the permission that the failure names."""

    who: str
    role: str
    fails: str
    permission: str
    operation: Callable[[Scene], None]


CONNECTION, JOBS, AGENT = "the connection's account", "the jobs' account", "Vertex AI's service agent"
CASES = [
    Case(CONNECTION, "roles/aiplatform.user", "to look for a job", "aiplatform.customJobs.list", list_jobs),
    Case(CONNECTION, "roles/bigquery.jobUser", "any statement", "bigquery.jobs.create", run_query),
    Case(CONNECTION, "roles/bigquery.dataViewer", "to read a source", "bigquery.tables.getData", read_source),
    Case(CONNECTION, "roles/bigquery.dataEditor", "to make a run table", "bigquery.tables.create", make_run_table),
    Case(CONNECTION, "roles/storage.objectUser", "to write a document", "storage.objects.create", write_document),
    Case(CONNECTION, "roles/logging.viewer", "to read a job's lines", "logging.logEntries.list", read_lines),
    Case(
        CONNECTION,
        "roles/monitoring.viewer",
        "to read what an endpoint measured",
        "monitoring.timeSeries.list",
        read_measurements,
    ),
    Case(CONNECTION, "roles/iam.serviceAccountUser", "to start a job", "iam.serviceAccounts.actAs", run_as_account),
    Case(
        JOBS, "roles/bigquery.readSessionUser", "to open a read session", "bigquery.readsessions.create", read_run_table
    ),
    Case(JOBS, "roles/bigquery.dataViewer", "to read a run table", "bigquery.tables.getData", read_run_table),
    Case(JOBS, "roles/storage.objectUser", "to write a shard", "storage.objects.create", write_shard),
    Case(AGENT, "roles/aiplatform.serviceAgent", "to register a version", "storage.buckets.get", upload_model),
]
IN_THE_NIGHT = [
    (AGENT, "roles/bigquery.dataEditor", "to log requests", "bigquery.tables.updateData"),
    (AGENT, "roles/bigquery.readSessionUser", "to read what is scored in bulk", "bigquery.readsessions.create"),
    (AGENT, "roles/bigquery.jobUser", "to write answers in bulk", "bigquery.jobs.create"),
]


@pytest.fixture(scope="module")
def run_table(local_cloud: Any) -> str:
    """A run table, and a source."""
    client: bigquery.Client = make_source(
        local_cloud,
        SOURCE,
        f"CREATE OR REPLACE TABLE {TABLE} AS SELECT n FROM UNNEST([1, 2, 3]) AS n",
    )
    client.query_and_wait(f"CREATE OR REPLACE TABLE {local_cloud.dataset}.roles_run AS SELECT * FROM {TABLE}")
    return "roles_run"


@pytest.fixture
def roles(local_cloud: Any, run_table: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Roles]:
    """The documented roles, in force until the test ends."""
    monkeypatch.setenv("RETRAINING_SERVICE_ACCOUNT", JOBS_ACCOUNT)
    made = Roles(local_cloud)
    with made.in_force():
        yield made


@pytest.mark.parametrize("case", CASES, ids=[f"{case.role} of {case.who}" for case in CASES])
def test_one_role_less_fails_by_its_name(roles: Roles, run_table: str, case: Case) -> None:
    """With all documented roles the operation passes; without this one it names permission and account."""
    scene = Scene(Cloud(), run_table, f"r{uuid.uuid4().hex[:12]}")
    case.operation(scene)
    row = next(row for row in documented_roles() if (row.who, row.role) == (case.who, case.role))
    roles.grant(without=row)
    with pytest.raises(Exception, match=rf"{case.permission}.* for \S+gserviceaccount\.com") as refused:
        case.operation(scene._replace(name=f"r{uuid.uuid4().hex[:12]}"))
    assert case.role in str(refused.value)


def test_the_pages_have_what_was_tried() -> None:
    """Every documented role is taken away by a test, but for those that the page says were not tried; no other is."""
    tried = [(case.who, case.role, case.fails, f"`{case.permission}`") for case in CASES] + [
        (who, role, fails, f"`{permission}`") for who, role, fails, permission in IN_THE_NIGHT
    ]
    documented = [(row.who, row.role) for row in documented_roles() if row.role not in NOT_TRIED]
    assert sorted(row[:2] for row in tried) == sorted(documented)
    page = [tuple(row) for row in table_rows("docs/security.md", "## Roles, executed")]
    assert page == [(who, f"`{role}`", fails, permission) for who, role, fails, permission in tried]


def test_a_role_on_another_resource_is_none(roles: Roles, run_table: str) -> None:
    """The roles hold on the project's own bucket and datasets only."""
    cloud = Cloud()
    with pytest.raises(Exception, match=r"bigquery\.tables\.create.*datasets/roles_source"):
        cloud.warehouse.run_query(Query(sql=f"CREATE TABLE {SOURCE}.mine AS SELECT 1 AS n"), uuid.uuid4().hex, "roles")
    with pytest.raises(Exception, match=r"storage\.objects\.get.*buckets/another"):
        cloud.artifacts.read_object("gs://another/x.json")
    assert isinstance(documented_roles()[0], Role)
