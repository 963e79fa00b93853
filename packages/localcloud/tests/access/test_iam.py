"""The IAM table of the local cloud, seen through Google's clients: who may do what, and how each service refuses."""

from __future__ import annotations

import uuid

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1, bigquery, bigquery_storage_v1, storage
from google.cloud.bigquery_storage_v1 import types

from localcloud.access import iam
from localcloud.access.bearer import Bearers
from localcloud.access.iam import Iam, TableError, check_table
from localcloud.gateway.services import concerned
from localcloud.projects import Projects
from localcloud.state import State
from localcloud.storage.calls import Call, Listing, Source

OWN = "local-cloud@local-project.iam.gserviceaccount.com"
PROJECT = "projects/local-project"


ON_BUCKET = {"principal": OWN, "role": "roles/storage.objectUser", "resource": "buckets/local-retraining"}
OBJECTS = "resource.name.startsWith('projects/_/buckets/{}/objects/{}')"


@pytest.fixture
def grant(local_cloud):
    """Puts a table in force for one test: pairs of role and resource for the caller's own account."""
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"

    def put(*pairs):
        bindings = [{"principal": OWN, "role": role, "resource": resource} for role, resource in pairs]
        answer = local_cloud.http.post(url, json={"bindings": bindings}, timeout=30)
        assert answer.status_code == 200, answer.text

    yield put
    assert local_cloud.http.delete(url, timeout=30).status_code == 200


@pytest.fixture(scope="module")
def table(local_cloud):
    """`permitted.numbers`, of ten rows."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("permitted", exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE permitted.numbers AS SELECT n FROM UNNEST(GENERATE_ARRAY(0, 9)) AS n"
    )
    return client


def test_without_a_table_everybody_may_all(local_cloud, grant):
    """And with an empty one nobody may anything; taking it back is for everybody."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    assert list(bucket.list_blobs(prefix="none/")) == []
    grant()
    with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.list.*buckets/local-retraining.*local-cloud@"):
        list(bucket.list_blobs(prefix="none/"))
    grant(("roles/storage.objectUser", PROJECT))
    assert list(bucket.list_blobs(prefix="none/")) == []


def test_storage(local_cloud, grant):
    """Objects and buckets are different permissions; parts of a batch are asked one by one."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    name = f"iam/{uuid.uuid4().hex}"
    grant(("roles/storage.objectUser", f"buckets/{local_cloud.bucket}"))
    bucket.blob(name).upload_from_string(b"x")
    bucket.blob(f"{name}-large").upload_from_string(b"x" * 9_000_000)  # a resumable upload
    assert bucket.blob(name).download_as_bytes() == b"x"
    bucket.copy_blob(bucket.blob(name), bucket, f"{name}-copy")
    with pytest.raises(exceptions.Forbidden, match=r"Permission 'storage\.buckets\.get'"):
        bucket.exists()
    with pytest.raises(exceptions.Forbidden, match=r"no row for storage\.buckets\.list"):
        list(storage.Client(project=local_cloud.project).list_buckets())
    with pytest.raises(exceptions.Forbidden, match=r"buckets/another"):
        storage.Client(project=local_cloud.project).bucket("another").blob("x").download_as_bytes()
    grant(("roles/aiplatform.serviceAgent", f"buckets/{local_cloud.bucket}"))
    with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.delete"), bucket.client.batch():
        bucket.blob(name).delete()
    assert bucket.exists()


def test_a_condition_by_objects_names(local_cloud, grant):
    """Only objects that begin so, by whichever kind of upload; not the bucket, of which a list is asked."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    unique, url = uuid.uuid4().hex, f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"
    grant(("roles/storage.objectUser", f"buckets/{local_cloud.bucket}"))
    bucket.blob(f"theirs/{unique}").upload_from_string(b"x")
    condition = {"expression": OBJECTS.format(local_cloud.bucket, "jobs/late/")}
    viewer = {**ON_BUCKET, "role": "roles/storage.objectViewer"}
    bindings = [{**ON_BUCKET, "condition": condition}]
    assert local_cloud.http.post(url, json={"bindings": bindings}, timeout=30).status_code == 200
    own = bucket.blob(f"jobs/late/{unique}")
    own.upload_from_string(b"x")
    own.upload_from_string(b"x" * 9_000_000)  # a resumable upload
    assert own.download_as_bytes(start=0, end=1) == b"xx"
    with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.list"):
        list(bucket.list_blobs(prefix="jobs/late/"))
    with pytest.raises(exceptions.Forbidden, match=rf"storage\.objects\.get.*objects/theirs/{unique}"):
        bucket.blob(f"theirs/{unique}").download_as_bytes()
    assert local_cloud.http.post(url, json={"bindings": [*bindings, viewer]}, timeout=30).status_code == 200
    assert bucket.blob(f"theirs/{unique}").download_as_bytes() == b"x"
    assert [blob.name for blob in bucket.list_blobs(prefix=f"jobs/late/{unique}")] == [own.name]
    for name in (f"theirs/{unique}", f"jobs/later/{unique}", f"jobs/late{unique}", "environment.txt"):
        for data in (b"x", b"x" * 9_000_000):
            with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.create"):
                bucket.blob(name).upload_from_string(data)
        with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.delete"):
            bucket.blob(name).delete()
        with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.create"):
            bucket.copy_blob(own, bucket, name)
        with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.create"):
            bucket.blob(name).compose([own])
    own.delete()


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        ("SELECT 1 AS one", None),
        ("SELECT * FROM permitted.numbers", "bigquery.tables.getData"),
        (
            "WITH some AS (SELECT * FROM `local-project.permitted.numbers`) SELECT * FROM some",
            "bigquery.tables.getData",
        ),
        ("CREATE TABLE permitted.more AS SELECT 1 AS n", "bigquery.tables.create"),
        ("INSERT INTO permitted.numbers (n) VALUES (1)", "bigquery.tables.updateData"),
        ("DELETE FROM permitted.numbers WHERE n = 1", "bigquery.tables.updateData"),
        ("DROP TABLE permitted.numbers", "bigquery.tables.delete"),
        ("CREATE SCHEMA permitted_too", "bigquery.datasets.create"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_statement_is_read_before_it_runs(table, grant, sql, missing, dry_run):
    """Whoever may only start queries reads and writes no table, whatever the statement's form."""
    grant(("roles/bigquery.jobUser", PROJECT))
    config = bigquery.QueryJobConfig(dry_run=dry_run, use_query_cache=False)
    if missing is None:
        table.query(sql, job_config=config).result()
        return
    with pytest.raises(exceptions.Forbidden, match=rf"'{missing}' denied on resource '{PROJECT}") as refused:
        table.query(sql, job_config=config, retry=None, job_retry=None)
    assert refused.value.errors[0]["reason"] == "accessDenied"


def test_bigquery_by_dataset(table, grant):
    """A role on a dataset is a role on its tables, and on nothing else."""
    grant(("roles/bigquery.jobUser", PROJECT), ("roles/bigquery.dataViewer", f"{PROJECT}/datasets/permitted"))
    assert len(list(table.query("SELECT * FROM permitted.numbers").result())) == 10
    assert len(list(table.query_and_wait("SELECT * FROM permitted.numbers"))) == 10
    assert table.get_table("permitted.numbers").num_rows == 10
    assert len(list(table.list_rows("permitted.numbers"))) == 10
    with pytest.raises(exceptions.Forbidden, match=r"datasets/other/tables/numbers"):
        table.query("SELECT * FROM other.numbers", retry=None, job_retry=None)
    with pytest.raises(exceptions.Forbidden, match=r"no row for bigquery\.datasets\.list"):
        list(table.list_datasets(retry=None))


def test_the_storage_read_api(table, grant):
    """A session needs the session's role and the table's."""
    reader = bigquery_storage_v1.BigQueryReadClient()
    wanted = types.ReadSession(table=f"{PROJECT}/datasets/permitted/tables/numbers", data_format=types.DataFormat.ARROW)

    def read():
        session = reader.create_read_session(parent=PROJECT, read_session=wanted, max_stream_count=1)
        return sum(page.num_items for page in reader.read_rows(session.streams[0].name).rows(session).pages)

    session_role = ("roles/bigquery.readSessionUser", PROJECT)
    grant(("roles/bigquery.dataViewer", PROJECT))
    with pytest.raises(exceptions.PermissionDenied, match=r"bigquery\.readsessions\.create.*local-cloud@"):
        read()
    grant(session_role)
    with pytest.raises(exceptions.PermissionDenied, match=r"bigquery\.tables\.getData.*datasets/permitted"):
        read()
    grant(session_role, ("roles/bigquery.dataViewer", f"{PROJECT}/datasets/permitted"))
    assert read() == 10


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_vertex_ai(local_cloud, grant, transport):
    """Over both of its ports; a method that the table has no row for is refused by name."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    jobs = aiplatform_v1.JobServiceClient(transport=transport, client_options=options)
    parent = f"{PROJECT}/locations/{local_cloud.region}"
    grant()
    with pytest.raises(exceptions.Forbidden, match=r"aiplatform\.customJobs\.list.*roles/aiplatform\.user"):
        jobs.list_custom_jobs(parent=parent)
    grant(("roles/aiplatform.user", PROJECT))
    jobs.list_custom_jobs(parent=parent)
    studies = aiplatform_v1.VizierServiceClient(transport=transport, client_options=options)
    with pytest.raises(exceptions.Forbidden, match=r"no row for VizierService\.ListStudies"):
        studies.list_studies(parent=parent)


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_experiments(local_cloud, grant, transport):
    """Who may use Vertex AI may track runs, and who may not is told of the permission."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    metadata = aiplatform_v1.MetadataServiceClient(transport=transport, client_options=options)
    store = f"{PROJECT}/locations/{local_cloud.region}/metadataStores/permitted-{transport}"
    request = {"parent": store.partition("/metadataStores")[0], "metadata_store": aiplatform_v1.MetadataStore()}
    request["metadata_store_id"] = store.rsplit("/", 1)[1]
    grant()
    with pytest.raises(exceptions.Forbidden, match=r"aiplatform\.metadataStores\.create.*roles/aiplatform\.user"):
        metadata.create_metadata_store(request)
    grant(("roles/aiplatform.user", PROJECT))
    metadata.create_metadata_store(request).result(timeout=30)
    context = metadata.create_context(
        parent=store, context={"schema_title": "system.Experiment"}, context_id="permitted"
    )
    assert [each.name for each in metadata.list_contexts(parent=store)] == [context.name]


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_tensorboards(local_cloud, grant, transport):
    """Who may use Vertex AI may draw curves."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    boards = aiplatform_v1.TensorboardServiceClient(transport=transport, client_options=options)
    parent = f"{PROJECT}/locations/{local_cloud.region}"
    board = aiplatform_v1.Tensorboard(display_name="permitted")
    grant()
    with pytest.raises(exceptions.Forbidden, match=r"aiplatform\.tensorboards\.create.*roles/aiplatform\.user"):
        boards.create_tensorboard(parent=parent, tensorboard=board)
    grant(("roles/aiplatform.user", PROJECT))
    name = boards.create_tensorboard(parent=parent, tensorboard=board).result(timeout=30).name
    assert boards.create_tensorboard_experiment(parent=name, tensorboard_experiment_id="permitted").name


def test_logging_and_identity(local_cloud, grant):
    """Their REST addresses."""
    body = {"resourceNames": [PROJECT]}
    entries, project = (
        "https://logging.googleapis.com/v2/entries:list",
        "https://cloudresourcemanager.googleapis.com/v1/projects/local-project",
    )
    token = f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{OWN}:generateAccessToken"
    grant()
    for answer, missing in (
        (local_cloud.http.post(entries, json=body, timeout=30), "logging.logEntries.list"),
        (local_cloud.http.get(project, timeout=30), "resourcemanager.projects.get"),
        (local_cloud.http.post(token, json={}, timeout=30), "iamcredentials.generateAccessToken"),
    ):
        assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
        assert missing in answer.json()["error"]["message"]
    grant(("roles/logging.viewer", PROJECT))
    assert local_cloud.http.post(entries, json=body, timeout=30).status_code == 200
    assert local_cloud.http.get(project, timeout=30).status_code == 200


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"bindings": {}},
        {"bindings": [{"principal": OWN}]},
        {"bindings": [{"principal": OWN, "role": "roles/owner", "resource": PROJECT}]},
        {"bindings": [{"principal": OWN, "role": "roles/bigquery.jobUser", "resource": "everything"}]},
        {"bindings": [{**ON_BUCKET, "condition": {"expression": "request.time < timestamp('2030-01-01')"}}]},
        {"bindings": [{**ON_BUCKET, "condition": {"expression": OBJECTS.format("another", "jobs/")}}]},
        {"bindings": [{**ON_BUCKET, "condition": "jobs/"}]},
    ],
)
def test_what_is_no_table_is_refused(local_cloud, document):
    """By name, and nothing is in force after it."""
    with pytest.raises(TableError, match=r"^iam: .*[Ee]xpected"):
        check_table(document)
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"
    assert local_cloud.http.post(url, json=document, timeout=30).status_code == 400
    assert local_cloud.http.get(url, timeout=30).json() == {}


def test_routines_want_permissions_of_their_own(local_cloud, grant):
    """Who may read a dataset makes, changes and deletes no functions in it."""
    client = bigquery.Client(project=local_cloud.project)
    dataset = client.create_dataset("routines_permitted", exists_ok=True)
    where = f"{PROJECT}/datasets/{dataset.dataset_id}"
    whole = bigquery.StandardSqlDataType(bigquery.StandardSqlTypeNames.INT64)
    routine = bigquery.Routine(
        dataset.routine(f"r{uuid.uuid4().hex}"), type_="SCALAR_FUNCTION", language="SQL", body="1", return_type=whole
    )
    grant(("roles/bigquery.dataViewer", where))
    with pytest.raises(exceptions.Forbidden, match=r"bigquery\.routines\.create"):
        client.create_routine(routine, retry=None)
    grant(("roles/bigquery.dataEditor", where))
    client.create_routine(routine, retry=None)
    grant(("roles/bigquery.dataViewer", where))
    assert client.get_routine(routine.reference, retry=None).body == "1"
    for ask in (
        lambda: client.update_routine(routine, ["body", "type_", "language", "return_type"], retry=None),
        lambda: client.delete_routine(routine.reference, retry=None),
    ):
        with pytest.raises(exceptions.Forbidden, match=r"bigquery\.routines\."):
            ask()
    grant()
    with pytest.raises(exceptions.Forbidden, match=r"bigquery\.routines\.get"):
        client.get_routine(routine.reference, retry=None)


def test_a_library_of_a_function_is_no_way_to_an_object(local_cloud, grant):
    """Whoever may do all in BigQuery, and nothing in Cloud Storage, reads none by it; without a table everybody may."""
    client = bigquery.Client(project=local_cloud.project)
    dataset = client.create_dataset("libraries_permitted", exists_ok=True)
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(f"tests/{uuid.uuid4().hex}.js")
    blob.upload_from_string("function secret() { return 'read'; }")
    uri = f"gs://{blob.bucket.name}/{blob.name}"
    of_statement = (
        f"CREATE TEMP FUNCTION f() RETURNS STRING LANGUAGE js OPTIONS (library='{uri}') AS 'return secret()';"
    )
    name = f"f{uuid.uuid4().hex}"
    kept = of_statement.replace("TEMP FUNCTION f", f"FUNCTION {dataset.dataset_id}.{name}")
    text = bigquery.StandardSqlDataType(bigquery.StandardSqlTypeNames.STRING)
    routine = bigquery.Routine(dataset.routine(f"{name}_routine"), type_="SCALAR_FUNCTION", language="JAVASCRIPT")
    routine.body, routine.return_type = "return 'own'", text
    made = client.create_routine(routine)
    made.imported_libraries = routine.imported_libraries = [uri]
    changed = ["imported_libraries", "body", "type_", "language", "return_type"]
    assert [row[0] for row in client.query_and_wait(f"{of_statement} SELECT f()")] == ["read"]
    everything = ("roles/bigquery.dataEditor", "roles/bigquery.jobUser")
    grant(*((role, PROJECT) for role in everything))
    for ask in (
        lambda: client.query_and_wait(f"{of_statement} SELECT f()", retry=None, job_retry=None),
        lambda: client.query_and_wait(kept, retry=None, job_retry=None),
        lambda: client.create_routine(routine, retry=None),
        lambda: client.update_routine(made, changed, retry=None),
    ):
        with pytest.raises(exceptions.Forbidden, match="no row for libraries"):
            ask()
    made.imported_libraries, made.body = [], "return 'changed'"
    assert client.update_routine(made, changed, retry=None).body == "return 'changed'"


@pytest.mark.parametrize(
    "view",
    [
        "`region-us`.INFORMATION_SCHEMA.JOBS",
        "`local-project.region-us.INFORMATION_SCHEMA.JOBS_BY_PROJECT`",
        "`local-project`.`region-us`.information_schema.jobs",
    ],
)
def test_what_others_asked_is_not_told_to_who_may_read_tables(local_cloud, grant, view):
    client = bigquery.Client(project=local_cloud.project)
    sql = f"SELECT query FROM {view} LIMIT 1"
    client.query_and_wait(sql, retry=None, job_retry=None)
    grant(("roles/bigquery.dataViewer", PROJECT), ("roles/bigquery.jobUser", PROJECT))
    with pytest.raises(exceptions.Forbidden, match="no row for views of jobs"):
        client.query_and_wait(sql, retry=None, job_retry=None)


@pytest.mark.parametrize("view", ["TABLES", "COLUMN_FIELD_PATHS", "SCHEMATA"])
def test_views_of_all_datasets_want_permissions_on_all(local_cloud, grant, view):
    """Names and columns of what a caller may not read are not told."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("described_to_few", exists_ok=True)
    user = ("roles/bigquery.jobUser", PROJECT)
    paths = (
        f"INFORMATION_SCHEMA.{view}",
        f"`region-us`.INFORMATION_SCHEMA.{view}",
        f"`{client.project}`.INFORMATION_SCHEMA.{view}",
    )
    for more in ((), (("roles/bigquery.dataViewer", f"{PROJECT}/datasets/described_to_few"),)):
        grant(user, *more)
        for path in paths:
            with pytest.raises(exceptions.Forbidden, match=r"bigquery\.tables\.getData"):
                client.query_and_wait(f"SELECT * FROM {path}", retry=None, job_retry=None)
    grant(user, ("roles/bigquery.dataViewer", PROJECT))
    for path in paths:
        client.query_and_wait(f"SELECT * FROM {path}", retry=None, job_retry=None)


def test_where_a_dataset_is_is_not_told_to_who_may_not_read_it(local_cloud, grant):
    """Of a job in another location: what is forbidden comes before what is not found."""
    client = bigquery.Client(project=local_cloud.project)
    dataset = bigquery.Dataset(f"{client.project}.placed_for_few")
    dataset.location = "EU"
    client.create_dataset(dataset, exists_ok=True)
    grant(("roles/bigquery.jobUser", PROJECT))
    with pytest.raises(exceptions.Forbidden):
        client.query("SELECT 1 FROM placed_for_few.t", location="US", retry=None, job_retry=None)


def test_every_permission_of_a_method_is_in_some_role_or_nobodys():
    """A row that no role can meet would be a misspelt one; no documented role makes datasets, or says who sees rows."""
    granted = {permission for permissions in iam.roles().values() for permission in permissions}
    needed = {permission for row in iam.methods().values() for permission in row}
    policies = {f"bigquery.rowAccessPolicies.{verb}" for verb in ("create", "delete", "list", "setIamPolicy", "update")}
    assert needed - granted == {"bigquery.datasets.create", *policies}


@pytest.mark.parametrize(
    ("name", "method", "permitted"),
    [
        ("jobs/late/report.json", "storage.objects.insert", True),
        ("jobs/late/report.json", "storage.objects.delete", True),
        ("jobs/later/report.json", "storage.objects.insert", False),
        ("jobs/late", "storage.objects.insert", False),
        ("late/rollout.json", "storage.objects.insert", False),
        ("x/jobs/late/report.json", "storage.objects.insert", False),
        ("", "storage.objects.list", False),
        ("", "storage.objects.insert", False),
    ],
)
def test_a_condition_is_the_beginning_of_a_name(tmp_path, name, method, permitted):
    """In another bucket of the same names it is none."""
    table = Iam(State(tmp_path), Projects(["local-project"]))
    condition = {"expression": OBJECTS.format("local-retraining", "jobs/late/")}
    table.put({"bindings": [{**ON_BUCKET, "condition": condition}]})
    for bucket, expected in (("local-retraining", permitted), ("another", False)):
        concerned = {"bucket": [iam.object_resource(bucket, name)]}
        if expected:
            table.check(OWN, method, concerned)
        else:
            with pytest.raises(iam.DeniedError, match=rf"buckets/{bucket}"):
                table.check(OWN, method, concerned)


@pytest.mark.parametrize(
    ("call", "written", "read"),
    [
        (Call(method="storage.objects.insert", bucket="b", name="jobs/x"), ["b/objects/jobs/x"], []),
        (Call(method="storage.objects.insert", bucket="b", name="jobs/x", upload="start"), ["b/objects/jobs/x"], []),
        (Call(method="storage.objects.insert", bucket="b", name="jobs/x", upload="session"), [], []),
        (Call(method="storage.objects.list", bucket="b", listing=Listing(prefix="jobs/")), ["b"], []),
        (Call(method="storage.buckets.get", bucket="b"), ["b"], []),
        (
            Call(method="storage.objects.rewrite", bucket="b", name="x", sources=(Source(bucket="b", name="jobs/x"),)),
            ["b/objects/x"],
            ["b/objects/jobs/x"],
        ),
        (
            Call(method="storage.objects.compose", bucket="b", name="x", sources=(Source(bucket="b", name="y"),)),
            ["b/objects/x"],
            ["b/objects/y"],
        ),
    ],
)
def test_what_a_call_of_storage_concerns(call, written, read):
    """The object that is written and those that are read; of a list the bucket, of an upload's piece nothing."""
    found = concerned(call)
    assert found["bucket"] == [f"buckets/{name}" for name in written]
    assert found["source"] == [f"buckets/{name}" for name in read]


def test_a_table_holds_over_a_restart(tmp_path):
    """It is a file that every server looks at."""
    state = State(tmp_path)
    Bearers(state)
    first, second = (Iam(state, Projects(["local-project"])) for _ in range(2))
    assert not second.in_force()
    first.put({"bindings": [{"principal": OWN, "role": "roles/logging.viewer", "resource": PROJECT}]})
    second.check(OWN, "LoggingServiceV2.ListLogs", {"project": [PROJECT]})
    with pytest.raises(iam.DeniedError, match=r"logging\.logs\.list"):
        second.check("another@x.iam.gserviceaccount.com", "LoggingServiceV2.ListLogs", {"project": [PROJECT]})
    first.delete()
    assert not second.in_force()


@pytest.mark.parametrize("page", ["iam", "faults", "clock", "faults/1", "%69am"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_the_rules_are_the_owners(local_cloud, page, method):
    """A job's account changes neither the table nor faults nor the clock, and cannot become the account that may."""
    token = Bearers(State(local_cloud.state_path)).issue("trainer@local-project.iam.gserviceaccount.com")
    session = {"Authorization": f"Bearer {token}"}
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/{page}"
    body = {"bindings": [], "target": "*", "action": {"kind": "error"}, "now": "2013-11-20T03:00:00Z"}
    answer = local_cloud.http.request(method, url, json=body, headers=session, timeout=10)
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert "localcloud token" in answer.json()["error"]["message"]


@pytest.mark.parametrize("verb", ["generateAccessToken", "generateIdToken", "signBlob", "signJwt"])
def test_nobody_acts_as_the_owner(local_cloud, verb):
    """Neither by a token nor by a signature; other accounts are impersonated as before."""
    token = Bearers(State(local_cloud.state_path)).issue("trainer@local-project.iam.gserviceaccount.com")
    base = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts"
    for spelling in (OWN, OWN.replace("@", "%40")):
        answer = local_cloud.http.post(
            f"{base}/{spelling}:{verb}",
            json={"payload": "YQ=="},
            headers={"Authorization": f"Bearer {token}"},
            timeout=10,
        )
        assert answer.status_code == 403, answer.text
