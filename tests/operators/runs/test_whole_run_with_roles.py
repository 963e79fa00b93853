"""A whole night, the way back, a scoring, the cleaning and the monitor, with exactly the roles of docs/composer.md."""

from __future__ import annotations

import json
import re
import shlex
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors

from retraining.core.naming import storage, vertex
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.operators.monitoring import measurement
from retraining.operators.monitoring import watch as monitor_watch
from retraining.operators.retention import garbage_collection
from retraining.operators.scoring import scoring_plan
from tests.support.scenes.asked_endpoint import retire
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.monitor_run import require_replayed
from tests.support.scenes.role_jobs import Scene, run_job
from tests.support.scenes.roles import JOBS_ACCOUNT, ROOT, SOURCE, Role, Roles, documented_roles
from tests.support.scenes.served_models import PREBUILT
from tests.support.scenes.whole_run import load_dags, run_scoring, run_whole

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MODEL = "roles_parcels"
DAYS, PER_DAY = 10, 240
SPEC = f"""
name: {MODEL}
description: Will it be late?
schedule: null
data:
  query: {MODEL}/examples.sql
  key: id
  event_time: seen_at
  weight: importance
  window_days: 10
  test_days: 2
  checks: {{min_rows: 1000}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: weight, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense, epochs: 8, batch_size: 64, seed: 7, hyperparameters: {{learning_rate: 0.01}}}}
evaluation: {{metric: auc, min_value: 0.7, promote: {{min_examples: 100, below_reference: true}}}}
monitoring: {{policy: {{windows: {{exceeded: 1, of: 1}}}}}}
deployment: {{staging: true}}
scoring:
  {{table: {SOURCE}.night, destination: retraining.{MODEL}_scores, allow_destinations: [retraining], partition: false}}
"""
# Late are the heavy parcels of one carrier.
ROWS = f"""
CREATE OR REPLACE TABLE {SOURCE}.night AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:01:00+00', INTERVAL 6 * i MINUTE) AS seen_at,
  FORMAT('carrier %d', MOD(i, 5)) AS carrier,
  MOD(i * 104729, 1000) / 10 AS weight,
  IF(MOD(i, 5) = 1, 3, 1) AS importance,
  IF(MOD(i, 5) IN (1, 2) AND MOD(i * 104729, 1000) > 300, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, {DAYS * PER_DAY - 1})) AS i
"""
QUERY = f"SELECT * FROM {SOURCE}.night WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
INSTANCES = [{"carrier": f"carrier {number % 5}", "weight": float(number)} for number in range(200)]
# Of Vertex AI's service agent: a batch prediction reads and writes as it.
SCORING_ROLES = {
    "roles/bigquery.readSessionUser": "bigquery.readsessions.create",
    "roles/bigquery.jobUser": "bigquery.jobs.create",
}


FORGE = (
    "from google.cloud import storage; storage.Client().bucket({bucket!r}).blob({name!r}).upload_from_string({data!r})"
)


@pytest.fixture
def spec(local_cloud: Any, include: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A small model of this test's own; what serves it ends with the test."""
    make_source(local_cloud, SOURCE, ROWS)
    monkeypatch.setenv("RETRAINING_SERVICE_ACCOUNT", JOBS_ACCOUNT)
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    for module in (monitor_watch, measurement, garbage_collection, scoring_plan):
        monkeypatch.setattr(module, "include_path", lambda: include)
    (include / "models" / f"{MODEL}.yaml").write_text(SPEC)
    (include / "sql" / MODEL).mkdir(parents=True)
    (include / "sql" / MODEL / "examples.sql").write_text(QUERY)
    yield load_spec(include / "models" / f"{MODEL}.yaml")
    endpoints = Cloud().endpoints
    if endpoint := endpoints.get(MODEL):
        retire(endpoint.name)


def post(local_cloud: Any, path: str, body: Any) -> dict[str, Any]:
    """Call Vertex AI's REST API as the connection's account, as `post` of the run-book does; wait for operations."""
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/v1"
    answer = local_cloud.http.post(f"{url}/{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    until = time.monotonic() + 120
    while "/operations/" in found.get("name", "") and not found.get("done"):
        assert time.monotonic() < until
        time.sleep(0.2)
        found = local_cloud.http.get(f"{url}/{found['name']}", timeout=60).json()
    assert "error" not in found, found
    return found


def predict(local_cloud: Any, endpoint: str) -> list[Any]:
    """Ask the endpoint as the connection's account."""
    return list(post(local_cloud, f"{endpoint}:predict", {"instances": INSTANCES})["predictions"])


def run_book(parent: str, version: str, other_id: str) -> list[tuple[str, Any]]:
    """The commands of docs/operations.md for going back, with this test's names in the place of its example's."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    text = text.partition("\n## Go back to the previous version\n")[2].partition("\n## ")[0]
    text = text.replace("'$PARENT'", parent).replace("flight_delays@3", version.rpartition("/")[2])
    text = text.replace("endpoints/flight-delays", f"endpoints/{vertex.endpoint_id(MODEL)}")
    text = text.replace("<the other one>", other_id)
    words = [shlex.split(line) for line in re.findall(r"^post \S+ '.*$", text, re.MULTILINE)]
    return [(f"{parent}/{path}", json.loads(body)) for _, path, body in words]


def replace_champion(local_cloud: Any, parent: str, model_uri: str) -> str:
    """Make another version of the same files the champion with all the traffic; gives its deployed model's id."""
    name = f"{parent}/models/{MODEL}"
    model = {
        "displayName": MODEL,
        "artifactUri": model_uri,
        "containerSpec": PREBUILT,
    }
    post(local_cloud, f"{parent}/models:upload", {"parentModel": name, "model": model})
    deployed = {
        "model": f"{name}@2",
        "dedicatedResources": {"machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1},
    }
    endpoint = vertex.endpoint_name(local_cloud.project, local_cloud.region, MODEL)
    done = post(local_cloud, f"{endpoint}:deployModel", {"trafficSplit": {"0": 100}, "deployedModel": deployed})
    post(local_cloud, f"{name}@2:mergeVersionAliases", {"versionAliases": ["champion"]})
    return str(done["response"]["deployedModel"]["id"])


def assert_requests_wait(local_cloud: Any, roles: Roles, role: Role, endpoint: str) -> None:
    """Without its role on the dataset Vertex AI answers, but cannot log: its own log says why."""
    roles.grant(without=role)
    assert len(predict(local_cloud, endpoint)) == len(INSTANCES)
    path = Path(local_cloud.state_path) / "server-logs" / "vertex.log"
    until = time.monotonic() + 60
    while not re.search(r"request log: .*bigquery\.tables\.updateData.* for service-", path.read_text()):
        assert time.monotonic() < until, path.read_text()[-2000:]
        time.sleep(0.2)
    roles.grant()


def watch(make_run: Any, spec: Any, rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Runs of the monitor until it has seen as many requests; gives what the last one measured and decided."""
    dag = load_dags("monitor").monitor_dag(spec)
    until, attempt = time.monotonic() + 300, 0
    while True:
        assert time.monotonic() < until
        attempt += 1
        now = datetime.now(UTC) + timedelta(seconds=1)
        params = {**dag.params.dump(), "as_of": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        run = make_run(run_id=f"manual__{attempt}", params=params, run_after=now, outlet_events=OutletEventAccessors())
        run.dag_id = dag.dag_id
        measured = run.execute(dag.get_task("measure"))
        if measured["rows"] >= rows:
            decided = run.execute(dag.get_task("decide"))
            require_replayed(Cloud().artifacts, decided["ledger_uri"])
            return measured, decided


def clean(make_run: Any) -> dict[str, Any]:
    """A run of `maintain` that deletes."""
    dag = load_dags("maintain").maintain_dag()
    run = make_run(run_id="manual__clean", dag_id=dag.dag_id, run_after=datetime.now(UTC))
    run.params = {**dag.params.dump(), "dry_run": False, "models": [MODEL]}
    uri = run.execute(dag.get_task("look"))["cleaning_uri"]
    for task_id in ("cancel_jobs", "delete"):
        task = dag.get_task(task_id)
        task.cleaning_uri = uri
        result: dict[str, Any] = run.execute(task)
    return result


def forge_rollout(version_name: str) -> None:
    """What another model's job tries: a rollout that makes `maintain` give the alias champion to its version."""
    cloud = Cloud()
    uri = storage.rollout_uri(cloud.settings.bucket, MODEL)
    stored = json.loads(cloud.artifacts.read_object(uri) or b"{}")
    forged = {
        **stored,
        "state": "returning",
        "version_name": version_name,
        "version_id": version_name.rpartition("@")[2],
    }
    forged["before"] = {**stored["before"], "champion_name": version_name, "champion_id": forged["version_id"]}
    scene = Scene(cloud, "", f"r{uuid.uuid4().hex[:12]}")
    name = ObjectAddress.parse(uri).path
    code = FORGE.format(bucket=cloud.settings.bucket, name=name, data=json.dumps(forged))
    with pytest.raises(RuntimeError, match=r"storage\.objects\.create"):
        run_job(scene, code)
    assert json.loads(cloud.artifacts.read_object(uri) or b"{}") == stored


def assert_weighted(found: dict[str, Any]) -> None:
    """A carrier that is often late counted three times in all that was trained and measured; rows are still rows."""
    evaluation, parts = found["evaluation"], found["statistics"]["splits"]
    assert parts["train"]["weight"]["mean"] == pytest.approx(1.4, rel=0.02)
    assert evaluation["label_rate"] > parts["test"]["label"]["mean"] + 0.05
    assert evaluation["rows"] == parts["test"]["rows"]


def test_the_documented_roles_are_enough(local_cloud: Any, spec: Any, make_run: Any) -> None:
    """From the plan to the endpoint, back to the version before, cleaned and watched."""
    roles = Roles(local_cloud)
    parent = f"projects/{local_cloud.project}/locations/{local_cloud.region}"
    agents = {row.role: row for row in documented_roles() if row.who.startswith("Vertex")}
    with roles.in_force():
        found = run_whole(spec, make_run())
        assert found["decision"]["verdict"] == "promote"
        assert_weighted(found)
        assert found["deployment"]["staging"]["passed"]
        first, endpoint = found["deployment"]["version_name"], found["deployment"]["endpoint_name"]
        assert len(predict(local_cloud, endpoint)) == len(INSTANCES)
        newer = replace_champion(local_cloud, parent, found["report"]["model_uri"])
        for path, body in run_book(parent, first, newer):
            post(local_cloud, path, body)
        champion = Cloud().registry.find_by_alias(MODEL, vertex.CHAMPION)
        assert champion is not None
        assert champion.version_name == first
        assert newer not in Cloud().endpoints.read_endpoint(endpoint).deployed
        assert_requests_wait(local_cloud, roles, agents["roles/bigquery.dataEditor"], endpoint)
        assert run_scoring(spec, make_run(run_id="manual__score"))["scoring"]["rows"] == DAYS * PER_DAY
        for day, (role, permission) in enumerate(SCORING_ROLES.items(), start=21):
            roles.grant(without=agents[role])
            another = make_run(run_id=f"manual__{day}", logical_date=datetime(2013, 11, day, 3, tzinfo=UTC))
            with pytest.raises(Exception, match=rf"{permission}.* for service-\S+gserviceaccount\.com"):
                run_scoring(spec, another, destination=f"retraining.{MODEL}_{day}")
        roles.grant()
        measured, decided = watch(make_run, spec, 2 * len(INSTANCES))
        assert decided["because"] == "new_days", (
            measured
        )  # its source ended years before: no day of the drift can be learned
        forge_rollout(newer)
        assert clean(make_run)["maintenance_uri"]
        champion = Cloud().registry.find_by_alias(MODEL, vertex.CHAMPION)
        assert champion is not None
        assert champion.version_name == first
