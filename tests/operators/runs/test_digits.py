"""Nights of `retrain__digits` on the local cloud, task by task as a worker runs them, without a scheduler.

The first night is run once: a night that was run takes its own documents.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
import pytest
import yaml
from airflow.sdk.execution_time.context import OutletEventAccessors

from retraining.core.naming import vertex
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.scenes.asked_endpoint import predict, retire
from tests.support.scenes.whole_run import load_dags, read_object, run_scoring, run_whole

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

FIRST, SECOND = (datetime(2013, 11, day, 3, tzinfo=UTC) for day in (20, 21))


@pytest.fixture(scope="module")
def digits(local_cloud):
    """The spec, with the demo's data in BigQuery and short looks at jobs."""
    local_cloud.seed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETRAINING_WATCH_S", "60")
        yield load_spec(include_path() / "models" / "digits.yaml")
    retire(vertex.endpoint_name(local_cloud.project, local_cloud.region, "digits"))


@pytest.fixture(scope="module")
def night(make_run) -> Callable[..., dict[str, Any]]:
    """Runs every task of a night; gives its documents by kind."""

    def run_all(spec: Any, logical_date: datetime) -> dict[str, Any]:
        return run_whole(spec, make_run(run_id=f"manual__{logical_date:%Y%m%d}", logical_date=logical_date))

    return run_all


@pytest.fixture(scope="module")
def first(digits, night) -> dict[str, Any]:
    """The first night's documents, of the tests that leave them as they are."""
    return night(digits, FIRST)


@pytest.fixture(scope="module")
def asked() -> list[int]:
    """How many instances each test has sent to the first night's endpoint."""
    return []


def images(condition: str) -> list[tuple[bytes, int]]:
    """PNGs of the source table and their digits."""
    from google.cloud import bigquery

    sql = f"SELECT image, digit FROM digits.images WHERE {condition} ORDER BY image_id"
    return [(row.image, row.digit) for row in bigquery.Client().query_and_wait(sql)]


def test_a_first_night_makes_a_champion_that_reads_digits(first, asked) -> None:
    """Export to endpoint; the endpoint reads the table's own PNGs as well as the judge said."""
    manifest, evaluation = first["manifest"], first["evaluation"]
    assert sum(split["rows"] for split in manifest["splits"].values()) == 1348
    assert manifest["images"] == [{"name": "image", "height": 8, "width": 8, "channels": 1, "encoding": "raw"}]
    assert sum(first["statistics"]["splits"]["train"]["label"]["counts"]) == manifest["splits"]["train"]["rows"]
    assert evaluation["challenger"]["metrics"]["accuracy"] > 0.95
    assert first["decision"]["verdict"] == "promote"
    assert first["deployment"]["smoke_test"] == {"requests": 5, "max_abs_error": 0, "answers": 3, "asked": 3}
    assert "Class by class" in first["page"]
    tested = images("captured_at >= '2013-11-06' AND captured_at < '2013-11-20'")
    assert len(tested) == evaluation["rows"]
    sent = [{"image": {"b64": base64.b64encode(content).decode()}} for content, _ in tested]
    answers = predict(first["deployment"]["endpoint_name"], sent)
    right = sum(scores.index(max(scores)) == digit for scores, (_, digit) in zip(answers, tested, strict=True))
    assert right / len(tested) == pytest.approx(evaluation["challenger"]["metrics"]["accuracy"])
    (empty,) = predict(first["deployment"]["endpoint_name"], [{"image": ""}])
    assert sum(empty) == pytest.approx(1)
    asked += [len(sent), 1]


def test_all_clients_are_answered_as_the_training_was(first, asked) -> None:
    """The training's own requests, by gRPC, by the SDK and by REST, through TensorFlow Serving's routes."""
    from google.cloud import aiplatform, aiplatform_v1

    name, golden = first["deployment"]["endpoint_name"], first["report"]["golden"][1:]  # fewer than a smoke test sends
    instances = [{"image": {"b64": request["instance"]["image"]["b64"]}} for request in golden]
    region = name.split("/")[3]
    client = aiplatform_v1.PredictionServiceClient(
        client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"}
    )
    answers = [predict(name, instances), list(client.predict(endpoint=name, instances=instances).predictions)]
    aiplatform.init(project=name.split("/")[1], location=region)
    answers.append(aiplatform.Endpoint(name).predict(instances).predictions)
    asked += [len(instances)] * len(answers)
    for found in answers:
        for answer, request in zip(found, golden, strict=True):
            assert list(answer) == pytest.approx(request["prediction"], abs=1e-5)
    models = aiplatform_v1.ModelServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    served = models.get_model(name=first["registration"]["version_name"])
    assert served.container_spec.image_uri.endswith("/retraining/tensorflow-serving:2.19.1")
    assert served.container_spec.predict_route == "/v1/models/digits:predict"
    assert first["report"]["model_uri"] == f"{served.artifact_uri}/1"
    fit_registered_schemata(served, instances, answers[0])


def fit_registered_schemata(served: Any, instances: list[Any], answers: list[Any]) -> None:
    """Hold what the endpoint was asked and what it answered against the schemata that the registry has."""
    uris = {name: getattr(served.predict_schemata, f"{name}_schema_uri") for name in ("instance", "prediction")}
    schemata = {name: yaml.safe_load(read_object(uri)) for name, uri in uris.items()}
    for instance, answer in zip(instances, answers, strict=True):
        jsonschema.validate(instance, schemata["instance"])
        jsonschema.validate(list(answer), schemata["prediction"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"image": "no image"}, schemata["instance"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(list(answers[0])[:-1], schemata["prediction"])


def test_the_monitor_counts_answers_where_images_have_no_values(digits, first, asked, make_run) -> None:
    """Requests with images are logged, and their answers are held against those to the test days."""
    ones = [{"image": {"b64": base64.b64encode(content).decode()}} for content, digit in images("digit = 1")]
    for start in range(0, 2 * len(ones), 20):  # one request with all of them would be a giant batch
        predict(first["deployment"]["endpoint_name"], (ones * 2)[start : start + 20])
    asked.append(2 * len(ones))
    dag = load_dags("monitor").monitor_dag(digits)
    deadline = time.monotonic() + 900
    rows, attempt = 0, 0
    while rows < sum(asked):  # answers reach the log within a second
        assert time.monotonic() < deadline
        attempt += 1
        now = datetime.now(UTC) + timedelta(seconds=1)
        params = {**dag.params.dump(), "as_of": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        run = make_run(run_id=f"manual__{attempt}", params=params, run_after=now, outlet_events=OutletEventAccessors())
        run.dag_id = dag.dag_id
        measured = run.execute(dag.get_task("measure"))
        rows = measured["rows"]
    assert rows == sum(asked)  # all that was sent, without the smoke test's five
    assert measured["drifted"] == ["digit"]
    decided = run.execute(dag.get_task("decide"))
    assert (decided["outcome"], decided["because"]) == ("none", "hysteresis")  # it takes two windows
    assert "digit" in decided["words"]


def test_a_table_is_scored_in_bulk_as_the_endpoint_answers(digits, first, make_run) -> None:
    """Every image of the source table, into a table of its own; what was in between is gone; again is nothing new."""
    from google.cloud import bigquery

    client = bigquery.Client()
    result = run_scoring(digits, make_run(run_id="manual__score", logical_date=FIRST))["scoring"]
    rows = list(client.query_and_wait("SELECT * FROM retraining.digit_scores ORDER BY image_id"))
    sent = list(client.query_and_wait("SELECT image_id, image FROM digits.images ORDER BY image_id"))
    assert result["rows"] == len(rows) == len(sent)
    assert [row.image_id for row in rows] == [row.image_id for row in sent]
    instances = [{"image": {"b64": base64.b64encode(row.image).decode()}} for row in sent]
    answers = [
        answer
        for start in range(0, len(sent), 500)
        for answer in predict(first["deployment"]["endpoint_name"], instances[start : start + 500])
    ]
    for row, answer in zip(rows, answers, strict=True):
        assert row.scores == pytest.approx(answer, abs=1e-5)
    assert {row.model_version for row in rows} == {first["registration"]["version_id"]}
    left = [table.table_id for table in client.list_tables("retraining")]
    assert [name for name in left if name.startswith(("score_", "predictions_", "errors_"))] == []
    assert run_scoring(digits, make_run(run_id="manual__again", logical_date=FIRST))["scoring"] == result


def test_a_champions_model_that_is_gone_comes_back_as_the_message_says(digits, night, make_run) -> None:
    """Evaluate names its run; that run's train stores a model that answers alike, and the duel is held."""
    from google.cloud import storage

    report = night(digits, FIRST)["report"]
    bucket, _, folder = report["model_uri"].removeprefix("gs://").partition("/")
    for blob in storage.Client().list_blobs(bucket, prefix=f"{folder}/"):
        blob.delete()
    run = make_run(run_id="manual__20131121", logical_date=SECOND)
    with pytest.raises(
        AirflowFailException, match=r"the model of the champion.*Clear train of DAG run manual__20131120"
    ):
        run_whole(digits, run, "evaluate")
    run_again(digits, make_run(run_id="manual__20131120", logical_date=FIRST), "train")
    again = night(digits, FIRST)["report"]
    for before, after in zip(report["golden"], again["golden"], strict=True):
        assert after["instance"] == before["instance"]
        assert after["prediction"] == pytest.approx(before["prediction"], abs=1e-6)
    assert run_whole(digits, run, "evaluate")["evaluation"]["champion"] is not None


def run_again(spec: Any, run: Any, task_id: str) -> None:
    """Clear a task of a night that was run: another generation of it."""
    dag = load_dags("retrain").retrain_dag(spec)
    run.dag_id, run.params = dag.dag_id, dag.params.dump()
    run.execute(dag.get_task("plan"))
    task = dag.get_task(task_id)
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        try:
            run.execute(task, max_tries=task.retries * 2 + 1)
        except AirflowRescheduleException:
            continue
        return
    raise AssertionError(f"{task_id} did not end")


def test_a_second_night_exports_one_day_and_holds_a_duel(digits, night) -> None:
    """The champion is judged on the same images, class by class."""
    night(digits, FIRST)
    found = night(digits, SECOND)
    assert [span["span"] for span in found["manifest"]["spans"] if span["action"] == "export"] == ["2013-11-20"]
    champion = found["evaluation"]["champion"]
    assert champion["metrics"]["accuracy"] > 0.9
    assert [sum(row) for row in champion["confusion"]] == found["evaluation"]["label_counts"]
    assert found["evaluation"]["difference"]["metric"] == "accuracy"
    assert found["decision"]["champion"]["version_id"] == "1"
