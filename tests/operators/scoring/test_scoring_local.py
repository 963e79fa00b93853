"""Scorings on the local cloud: real statements, a real batch prediction, of a model that always says the same."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1, bigquery, storage

from retraining.core.documents import KINDS, ScoringPlan
from retraining.core.errors import DataError
from retraining.core.naming.vertex import deployed_model_id
from retraining.core.scoring import answers
from retraining.core.scoring.answers import DestinationClaim
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.hooks.registry import Upload
from retraining.operators.scoring import scoring_plan
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.scenes.served_models import PREBUILT, save_models, upload_model
from tests.support.scenes.whole_run import load_dags

MODEL = "bulk"
RUN_KEY = "20131119t030000z-0123456789ab"
SPEC = """
name: bulk
description: Scored in bulk.
data: {query: bulk/examples.sql, key: id, event_time: at}
features:
  - {name: carrier, kind: categorical}
  - {name: distance, kind: numeric}
label: {name: late, kind: binary}
training: {model: dense}
evaluation: {metric: auc, min_value: 0.6, reference: false}
scoring:
  table: retraining.bulk_source
  destination: retraining.bulk_scores
  allow_sources: [retraining, "gs://b-b/", "gs://BUCKET/bulk-lines/"]
  allow_destinations: [retraining, "gs://b-b/", "gs://BUCKET/bulk-answers/"]
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """The folder of the model's file."""
    folder = tmp_path_factory.mktemp("bulk") / "include" / "models"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def spec(local_cloud, models, tmp_path_factory):
    """A champion that says 0.25 to everything, and a source of 300 rows, every third without a distance."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset(local_cloud.dataset, exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE retraining.bulk_source AS SELECT CAST(n AS STRING) AS id, 'UA' AS carrier, "
        "IF(MOD(n, 3) = 0, NULL, n * 1.5) AS distance, CURRENT_TIMESTAMP() AS split "
        "FROM UNNEST(GENERATE_ARRAY(1, 300)) AS n"
    )
    folder = tmp_path_factory.mktemp("versions")
    save_models(folder, 0.25)
    run_folder = f"{MODEL}/runs/{RUN_KEY}"
    bucket = storage.Client().bucket(local_cloud.bucket)
    upload_model(bucket, f"{run_folder}/training/model", folder / "0.25")
    for name in ("plan__scheduled", "report__first_attempt"):
        kind = name.split("__")[0]
        values = KINDS[kind].parse((EXAMPLES / f"{name}.json").read_bytes()).to_json()
        if kind == "report":
            inputs = {"carrier": "string", "distance": "float32"}
            values["signature"] = {"inputs": inputs, "outputs": {"score": "float32"}}
        bucket.blob(f"{run_folder}/{kind}.json").upload_from_string(json.dumps(values))
    register(f"gs://{local_cloud.bucket}/{run_folder}/training/model")
    (models / f"{MODEL}.yaml").write_text(SPEC.replace("BUCKET", local_cloud.bucket))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETRAINING_WATCH_S", "60")
        patch.setattr(scoring_plan, "include_path", lambda: Path(models.parent))
        yield load_spec(models / f"{MODEL}.yaml")


def register(artifact_uri: str) -> None:
    """Make the only version the champion."""
    cloud = Cloud()
    upload = Upload(
        display_name=MODEL,
        description="Says 0.25.",
        artifact_uri=artifact_uri,
        container_spec=PREBUILT,
        labels={"retraining-run": RUN_KEY, "retraining-model": MODEL},
    )
    cloud.registry.start_upload(MODEL, upload)
    deadline = time.monotonic() + 60
    while not (versions := cloud.registry.versions_of_run(MODEL, RUN_KEY)):
        assert time.monotonic() < deadline
        cloud.clock.sleep(0.1)
    cloud.registry.merge_aliases(versions[0], ["champion"])


def score(spec: Any, make_run: Any, run_id: str, day: int, until: str = "conclude", **params: Any) -> Any:
    """Run every task of a scoring, or the first ones."""
    dag = load_dags("score").score_dag(spec, spec.scoring)
    run = make_run(run_id=run_id, dag_id=dag.dag_id, logical_date=datetime(2013, 11, day, 3, tzinfo=UTC))
    run.params = dag.params.dump() | params
    ordered = dag.topological_sort()
    return execute(run, ordered[: [task.task_id for task in ordered].index(until) + 1])


def execute(run: Any, some: Any, **whose: int) -> Any:
    """Run tasks to their end."""
    deadline = time.monotonic() + 300
    for task in some:
        while True:
            try:
                run.execute(task, **whose)
                break
            except AirflowRescheduleException:
                assert time.monotonic() < deadline, f"{task.task_id} did not end"
    return run


def days(table: str) -> dict[str, tuple[int, float]]:
    """Rows and mean score by day."""
    sql = f"SELECT scored_on, COUNT(*) AS n, AVG(score) AS score FROM {table} GROUP BY scored_on"
    return {str(row.scored_on): (row.n, row.score) for row in bigquery.Client().query_and_wait(sql)}


def test_a_day_is_replaced_whole_and_the_others_stay(spec, make_run) -> None:
    """A missing number is no failure; a smaller source leaves no old row; nothing in between is left."""
    score(spec, make_run, "manual__1", 20)
    score(spec, make_run, "manual__2", 21)
    assert days("retraining.bulk_scores") == {"2013-11-20": (300, 0.25), "2013-11-21": (300, 0.25)}
    client = bigquery.Client()
    client.query_and_wait(
        "CREATE OR REPLACE TABLE retraining.bulk_less AS SELECT * FROM retraining.bulk_source LIMIT 7"
    )
    score(spec, make_run, "manual__3", 20, table="retraining.bulk_less")
    assert days("retraining.bulk_scores") == {"2013-11-20": (7, 0.25), "2013-11-21": (300, 0.25)}
    left = [table.table_id for table in client.list_tables("retraining")]
    assert [name for name in left if name.startswith(("score_bulk", "predictions_", "errors_"))] == []
    claims = storage.Client().list_blobs(Cloud().settings.bucket, prefix="wakes/destinations/")
    assert [blob.name for blob in claims] == []


def jobs() -> int:
    """How many batch predictions were ever paid for."""
    settings = Cloud().settings
    endpoint = f"{settings.region}-aiplatform.googleapis.com"
    client = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": endpoint})
    return len(
        list(client.list_batch_prediction_jobs(parent=f"projects/{settings.project}/locations/{settings.region}"))
    )


def times(table: str) -> dict[str, str]:
    """Of which time the answers of each day are."""
    sql = f"SELECT scored_on, MIN(scored_as_of) AS first, MAX(scored_as_of) AS last FROM {table} GROUP BY scored_on"
    found = {str(row.scored_on): (row.first, row.last) for row in bigquery.Client().query_and_wait(sql)}
    assert all(first == last for first, last in found.values())
    return {day: f"{last:%H:%M}" for day, (_, last) in found.items()}


EARLY, LATE = "2013-11-20T03:00:00Z", "2013-11-20T05:00:00Z"


def tasks(spec: Any, *names: str) -> list[Any]:
    """Some tasks of the DAG."""
    dag = load_dags("score").score_dag(spec, spec.scoring)
    return [dag.get_task(name) for name in names]


def test_an_older_scoring_replaces_nothing(spec, make_run) -> None:
    """It had its answers, and was overtaken before it wrote them; another day is not its business."""
    table = "retraining.bulk_order"
    old = score(spec, make_run, "manual__old", 20, until="predict", destination=table, as_of=EARLY)
    execute(old, tasks(spec, "clean_up"))
    new = score(spec, make_run, "manual__new", 20, destination=table, as_of=LATE)
    score(spec, make_run, "manual__other", 19, destination=table)
    both = {"2013-11-19": "03:00", "2013-11-20": "05:00"}
    assert times(table) == both
    with pytest.raises(AirflowFailException, match=f"answers as of {LATE}, and this scoring is as of {EARLY}"):
        execute(old, tasks(spec, "write"))
    execute(old, tasks(spec, "clean_up"))
    assert times(table) == both

    uri = f"{new.xcoms['plan', 'return_value']['run_uri']}/scoring_plan.json"
    plan = ScoringPlan.parse(Cloud().artifacts.read_object(uri) or b"")
    claim = DestinationClaim(dag_id="a", dag_run_id="b", table=answers.written_table(plan))
    older = plan.model_copy(update={"as_of": datetime(2013, 11, 20, 4, tzinfo=UTC)})
    for number, (asked, words) in enumerate([(plan, "another scoring has taken"), (older, "newer answers are there")]):
        query = answers.render_write_sql(asked, "STRING", claim.numbered(100 * number, "0"))
        with pytest.raises(DataError, match=words):
            Cloud().warehouse.run_query(query, f"late_write_{number}", "a write that comes late")
    assert times(table) == both


def test_a_destination_that_is_dropped_is_written_again_without_a_job(spec, make_run) -> None:
    """Before the write, and after the end; the day has its rows, whole."""
    table, client = "retraining.bulk_dropped", bigquery.Client()
    before = jobs()
    run = score(spec, make_run, "manual__dropped", 20, until="predict", destination=table)
    client.delete_table(table)
    execute(run, tasks(spec, "write", "clean_up"))
    assert days(table) == {"2013-11-20": (300, 0.25)}
    client.delete_table(table)
    execute(run, tasks(spec, "plan", "snapshot", "predict", "write", "clean_up"), max_tries=4)
    assert days(table) == {"2013-11-20": (300, 0.25)}
    assert jobs() == before + 1
    claims = storage.Client().list_blobs(Cloud().settings.bucket, prefix="wakes/destinations/")
    assert [blob.name for blob in claims] == []


def lines(folder: str, data: list[dict[str, Any]]) -> str:
    """Two files of JSON lines; their address."""
    bucket = storage.Client().bucket(Cloud().settings.bucket)
    for number, part in enumerate((data[:5], data[5:])):
        text = "\n".join(json.dumps(line) for line in part)
        bucket.blob(f"{folder}/{number}.jsonl").upload_from_string(text)
    return f"gs://{bucket.name}/{folder}/*.jsonl"


def test_files_are_scored_into_files(spec, make_run) -> None:
    """An answer for each line, with its key; the destination names them once they are whole."""
    source = lines("bulk-lines/good", [{"id": f"k{n}", "carrier": "UA", "distance": n * 1.5} for n in range(20)])
    settings = Cloud().settings
    target = f"gs://{settings.bucket}/bulk-answers/good"
    run = score(spec, make_run, "manual__files", 20, files=source, destination=target)
    assert run.xcoms["write", "return_value"]["rows"] == 20
    cloud = Cloud()
    current = json.loads(cloud.artifacts.read_object(f"{target}/2013-11-20/current.json") or b"{}")
    assert (current["rows"], current["scored_as_of"]) == (20, "2013-11-20T03:00:00Z")
    found = [
        json.loads(line)
        for item in cloud.objects.match(current["predictions"])
        for line in (cloud.artifacts.read_object(item.uri) or b"").splitlines()
    ]
    assert sorted(line["key"] for line in found) == sorted(f"k{n}" for n in range(20))
    assert {line["prediction"] for line in found} == {0.25}


def test_lines_without_an_answer_are_not_announced(spec, make_run) -> None:
    """One bad line takes its batch of 64 with it; what the destination names stays."""
    data = [{"id": f"k{n}", "carrier": "UA", "distance": "far" if n == 7 else 1.5} for n in range(100)]
    source, target = lines("bulk-lines/bad", data), f"gs://{Cloud().settings.bucket}/bulk-answers/bad"
    with pytest.raises(AirflowFailException, match=r"(?s)36 answers for 100 lines; .*stays as it was"):
        score(spec, make_run, "manual__bad", 20, files=source, destination=target)
    assert Cloud().artifacts.read_object(f"{target}/2013-11-20/current.json") is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"id": "a", "carrier": "UA"}, r"0\.jsonl, line 1: no distance"),
        ({"id": "a", "carrier": "UA", "distance": 1.5, "late": 0}, "1 more than these"),
        (["a", "UA", 1.5], "no object"),
    ],
)
def test_lines_that_are_no_instances_are_refused_before_a_job(spec, make_run, line, words) -> None:
    source = lines("bulk-lines/strange", [line] * 6)
    name = f"{type(line).__name__}_{len(line)}"
    target = f"gs://{Cloud().settings.bucket}/bulk-answers/{name}"
    with pytest.raises(AirflowFailException, match=words):
        score(spec, make_run, f"manual__{name}", 20, files=source, destination=target)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"files": "gs://b-b/in/*.jsonl"}, "answers for files go into a folder gs://"),
        ({"destination": "gs://b-b/out"}, "answers for a table or query go into a table"),
        ({"files": "gs://b-b/out/*.jsonl", "destination": "gs://b-b/out"}, "where files .* lie: name another folder"),
        ({"files": "gs://b-b/*.jsonl", "destination": "gs://b-b/out"}, "where files .* lie: name another folder"),
        ({"files": "gs://b-b/in/*.jsonl", "table": "a.b"}, "table and files. Expected one of them"),
        ({"files": "gs://b-b/none/*.jsonl", "destination": "gs://b-b/out"}, "gs://b-b: no such bucket"),
    ],
)
def test_files_and_folders_that_cannot_be_are_refused_by_name(spec, make_run, params, words) -> None:
    with pytest.raises(AirflowFailException, match=words):
        score(spec, make_run, f"manual__{len(str(params))}", 20, **params)


@pytest.fixture
def unserved(spec, models):
    """The same model without an endpoint, for a test."""
    path = models / f"{MODEL}.yaml"
    served = path.read_text()
    path.write_text(f"{served}deployment: null\n")
    yield load_spec(path)
    path.write_text(served)


def logged_rows() -> list[Any]:
    """What was kept for the monitor, by key."""
    sql = "SELECT * FROM retraining.retraining_scored_bulk ORDER BY request_id"
    return list(bigquery.Client().query_and_wait(sql))


def test_what_a_model_without_an_endpoint_scores_is_kept_for_its_monitor(unserved, make_run) -> None:
    """Once, however often the task is repeated: the row as it was sent with its key, the answer, and who gave it."""
    table = "retraining.bulk_unserved"
    run = score(unserved, make_run, "manual__unserved", 20, until="write", destination=table)
    execute(run, tasks(unserved, "write"), max_tries=5)
    storage.Blob.from_uri(f"{run.xcoms['plan', 'return_value']['run_uri']}/scoring.json", storage.Client()).delete()
    execute(run, tasks(unserved, "write", "clean_up"), max_tries=6)
    rows = logged_rows()
    assert len(rows) == 300
    assert {row.deployed_model_id for row in rows} == {deployed_model_id(RUN_KEY)}
    assert {tuple(row.response_payload) for row in rows} == {("0.25",)}
    sent = {item["id"]: item for item in (json.loads(row.request_payload[0]) for row in rows)}
    assert (sent["2"]["carrier"], sent["2"]["distance"]) == ("UA", 3.0)
    assert sent["3"]["distance"] is None
    assert abs((rows[0].logging_time - datetime.now(UTC)).total_seconds()) < 600


def test_a_model_with_an_endpoint_keeps_no_scored_rows(spec, make_run) -> None:
    """Its requests are watched by the endpoint's own log."""
    run = score(spec, make_run, "manual__served", 20, destination="retraining.bulk_served")
    stored = json.loads(read(f"{run.xcoms['plan', 'return_value']['run_uri']}/scoring_plan.json"))
    assert "log" not in stored


def test_a_share_of_the_scored_rows_is_kept(unserved, models, make_run) -> None:
    """By `deployment.request_log_sampling`, each row by chance."""
    path = models / f"{MODEL}.yaml"
    path.write_text(path.read_text().replace("deployment: null", SAMPLED))
    before = {row.request_id for row in logged_rows()}
    score(load_spec(path), make_run, "manual__sampled", 19, destination="retraining.bulk_sampled")
    assert 45 <= len({row.request_id for row in logged_rows()} - before) <= 105  # 75 of 300: four deviations


SAMPLED = "deployment: {endpoint: false, request_log_sampling: 0.25}"


def read(uri: str) -> bytes:
    """An object's bytes."""
    return storage.Blob.from_uri(uri, storage.Client()).download_as_bytes()
