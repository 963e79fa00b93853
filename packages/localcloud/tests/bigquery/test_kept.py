"""No option is dropped: what is kept comes back, what is held has its effect, the rest is refused by name."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

from localcloud.bigquery.files import extracts, loads
from localcloud.bigquery.patches.inserted_rows import InsertIds
from localcloud.fields import Fate, read_fields
from packages.localcloud.tests.google_fields import Discovery, document_of, value_at
from packages.localcloud.tests.test_fields import SOURCE

GOOGLE = Discovery("bigquery.v2")
FIELDS = read_fields(SOURCE / "bigquery" / "fields.json")
API = "https://bigquery.googleapis.com/bigquery/v2/projects/local-project"
OWN_VALUES = {
    "view.query": "SELECT 1 AS x",
    "timePartitioning.type": "DAY",
    "timePartitioning.field": "day",
    "clustering.fields": ["a"],
    "access[].role": "READER",
    "maxTimeTravelHours": "48",
}
COLUMNS = [{"name": "a", "type": "STRING"}, {"name": "day", "type": "DATE"}]
NEEDED = {"timePartitioning": {"type": "DAY"}, "access": [{"role": "READER", "userByEmail": "a@example.com"}]}


def paths(resource: str, *fates: Fate) -> list[str]:
    """Return the fields of a resource that have no fields of their own, by their fates."""
    table = FIELDS.resources[resource]
    every = [path for path in table.rules if table.rules[path].fate in fates and not path.endswith("**")]
    return [path for path in every if not any(other.startswith((f"{path}.", f"{path}[")) for other in table.rules)]


def value_of(resource: str, path: str):
    """Return a value for a field."""
    schemas = dict(GOOGLE.fields(resource, FIELDS.resources[resource]))
    return OWN_VALUES.get(path) or GOOGLE.value(schemas[path])


def with_needed(given: dict) -> dict:
    """Return a document with what its fields need beside them."""
    needed = NEEDED.get(next(iter(given)))
    if isinstance(needed, dict):
        return {name: {**needed, **value} for name, value in given.items()}
    return {name: [{**needed[0], **value[0]}] for name, value in given.items()} if needed else given


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


@pytest.fixture(scope="module")
def dataset(client) -> str:
    """A dataset of these tests."""
    return client.create_dataset(f"kept_{uuid.uuid4().hex[:8]}").dataset_id


def table_body(dataset: str, **fields) -> dict:
    """Return a new table's body."""
    where = {"datasetId": dataset, "tableId": f"t_{uuid.uuid4().hex[:8]}"}
    return {"tableReference": where, "schema": {"fields": COLUMNS}, **fields}


@pytest.mark.parametrize("path", [path for path in paths("Dataset", Fate.KEPT) if path.count(".") < 2])
def test_a_field_of_a_dataset_comes_back(local_cloud, path):
    """Of one that is made with it."""
    given = with_needed(document_of(path, value_of("Dataset", path)))
    name = f"kept_{uuid.uuid4().hex[:8]}"
    made = local_cloud.http.post(f"{API}/datasets", json={"datasetReference": {"datasetId": name}, **given}, timeout=20)
    assert made.status_code == 200, made.text
    assert value_at(local_cloud.http.get(f"{API}/datasets/{name}", timeout=20).json(), path) == value_at(given, path)


@pytest.mark.parametrize("path", paths("Table", Fate.KEPT))
def test_a_field_of_a_table_comes_back(local_cloud, dataset, path):
    """Of one that is made with it, and of one that is patched otherwise afterwards."""
    given = with_needed(document_of(path, value_of("Table", path)))
    body = table_body(dataset, **given)
    assert local_cloud.http.post(f"{API}/datasets/{dataset}/tables", json=body, timeout=20).status_code == 200
    url = f"{API}/datasets/{dataset}/tables/{body['tableReference']['tableId']}"
    assert value_at(local_cloud.http.get(url, timeout=20).json(), path) == value_at(given, path)
    other = {"friendlyName": "x"} if path != "friendlyName" else {"description": "x"}
    assert value_at(local_cloud.http.patch(url, json=other, timeout=20).json(), path) == value_at(given, path)


@pytest.mark.parametrize(
    ("resource", "path"),
    [(resource, path) for resource in FIELDS.resources for path in paths(resource, Fate.REFUSED)],
)
def test_a_refused_field_is_named(local_cloud, dataset, resource, path):
    """With 501, and the rest of the request is not done."""
    given = document_of(path, value_of(resource, path))
    name = f"t_{uuid.uuid4().hex[:8]}"
    where, body = {
        "Dataset": ("datasets", {"datasetReference": {"datasetId": name}, **given}),
        "Table": (f"datasets/{dataset}/tables", {**table_body(dataset), **given}),
        "TableFieldSchema": (
            f"datasets/{dataset}/tables",
            {**table_body(dataset), "schema": {"fields": [{"name": "a", "type": "STRING", **given}]}},
        ),
        "TableDataInsertAllRequest": (f"datasets/{dataset}/tables/any/insertAll", {"rows": [], **given}),
        "QueryRequest": ("queries", {"query": "SELECT 1", "useLegacySql": False, **given}),
        "Job": ("jobs", given),
    }[resource]
    answer = local_cloud.http.post(f"{API}/{where}", json=body, timeout=20)
    named = path if resource != "TableFieldSchema" else f"fields[a].{path}"
    assert (answer.status_code, f"{named} " in answer.json()["error"]["message"]) == (501, True), answer.text


def test_what_is_unknown_is_named(local_cloud, dataset):
    """A field, a parameter, and one in another case."""
    url = f"{API}/datasets/{dataset}/tables"
    answer = local_cloud.http.post(url, json=table_body(dataset, Labels={"a": "b"}), timeout=20)
    assert (answer.status_code, "Did you mean 'labels'" in answer.text) == (400, True)
    answer = local_cloud.http.get(f"{url}?maxResult=1", timeout=20)
    assert (answer.status_code, "maxResult" in answer.text) == (400, True)


def test_the_tables_of_loads_and_extracts_are_theirs():
    """What the jobs take is what the page says."""
    rules = FIELDS.resources["Job"].rules
    for kind, offered in (("load", loads.OFFERED), ("extract", extracts.OFFERED)):
        of_job = {
            path.removeprefix(f"configuration.{kind}.") for path in rules if path.startswith(f"configuration.{kind}.")
        }
        taken = {
            name for name in of_job if "." not in name and rules[f"configuration.{kind}.{name}"].fate != Fate.REFUSED
        }
        assert taken == set(offered)


def test_required_columns_are_required(client, dataset):
    """By DML, by streaming, and after a column was relaxed no more; columns are added, and none goes."""
    schema = [bigquery.SchemaField("a", "STRING", mode="REQUIRED"), bigquery.SchemaField("b", "INT64")]
    table = client.create_table(bigquery.Table(f"{client.project}.{dataset}.required", schema=schema))
    with pytest.raises(exceptions.BadRequest, match="Required field a cannot be null"):
        client.query(f"INSERT INTO {dataset}.required (a, b) VALUES (NULL, 1)").result()
    (error,) = client.insert_rows_json(table, [{"b": 1}])
    assert error["errors"][0]["message"] == "Missing required field: a."
    skipped = client.insert_rows_json(table, [{"b": 1}, {"a": "x", "b": 2}], skip_invalid_rows=True)
    assert [each["index"] for each in skipped] == [0]
    relaxed = [
        bigquery.SchemaField("a", "STRING"),
        bigquery.SchemaField("b", "INT64"),
        bigquery.SchemaField("c", "DATE"),
    ]
    table.schema = relaxed
    client.update_table(table, ["schema"])
    assert client.insert_rows_json(table, [{"b": 3, "c": "2026-01-02"}]) == []
    rows = client.query(f"SELECT a, b, c FROM {dataset}.required ORDER BY b").result()
    assert [tuple(row) for row in rows] == [("x", 2, None), (None, 3, dt.date(2026, 1, 2))]
    table.schema = relaxed[:1]
    with pytest.raises(exceptions.BadRequest, match="does not match Table"):
        client.update_table(table, ["schema"])


def test_a_streamed_row_is_stored_once(client, dataset):
    """Within a minute, of one table."""
    table = client.create_table(
        bigquery.Table(f"{client.project}.{dataset}.once", [bigquery.SchemaField("a", "INT64")])
    )
    for _ in range(2):
        assert client.insert_rows_json(table, [{"a": 1}, {"a": 2}], row_ids=["x", "y"]) == []
    assert client.insert_rows_json(table, [{"a": 3}, {"a": 3}], row_ids=[None, None]) == []
    rows = client.query(f"SELECT a FROM {dataset}.once ORDER BY a").result()
    assert [row.a for row in rows] == [1, 2, 3, 3]


def test_an_insert_id_is_known_for_a_minute():
    """And another table's is another."""
    now = 0.0
    ids = InsertIds(lambda: now)
    assert [ids.take("t", "x"), ids.take("t", "x"), ids.take("u", "x"), ids.take("t", None)] == [
        True,
        False,
        True,
        True,
    ]
    now = 61.0
    assert ids.take("t", "x")


def test_labels_of_jobs_are_kept(client):
    """By both ways to ask."""
    labels = {"team": "a"}
    job = client.query("SELECT 1", job_config=bigquery.QueryJobConfig(labels=labels))
    job.result()
    rows = client.query_and_wait("SELECT 1", job_config=bigquery.QueryJobConfig(labels=labels))
    assert [client.get_job(each).labels for each in (job.job_id, rows.job_id)] == [labels, labels]


def test_a_query_is_not_charged_more_than_it_may(client, dataset):
    """It is refused before it runs."""
    client.query(f"CREATE TABLE {dataset}.charged AS SELECT 1 AS a").result()
    for most, ends in ((1, "fails"), (10 * 1024 * 1024, "runs")):
        config = bigquery.QueryJobConfig(maximum_bytes_billed=most)
        job = client.query(f"INSERT INTO {dataset}.charged SELECT a FROM {dataset}.charged", job_config=config)
        if ends == "fails":
            with pytest.raises(exceptions.GoogleAPICallError, match=r"limit for bytes billed: 1\. 10485760 or higher"):
                job.result(timeout=20)
        else:
            job.result()
    assert client.get_table(f"{dataset}.charged").num_rows == 2


def test_a_request_that_comes_again_runs_once(local_cloud, client, dataset):
    """By its requestId."""
    client.query(f"CREATE TABLE {dataset}.again (a INT64)").result()
    body = {"query": f"INSERT INTO {dataset}.again VALUES (1)", "useLegacySql": False, "requestId": uuid.uuid4().hex}
    first, second = (local_cloud.http.post(f"{API}/queries", json=body, timeout=20).json() for _ in range(2))
    assert first["jobReference"] == second["jobReference"]
    assert client.get_table(f"{dataset}.again").num_rows == 1


def test_lists_have_pages(client):
    """Of datasets and tables: none is left out."""
    name = client.create_dataset(f"paged_{uuid.uuid4().hex[:8]}").dataset_id
    for number in range(3):
        client.create_table(bigquery.Table(f"{client.project}.{name}.t{number}"))
    assert [table.table_id for table in client.list_tables(name, page_size=2)] == ["t0", "t1", "t2"]
    assert name in {each.dataset_id for each in client.list_datasets(page_size=1)}
    assert len(list(client.list_tables(name, max_results=1))) == 1


def test_expirations_are_held(client):
    """A table's own, its dataset's, and none after it was taken away."""
    dataset = bigquery.Dataset(f"{client.project}.kept_{uuid.uuid4().hex[:8]}")
    dataset.default_table_expiration_ms = 3_600_000
    name = client.create_dataset(dataset).dataset_id
    by_default = client.create_table(bigquery.Table(f"{client.project}.{name}.a"))
    assert client.get_table(by_default).expires - by_default.created == dt.timedelta(hours=1)
    own = bigquery.Table(f"{client.project}.{name}.b")
    own.expires = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    assert client.get_table(client.create_table(own)).expires == own.expires
    own.expires = None
    assert client.update_table(own, ["expires"]).expires is None


def test_labels_of_a_table_are_merged(client, dataset):
    """A label that is null goes, others stay."""
    table = bigquery.Table(f"{client.project}.{dataset}.labelled")
    table.labels = {"a": "1", "b": "2"}
    table = client.create_table(table)
    table.labels = {"a": None, "c": "3"}
    assert client.update_table(table, ["labels"]).labels == {"b": "2", "c": "3"}


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("CREATE MODEL {d}.m OPTIONS(model_type='linear_reg') AS SELECT 1 AS label, 2 AS x", "CREATE MODEL"),
        ("CREATE EXTERNAL TABLE {d}.e OPTIONS(format='CSV', uris=['gs://b/x.csv'])", "CREATE EXTERNAL TABLE"),
        (
            "CREATE TABLE {d}.f (a DATE) PARTITION BY a OPTIONS(require_partition_filter=true)",
            "require_partition_filter",
        ),
        ("CREATE TABLE {d}.g (a STRING(3)) AS SELECT 'a' AS a", "length of a"),
    ],
)
def test_a_statement_that_would_do_nothing_is_refused(client, dataset, sql, named):
    """By what is not offered."""
    with pytest.raises(exceptions.MethodNotImplemented, match=named):
        client.query(sql.format(d=dataset)).result()


def test_labels_of_a_created_table_are_kept(client, dataset):
    """With what else its options say."""
    options = "description='about', friendly_name='kind', labels=[('k', 'v')]"
    client.query(f"CREATE TABLE {dataset}.described (a INT64) OPTIONS({options})").result()
    table = client.get_table(f"{dataset}.described")
    assert (table.description, table.friendly_name, table.labels) == ("about", "kind", {"k": "v"})


def test_descriptions_of_columns_stay_where_they_are(client, dataset):
    """Of CREATE TABLE, of a struct's fields, and of ALTER TABLE; a column takes its own along to a new name."""
    name = f"{dataset}.columns_described"
    client.query(
        f"CREATE TABLE {name} (id INT64 NOT NULL, name STRING(50) NOT NULL OPTIONS(description='The name'),"
        " parts ARRAY<STRUCT<a INT64 OPTIONS(description='inside'), b STRING>> OPTIONS(description='all'))"
    ).result()
    client.query(f"ALTER TABLE {name} ADD COLUMN day DATE OPTIONS(description='when')").result()
    client.query(f"ALTER TABLE {name} RENAME COLUMN name TO friendly_name").result()
    schema = client.get_table(name).schema
    assert {field.name: field.description for field in schema} == {
        "id": None,
        "friendly_name": "The name",
        "parts": "all",
        "day": "when",
    }
    assert [field.description for field in schema[2].fields] == ["inside", None]
    assert (schema[1].max_length, schema[1].mode) == (50, "REQUIRED")


def test_a_table_that_is_there_stays_as_it_is(client, dataset):
    """Of CREATE TABLE and ADD COLUMN with IF NOT EXISTS; also one that was made over REST, and in a script."""
    table = bigquery.Table(
        f"{client.project}.{dataset}.there",
        [bigquery.SchemaField("a", "INTEGER", "REQUIRED", description="first"), bigquery.SchemaField("day", "DATE")],
    )
    table.description, table.friendly_name, table.labels = "about", "kind", {"k": "v"}
    table.time_partitioning = bigquery.TimePartitioning(field="day")
    kept = client.create_table(table).to_api_repr()
    other = (
        "(a INT64 OPTIONS(description='x'), day DATE) OPTIONS(description='y', friendly_name='z', labels=[('k', 'w')])"
    )
    create = f"CREATE TABLE IF NOT EXISTS {dataset}.there {other}"
    for statement in (
        create,
        f"BEGIN {create}; END",
        f"ALTER TABLE {dataset}.there ADD COLUMN IF NOT EXISTS a INT64 OPTIONS(description='x')",
    ):
        client.query(statement).result()
        now = client.get_table(table).to_api_repr()
        assert {key: now[key] for key in kept if key not in ("etag", "lastModifiedTime")} == {
            key: kept[key] for key in kept if key not in ("etag", "lastModifiedTime")
        }, statement
    client.query(f"DROP TABLE {dataset}.there; {create}").result()
    made = client.get_table(table)
    assert (made.description, made.friendly_name, made.schema[0].description) == ("y", "z", "x")


def test_a_default_dataset_holds_for_what_is_made(local_cloud, client, dataset):
    """By jobs.query: the table lies in it."""
    body = {
        "query": "CREATE TABLE own AS SELECT 1 AS x",
        "useLegacySql": False,
        "defaultDataset": {"datasetId": dataset},
    }
    assert local_cloud.http.post(f"{API}/queries", json=body, timeout=20).status_code == 200
    assert client.get_table(f"{dataset}.own").num_rows == 1


def routine_of(dataset: str, **fields: object) -> bigquery.Routine:
    """Return a new function that gives its argument back."""
    whole = {"typeKind": "INT64"}
    return bigquery.Routine.from_api_repr(
        {
            "routineReference": {
                "projectId": "local-project",
                "datasetId": dataset,
                "routineId": f"r_{uuid.uuid4().hex[:8]}",
            },
            "routineType": "SCALAR_FUNCTION",
            "language": "SQL",
            "definitionBody": "x",
            "arguments": [{"name": "x", "dataType": whole}],
            "returnType": whole,
            **fields,
        }
    )


def test_fields_of_a_routine_are_kept(client, dataset):
    routine = client.create_routine(routine_of(dataset, dataGovernanceType="DATA_MASKING"))
    assert routine.data_governance_type == "DATA_MASKING"
    routine.description = "Itself."
    client.update_routine(routine, ["description", "arguments", "type_", "return_type", "body", "language"])
    found = client.get_routine(routine.reference)
    assert (found.data_governance_type, found.description) == ("DATA_MASKING", "Itself.")
    client.delete_routine(routine.reference)
    again = routine_of(dataset)
    again._properties["routineReference"]["routineId"] = routine.reference.routine_id
    assert client.create_routine(again).data_governance_type is None


@pytest.mark.parametrize("field", ["remoteFunctionOptions", "sparkOptions", "pythonOptions", "securityMode"])
def test_a_field_of_a_routine_that_would_do_nothing_is_refused(client, dataset, field):
    value = "DEFINER" if field == "securityMode" else {"connection": "local-project.us.c"}
    with pytest.raises(exceptions.MethodNotImplemented, match=field):
        client.create_routine(routine_of(dataset, **{field: value}), retry=None)
