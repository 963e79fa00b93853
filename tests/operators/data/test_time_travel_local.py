"""A run that reads its tables as they were, on the local cloud's BigQuery."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.cloud import bigquery

from tests.operators.data.test_hash_split import SPEC
from tests.support.scenes.data_tasks import DataRun, make_source

SOURCE = """
CREATE OR REPLACE TABLE travelled.rows AS
SELECT CONCAT('key-', CAST(i AS STRING)) AS id, CAST(i AS FLOAT64) AS size, MOD(DIV(i, 100), 2) AS odd
FROM UNNEST(GENERATE_ARRAY(0, 999)) AS i
"""
QUERY = """
SELECT rows.id, rows.size, again.odd
FROM travelled.rows AS rows FOR SYSTEM_TIME AS OF @as_of
JOIN travelled.rows AS again FOR SYSTEM_TIME AS OF @as_of USING (id)
"""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a thousand rows."""
    return make_source(local_cloud, "travelled", SOURCE)


def next_second() -> datetime:
    """Wait for the clock's next whole second to pass; give it."""
    second = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    while datetime.now(UTC) <= second:
        time.sleep(0.01)
    return second


def test_a_snapshot_has_the_rows_as_they_were(client, make_run, include: Path) -> None:
    """Also when they were corrected and deleted since: a run again reads what the first one read."""
    as_of = next_second()
    for statement in (
        "UPDATE travelled.rows SET size = -1 WHERE size < 500",
        "DELETE FROM travelled.rows WHERE size > 900",
    ):
        client.query_and_wait(statement)
    name = f"travelled_{uuid.uuid4().hex[:12]}"
    spec = SPEC.replace("  key: id\n", "  key: id\n  time_travel: true\n")
    night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_after=datetime.now(UTC)), spec)
    night.write(QUERY)
    night.plan(as_of=as_of.isoformat().replace("+00:00", "Z"))
    taken = night.snapshot()
    assert taken["rows"] == 1000
    (row,) = client.query_and_wait(f"SELECT MIN(size) AS least, MAX(size) AS most FROM `{taken['table']}`")
    assert (row.least, row.most) == (0.0, 999.0)
