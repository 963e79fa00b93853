"""The roles of docs/composer.md, executed: they are enough, and each one taken away fails by its name."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from google.cloud import bigquery

from retraining.core.data.sql import Query
from retraining.core.documents import TrainRequest
from retraining.core.errors import ContractError
from retraining.core.jobs.job import JobIdentity
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import storage as naming
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.vertex import endpoint_name
from retraining.hooks.cloud import Cloud
from retraining.hooks.logs import Cursor
from retraining.operators.jobs.reconcile import Reconciler
from tests.support.contracts import EXAMPLES
from tests.support.job_results import result_of
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.role_jobs import Scene, job_of, run_job
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
READ_OBJECT = "from google.cloud import storage; storage.Client().bucket('{bucket}').blob('{name}').download_as_bytes()"
WRITE = "from google.cloud import storage; storage.Client().bucket('{bucket}').blob('{name}').upload_from_string('x')"


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


def read_request(scene: Scene) -> None:
    uri = f"gs://{scene.cloud.settings.bucket}/roles/{scene.name}.json"
    scene.cloud.artifacts.write_once(uri, b"{}")
    run_job(scene, READ_OBJECT.format(bucket=scene.cloud.settings.bucket, name=f"roles/{scene.name}.json"))


def write_shard(scene: Scene) -> None:
    run_job(scene, WRITE.format(bucket=scene.cloud.settings.bucket, name=f"jobs/roles/{scene.name}"))


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


class Case(NamedTuple):
    """A role, the smallest thing that fails without it, and the permission that the failure names."""

    who: str
    role: str
    fails: str
    permission: str
    operation: Callable[[Scene], None]


ATTACK = """
from google.api_core.exceptions import Forbidden
from google.cloud import storage
bucket = storage.Client().bucket({bucket!r})
for name in {names!r}:
    try:
        bucket.blob(name).upload_from_string("forged")
    except Forbidden:
        continue
    print("WRITTEN", name)
    raise SystemExit(name)
for name in {own!r}:
    bucket.blob(name).upload_from_string("its own")
"""
VICTIM, ATTACKER = "roles_victim", "roles_attacker"
OWN_ACCOUNT = "attacker@local-project.iam.gserviceaccount.com"


FORGE_RESULT = """
import hashlib, json, sys
from google.api_core.exceptions import Forbidden
from google.cloud import storage
bucket = storage.Client().bucket({bucket!r})
request = bucket.blob({request!r})
content = request.download_as_bytes()
if {changes}:
    content = json.dumps(json.loads(content) | {changes}).encode()
    try:
        request.upload_from_string(content)
        sys.exit("WRITTEN")
    except Forbidden:
        pass  # its job goes on as if it had been allowed
report = {report} | dict(request_digest=hashlib.sha256(content).hexdigest())
bucket.blob({result!r}).upload_from_string(json.dumps(report))
"""
"""Leaves a report for a request; with changes for one that was rewritten first."""


def control_objects(bucket: str) -> list[str]:
    """Names of what decides about a model, and of what all models share."""
    key, at = "20131120t030000z-0123456789ab", datetime(2013, 11, 20, 3, tzinfo=UTC)
    run, monitor = naming.run_uri(bucket, VICTIM, key), naming.monitor_uri(bucket, VICTIM, at, "r")
    kinds = ("plan", "manifest", "report", "evaluation", "decision")
    requests = ("export_request", "train_request", "evaluate_request")
    uris = [
        *(naming.document_uri(run, kind) for kind in (*kinds, *requests, "registration", "deployment")),
        naming.document_uri(f"{naming.scores_uri(run)}/challenger", "score_request"),
        naming.document_uri(naming.tuning_uri(run, "search"), "train_request"),
        naming.document_uri(monitor, "multivariate_request"),
        naming.adoption_uri(naming.document_uri(run, "report")),
        naming.report_page_uri(run),
        naming.scores_document_uri(run, "champion"),
        naming.upload_claim_uri(run),
        f"{naming.submission_uri(run, 'train')}.sh",
        naming.document_uri(monitor, "ledger"),
        naming.document_uri(naming.rollback_uri(bucket, VICTIM, "20131120t030000z-01234567"), "rollback"),
        naming.document_uri(naming.scoring_uri(bucket, VICTIM, key), "scoring_plan"),
        naming.study_uri(bucket, VICTIM, key),
        naming.rollout_uri(bucket, VICTIM),
        naming.last_order_uri(bucket, VICTIM),
        naming.pause_uri(bucket, VICTIM),
        naming.model_overview_uri(bucket, VICTIM),
        naming.overview_uri(bucket),
        naming.models_page_uri(bucket),
        naming.owner_uri(bucket),
        naming.lease_uri(bucket, VICTIM, key),
        naming.claim_uri(bucket, "dag-run", "key"),
        naming.poke_uri(bucket, "key"),
        naming.destination_claim_uri(bucket, "p.d.t"),
        naming.notification_uri(bucket, VICTIM, "drift", "slot"),
        naming.document_uri(naming.garbage_collection_uri(bucket, at, "r"), "maintenance_plan"),
        f"gs://{bucket}/packages/trainer-1.tar.gz",
        *(f"{root}/0123456789abcdef/2013-11-20/{'0' * 32}/span.json" for root in spans_of_earlier_releases(bucket)),
    ]
    return [ObjectAddress.parse(uri).path for uri in uris]


def spans_of_earlier_releases(bucket: str) -> tuple[str, ...]:
    """Where runs of then still read."""
    return naming.spans_roots(bucket, bucket, VICTIM)[1:]


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
    Case(JOBS, "roles/storage.objectViewer", "to read a request", "storage.objects.get", read_request),
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


def test_a_job_cannot_write_what_decides_about_a_model(roles: Roles, run_table: str) -> None:
    """Its own account and its own code: every kind of control object is refused, its results are written."""
    cloud = Cloud()
    bucket = cloud.settings.bucket
    own = [f"jobs/{ATTACKER}/runs/{uuid.uuid4().hex}/report.json"]
    code = ATTACK.format(bucket=bucket, names=control_objects(bucket), own=own)
    run_job(Scene(cloud, run_table, f"r{uuid.uuid4().hex[:12]}"), code)
    assert cloud.artifacts.read_object(f"gs://{bucket}/{own[0]}") == b"its own"
    assert cloud.artifacts.read_object(naming.rollout_uri(bucket, VICTIM)) is None


def test_a_model_with_an_account_of_its_own_writes_no_other_models_results(roles: Roles, run_table: str) -> None:
    """Nor may it do with the shared account what that may; of its own folder it may write all."""
    cloud = Cloud()
    bucket, unique = cloud.settings.bucket, uuid.uuid4().hex
    roles.grant(accounts={ATTACKER: OWN_ACCOUNT})
    theirs = naming.run_results_uri(bucket, VICTIM, unique)
    names = [
        ObjectAddress.parse(uri).path
        for uri in (
            naming.document_uri(theirs, "report"),
            naming.model_file_uri(naming.model_uri(naming.training_uri(theirs))),
            naming.checkpoints_uri(naming.training_uri(theirs)),
            f"{naming.spans_roots(bucket, bucket, VICTIM)[0]}/0123456789abcdef/2013-11-20/{'0' * 32}/span.json",
            f"{naming.results_root(bucket, f'{ATTACKER}_too')}/report.json",
        )
    ]
    own = [f"jobs/{ATTACKER}/runs/{unique}/report.json"]
    code = ATTACK.format(bucket=bucket, names=[*names, *control_objects(bucket)], own=own)
    run_job(Scene(cloud, run_table, f"r{uuid.uuid4().hex[:12]}"), code, OWN_ACCOUNT)
    assert cloud.artifacts.read_object(f"gs://{bucket}/{own[0]}") == b"its own"
    with pytest.raises(RuntimeError, match=f"WRITTEN {names[0]}"):  # what a shared account still allows
        run_job(Scene(cloud, run_table, f"r{uuid.uuid4().hex[:12]}"), code)


class AskedTraining:
    """A task that wants a training of the victim's, whose job runs what a test says.

    Args:
        scene: With the cloud.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene, self._bucket = scene, scene.cloud.settings.bucket
        unique = f"{uuid.uuid4().int % 10**8:08d}t030000z-{uuid.uuid4().hex[:12]}"
        run, results = (
            naming.run_uri(self._bucket, VICTIM, unique),
            naming.run_results_uri(self._bucket, VICTIM, unique),
        )
        names = {"model": VICTIM, "run_key": unique, "report_uri": naming.document_uri(results, "report")}
        names["model_uri"] = naming.model_uri(naming.training_uri(results))
        asked = json.loads((EXAMPLES / "train_request__wide_deep.json").read_bytes()) | names
        self.request = TrainRequest.parse(json.dumps(asked))
        self.request_uri, self.stored_uri = (naming.document_uri(run, kind) for kind in ("train_request", "report"))

    def forgery(self, **changes: Any) -> str:
        """The code of a job that leaves a report of this very run; with changes after it has rewritten the request."""
        _, report = result_of(self.request.to_bytes())
        return FORGE_RESULT.format(
            bucket=self._bucket,
            request=ObjectAddress.parse(self.request_uri).path,
            result=ObjectAddress.parse(self.request.report_uri).path,
            report=f"json.loads({json.dumps(report)!r})",
            changes=changes,
        )

    def run(self, code: str) -> None:
        """Poll until the job's result was taken over, or was refused."""
        wanted = JobRequest(
            request=self.request,
            request_uri=self.request_uri,
            result_uri=self.request.report_uri,
            adopted_uri=self.stored_uri,
            result_kind="report",
            custom_job=job_of(self._scene, code),
            retries=0,
        )
        labels = {name: uuid.uuid4().hex for name in ("key", "owner", "dag_run")}
        identity = JobIdentity(**labels, generation=0, retries=0, try_number=1)
        until = time.monotonic() + 90
        while Reconciler(self._scene.cloud, wanted, identity, lambda _: None).poll_job() is None:
            assert time.monotonic() < until


@pytest.fixture
def asked_training(roles: Roles, run_table: str) -> AskedTraining:
    """With the documented roles in force."""
    return AskedTraining(Scene(Cloud(), run_table, f"r{uuid.uuid4().hex[:12]}"))


def test_a_job_that_rewrites_its_own_request_is_not_believed(asked_training: AskedTraining) -> None:
    """It may not; a result for what it would have been asked is refused, one for what is stored is taken."""
    artifacts = Cloud().artifacts
    with pytest.raises(ContractError, match="the result of another request, whose SHA-256 is") as refused:
        asked_training.run(asked_training.forgery(seed=99))
    assert asked_training.request.digest() in str(refused.value)
    assert artifacts.read_object(asked_training.request_uri) == asked_training.request.to_bytes()
    assert artifacts.read_object(asked_training.stored_uri) is None
    artifacts.overwrite(asked_training.request.report_uri, b"{}", "application/json")
    asked_training.run(asked_training.forgery())
    stored = json.loads(artifacts.read_object(asked_training.stored_uri) or b"{}")
    assert stored["request_digest"] == asked_training.request.digest()


def test_who_shares_the_account_can_still_forge_a_result(
    roles: Roles, run_table: str, asked_training: AskedTraining
) -> None:
    """It can read the request, so it knows the digest; an account of a model of its own cannot write there."""
    roles.grant(accounts={ATTACKER: OWN_ACCOUNT})
    cloud = Cloud()
    cloud.artifacts.write_once(asked_training.request_uri, asked_training.request.to_bytes())
    code = asked_training.forgery()
    with pytest.raises(RuntimeError, match=r"storage\.objects\.create"):
        run_job(Scene(cloud, run_table, f"r{uuid.uuid4().hex[:12]}"), code, OWN_ACCOUNT)
    assert cloud.artifacts.read_object(asked_training.request.report_uri) is None
    run_job(Scene(cloud, run_table, f"r{uuid.uuid4().hex[:12]}"), code)
    asked_training.run("pass")  # the victim's own job finds a result there
    assert cloud.artifacts.read_object(asked_training.stored_uri)


def test_the_pages_have_what_was_tried() -> None:
    """Every documented role is taken away by a test, but for those that the page says were not tried; no other is."""
    tried = [(case.who, case.role, case.fails, f"`{case.permission}`") for case in CASES] + [
        (who, role, fails, f"`{permission}`") for who, role, fails, permission in IN_THE_NIGHT
    ]
    documented = {(row.who, row.role) for row in documented_roles() if row.role not in NOT_TRIED}
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
