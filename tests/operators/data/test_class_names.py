"""Labels that are texts, on the local cloud's BigQuery: numbers in the run table, and texts that nobody listed."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery

from retraining.core.errors import DataError, SpecError
from retraining.core.spec.files import load_spec
from retraining.hooks import check_queries
from retraining.hooks.cloud import Cloud
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Which third is it?
data:
  query: {name}/examples.sql
  split: hash
  key: id
  test_percent: 20
  GOLDEN
  checks: {{min_rows: 900, label_rate: [0.1, 0.9]}}
features: [{{name: size, kind: numeric}}]
label: {{name: third, kind: multiclass, classes: CLASSES}}
training: {{model: dense}}
evaluation: {{metric: accuracy, min_value: 0.6, promote: {{min_examples: 10}}}}
"""
SOURCE = r"""
CREATE OR REPLACE TABLE named.rows AS
SELECT
  CONCAT('key-', CAST(i AS STRING)) AS id,
  CAST(i AS FLOAT64) AS size,
  CASE MOD(i, 3) WHEN 0 THEN 'the "1st"' WHEN 1 THEN 'l\'autre\n☃' ELSE 'third' END AS third,
FROM UNNEST(GENERATE_ARRAY(0, 998)) AS i
"""
CLASSES = '["the \\"1st\\"", "l\'autre\\n☃", third]'
QUERY = "SELECT id, size, third FROM named.rows"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with 999 rows, a third of each class."""
    return make_source(local_cloud, "named", SOURCE)


@pytest.fixture
def make_data_run(client, make_run, include: Path) -> Any:
    """Makes runs of one model of this test's own."""
    name = f"named_{uuid.uuid4().hex[:12]}"

    def make(classes: str = CLASSES, query: str = QUERY, golden: str = "") -> DataRun:
        spec = SPEC.replace("CLASSES", classes).replace("GOLDEN", "golden_query: {name}/golden.sql" if golden else "")
        run = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=f"manual__{uuid.uuid4().hex}"), spec)
        run.write(query, **({"golden": golden} if golden else {}))
        return run

    return make


def test_texts_are_classes_from_the_run_table_on(client, make_data_run, include) -> None:
    """Their numbers are their places in the file's list, and BigQuery takes the query before any run."""
    run = make_data_run(golden="SELECT CONCAT('golden-', id) AS id, size, third FROM named.rows LIMIT 30")
    spec = load_spec(include / "models" / f"{run.name}.yaml")
    assert "their columns fit" in check_queries.check(spec, include, Cloud().session)
    run.plan()
    taken = run.snapshot()
    checked = run.check_data()
    assert (checked["passed"], checked["quarantined"]) == (True, [])
    assert [text.partition(" has another whole number")[0] for text in checked["warnings"]] == ["size"]
    rows = client.query_and_wait(f"SELECT id, third FROM `{taken['table']}`")
    assert {(int(row.id.removeprefix("key-")) % 3, row.third) for row in rows} == {(0, 0), (1, 1), (2, 2)}


def test_a_text_that_nobody_listed_ends_the_run_before_anything_is_paid(make_data_run) -> None:
    """With the text and its rows."""
    run = make_data_run(classes='["the \\"1st\\"", third, other]')
    run.plan()
    run.snapshot()
    with pytest.raises(AirflowFailException) as refused:
        run.check_data()
    assert '"l\'autre\\n☃" (333) in all splits' in str(refused.value)
    assert "add them to label.classes" in str(refused.value)


def test_one_in_the_frozen_set_ends_it_too_and_no_table_is_made(client, local_cloud, make_data_run) -> None:
    """So that the query can be corrected: a frozen set's table stays as it is for good."""
    third = "IF(MOD(CAST(size AS INT64), 2) = 0, 'new', third) AS third"
    golden = f"SELECT CONCAT('golden-', id) AS id, size, {third} FROM named.rows"
    run = make_data_run(golden=golden)
    run.plan()
    with refuses(AirflowFailException, where="golden.sql, column third", found="'new' (500)"):
        run.snapshot()
    tables = [table.table_id for table in client.list_tables(local_cloud.dataset)]
    assert not [name for name in tables if name.startswith(f"golden_{run.name}")]


def test_numbers_are_not_taken_for_texts(make_data_run, include) -> None:
    """Neither by make check-models nor by a run."""
    run = make_data_run(query="SELECT id, size, MOD(CAST(size AS INT64), 3) AS third FROM named.rows")
    with refuses((DataError, SpecError), where="column third", found="INTEGER", expected="STRING"):
        check_queries.check(load_spec(include / "models" / f"{run.name}.yaml"), include, Cloud().session)
    run.plan()
    with refuses(AirflowFailException, where="column third", found="INTEGER"):
        run.snapshot()
