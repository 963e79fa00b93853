"""Trained models, scored whole from a table and from JSON lines: answers are those of the endpoint."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import aiplatform_v1, bigquery, storage

from retraining.core.settings import include_path
from retraining.core.spec.features import OUTPUT_NAMES, Feature
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.operators.planning import run_plan
from retraining.operators.scoring import scoring_plan
from tests.support.airflow_release import AirflowFailException
from tests.support.scenes.asked_endpoint import predict, retire
from tests.support.scenes.examples import copy_example, make_include, rename_model
from tests.support.scenes.whole_run import run_scoring, run_whole

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
NIGHT = datetime(2013, 11, 20, 3, tzinfo=UTC)
MODELS = ("departures", "sklearn", "auxiliary", "xgboost", "regression", "keyed")
"""Arrays and a count; other frameworks, in their own containers; several outputs; a number with quantiles; a key."""


def scored_spec(name: str, include: Path, bucket: str) -> ModelSpec:
    """A shipped model or an example, with a section `scoring`."""
    if name == "departures":
        path = include / "models" / "departures.yaml"
        path.parent.mkdir()
        path.write_text((include_path() / "models" / "departures.yaml").read_text())
        (include / "sql").symlink_to(include_path() / "sql")
    else:
        path = copy_example("smallest" if name == "keyed" else name, include)
    path = rename_model(path, f"scored_{name}")
    values = yaml.safe_load(path.read_text())
    if name == "keyed":
        values["deployment"] = values.get("deployment", {}) | {"key_input": True}
    values["scoring"] = {
        "table": f"retraining.{name}_unseen",
        "destination": f"retraining.{name}_scores",
        "allow_sources": ["gs://b-b/in/", f"gs://{bucket}/{name}-lines/"],
        "allow_destinations": ["gs://b-b/", f"gs://{bucket}/"],
    }
    path.write_text(yaml.safe_dump(values))
    return load_spec(path)


def as_sent(feature: Feature, value: Any) -> Any:
    """A feature as a request has it; None where JSON cannot say it."""
    if feature.kind == "sequence":
        return value[-feature.length :] if len(value) >= feature.length else None
    if feature.kind == "numeric":
        return None if value is None or math.isnan(value) else float(value)
    return "" if value is None else str(value)


def instances(spec: ModelSpec, table: str) -> dict[str, dict[str, Any]]:
    """The rows that a request can hold, by key."""
    rows = bigquery.Client().query_and_wait(f"SELECT * FROM `{table}`")
    sent = {
        str(row[spec.data.key]): {each.name: as_sent(each, row[each.name]) for each in spec.features} for row in rows
    }
    key = {spec.data.key} if spec.deployment.key_input else set()
    return {name: values | dict.fromkeys(key, name) for name, values in sent.items() if None not in values.values()}


def ask(endpoint_name: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the endpoint says, by key."""
    keys = list(rows)
    parts = [keys[start : start + 100] for start in range(0, len(keys), 100)]
    return {
        key: answer
        for part in parts
        for key, answer in zip(part, predict(endpoint_name, [rows[key] for key in part]), strict=True)
    }


def assert_alike(found: Any, expected: Any) -> None:
    """To 1e-5 in each number."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, abs=1e-5), name
    else:
        assert found == pytest.approx(expected, abs=1e-5)


def jobs_of(model: str) -> list[str]:
    """The batch predictions that were paid for a model."""
    from retraining.hooks.cloud import Cloud

    settings = Cloud().settings
    client = aiplatform_v1.JobServiceClient(
        client_options={"api_endpoint": f"{settings.region}-aiplatform.googleapis.com"}
    )
    parent = f"projects/{settings.project}/locations/{settings.region}"
    listed = client.list_batch_prediction_jobs(parent=parent)
    return [job.name for job in listed if job.labels["retraining-model"] == model]


@pytest.mark.parametrize("name", MODELS)
def test_a_table_and_files_are_scored_as_the_endpoint_answers(
    name: str, local_cloud, make_run, monkeypatch, tmp_path
) -> None:
    """Each row once, by one job for the table and one for the files."""
    local_cloud.seed()
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    include = make_include(tmp_path)
    for module in (run_plan, scoring_plan):
        monkeypatch.setattr(module, "include_path", lambda: include)
    spec = scored_spec(name, include, local_cloud.bucket)
    night = run_whole(spec, make_run(run_id=f"manual__{name}", logical_date=NIGHT))
    client, source = bigquery.Client(), f"retraining.{name}_unseen"
    test_start = night["plan"]["window"]["test_start"]
    client.query_and_wait(
        f"CREATE OR REPLACE TABLE {source} AS SELECT * FROM `{night['snapshot']['table']}`"
        f" WHERE CAST(span AS STRING) >= '{test_start}' ORDER BY row_hash LIMIT 700"
    )
    said = ask(night["deployment"]["endpoint_name"], rows := instances(spec, source))
    assert len(said) > 300

    result = run_scoring(spec, make_run(run_id=f"manual__{name}_table", logical_date=NIGHT))["scoring"]
    written = list(client.query_and_wait(f"SELECT * FROM retraining.{name}_scores"))
    (counted,) = client.query_and_wait(f"SELECT COUNT(*) AS rows_ FROM {source}")
    assert result["rows"] == len(written) == counted.rows_
    found = {str(row[spec.data.key]): row for row in written}
    (output,) = set(found[next(iter(said))].keys()) & set(OUTPUT_NAMES)
    for key, answer in said.items():
        assert_alike(json.loads(found[key].answer_json), answer)
        assert_alike(found[key][output], answer[output] if isinstance(answer, dict) else answer)

    if spec.deployment.key_input:
        assert {key: answer[spec.data.key] for key, answer in said.items()} == dict(zip(said, said, strict=True))
        with pytest.raises(AirflowFailException, match="takes the key with each row"):
            run_scoring(spec, make_run(run_id="manual__files"), files="gs://b-b/in/*", destination="gs://b-b/out")
        return
    bucket = storage.Client().bucket(local_cloud.bucket)
    lines = [json.dumps({spec.data.key: key, **values}) for key, values in rows.items()]
    for number, part in enumerate((lines[:200], lines[200:])):
        bucket.blob(f"{name}-lines/{number}.jsonl").upload_from_string("\n".join(part))
    folder = f"gs://{bucket.name}/{name}-answers"
    files = {"files": f"gs://{bucket.name}/{name}-lines/*.jsonl", "destination": folder}
    run_scoring(spec, make_run(run_id=f"manual__{name}_files", logical_date=NIGHT), **files)
    current = json.loads(bucket.blob(f"{name}-answers/2013-11-20/current.json").download_as_bytes())
    prefix = current["predictions"].removeprefix(f"gs://{bucket.name}/").rstrip("*")
    answers = [
        json.loads(line)
        for blob in bucket.list_blobs(prefix=prefix)
        for line in blob.download_as_bytes().decode().splitlines()
    ]
    assert sorted(line["key"] for line in answers) == sorted(said)
    for line in answers:
        assert_alike(line["prediction"], said[line["key"]])
    assert len(jobs_of(spec.name)) == 2
    retire(night["deployment"]["endpoint_name"])
