"""Features named by patterns, on the local cloud's BigQuery: the plan asks the query for its columns."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from tests.operators.data.test_hash_split import SPEC
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun, make_source

SOURCE = """
CREATE OR REPLACE TABLE patterned.rows AS
SELECT CONCAT('key-', CAST(i AS STRING)) AS id, CAST(i AS FLOAT64) AS mean_size, i * 2 AS mean_weight, 'x' AS colour,
  MOD(DIV(i, 100), 2) AS odd
FROM UNNEST(GENERATE_ARRAY(0, 999)) AS i
"""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a thousand rows."""
    return make_source(local_cloud, "patterned", SOURCE)


@pytest.fixture
def make_data_run(client, make_run, include: Path) -> Any:
    """Runs of a model of patterns."""
    name = f"patterned_{uuid.uuid4().hex[:12]}"

    def make(run_id: str, query: str = "SELECT * FROM patterned.rows", names: str = "mean_*") -> DataRun:
        spec = SPEC.replace("{{name: size, kind: numeric}}", f"{{{{names: '{names}', kind: numeric}}}}")
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=run_id), spec)
        night.write(query)
        return night

    return make


def test_columns_that_come_later_are_told_before_they_are_learnt(make_data_run, local_cloud) -> None:
    """The plan has each column; a new one is another run, whose data is refused until the spec accepts it."""
    first = make_data_run("first")
    planned = first.plan()
    path = planned["run_uri"].partition(f"{local_cloud.bucket}/")[2]
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(f"{path}/plan.json")
    stored = json.loads(blob.download_as_bytes())
    assert [feature["name"] for feature in stored["spec"]["features"]] == ["mean_size", "mean_weight"]
    assert stored["feature_patterns"] == {"mean_*": ["mean_size", "mean_weight"]}
    first.snapshot()
    assert first.check_data()["passed"]
    later = make_data_run("later", "SELECT *, 1.5 AS mean_height FROM patterned.rows")
    assert later.plan(as_of="2013-11-21T03:00:00Z")["run_key"] != planned["run_key"]
    later.snapshot()
    with refuses(AirflowFailException, found="mean_height (FLOAT)"):
        later.check_data()


def test_a_pattern_of_no_column_ends_the_run_at_its_plan(make_data_run) -> None:
    with refuses(AirflowFailException, where="features", found="'max_*'"):
        make_data_run("none", names="max_*").plan()
