"""Tables by wildcards: the newest one's columns, in the place of each by its name, and what tells them apart."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

from packages.localcloud.tests.bigquery.patches.conftest import rows_of, run

DATASET = "by_wildcard"


@pytest.fixture(scope="module")
def client(local_cloud):
    """Two days of events, of which the newer one has a column more and another order; and what does not fit."""
    made = bigquery.Client()
    made.create_dataset(DATASET, exists_ok=True)
    for statement in (
        "CREATE OR REPLACE TABLE {d}.events_20240101 AS SELECT 'x' AS name, 1 AS n",
        "CREATE OR REPLACE TABLE {d}.events_20240102 AS SELECT 2 AS n, 'y' AS name, [STRUCT(5 AS k)] AS parts",
        "CREATE OR REPLACE TABLE {d}.other_1 AS SELECT 1 AS n",
        "CREATE OR REPLACE TABLE {d}.other_2 AS SELECT 'z' AS n",
        "CREATE OR REPLACE VIEW {d}.seen_1 AS SELECT 1 AS n",
    ):
        run(made, statement.format(d=DATASET)).result()
    return made


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        pytest.param("SELECT n, name FROM `{d}.events_*` ORDER BY n", [(1, "x"), (2, "y")], id="by name"),
        pytest.param("SELECT * FROM `{d}.events_*` WHERE n = 1", [(1, "x", [])], id="the newest one's columns"),
        pytest.param(
            "SELECT * FROM `{d}.events_*` WHERE _TABLE_SUFFIX = '20240101' OR n = 2 ORDER BY n",
            [(1, "x", []), (2, "y", [{"k": 5}])],
            id="a suffix or something else",
        ),
        pytest.param("SELECT t.n FROM `{d}`.`events_*` t WHERE t._TABLE_SUFFIX > '20240101'", [(2,)], id="an alias"),
        pytest.param("SELECT MAX(_TABLE_SUFFIX) FROM `{d}.events_2024*`", [("0102",)], id="a longer prefix"),
        pytest.param("SELECT COUNT(*), '`{d}.events_*`' FROM `{d}.events_*`", [(2, "`{d}.events_*`")], id="in a text"),
        pytest.param(
            "SELECT a.n, b.n FROM `{d}.events_*` a, `{d}.events_*` b"
            " WHERE a._TABLE_SUFFIX = b._TABLE_SUFFIX ORDER BY 1",
            [(1, 1), (2, 2)],
            id="twice",
        ),
        pytest.param(
            "SELECT part.k FROM `{d}.events_*` AS t, UNNEST(t.parts) AS part WHERE _TABLE_SUFFIX LIKE '2024%'",
            [(5,)],
            id="unnested",
        ),
        pytest.param(
            "DECLARE day STRING DEFAULT '20240102'; SELECT n FROM `{d}.events_*` WHERE _TABLE_SUFFIX = day",
            [(2,)],
            id="in a script",
        ),
        pytest.param(
            "SELECT n FROM (SELECT *, PARSE_DATE('%Y%m%d', _TABLE_SUFFIX) AS day FROM `{d}.events_*`)"
            " WHERE day = '2024-01-02'",
            [(2,)],
            id="a suffix as a column",
        ),
    ],
)
def test_rows(client, query, rows):
    found = rows_of(client, query.replace("{d}", DATASET))
    expected = [tuple(str(v).replace("{d}", DATASET) if isinstance(v, str) else v for v in row) for row in rows]
    assert [tuple(row.values()) for row in found] == expected


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("SELECT * FROM `{d}.nothing_*`", exceptions.BadRequest, "does not match any table"),
        ("SELECT * FROM `nowhere.events_*`", exceptions.NotFound, "nowhere"),
        ("SELECT * FROM `{d}.seen_*`", exceptions.BadRequest, "Views cannot be queried through prefix"),
        ("SELECT * FROM `{d}.other_*`", exceptions.MethodNotImplemented, "n is INT64 in other_1 and STRING in other_2"),
        ("SELECT * FROM {d}.events_*", exceptions.BadRequest, "backticks"),
        ("SELECT * FROM `{d}.ev*_20240101`", exceptions.BadRequest, "at its end"),
        ("SELECT * FROM `events_*`", exceptions.MethodNotImplemented, "dataset"),
        ("DELETE FROM `{d}.events_*` WHERE TRUE", exceptions.BadRequest, "only be read"),
        ("CREATE VIEW {d}.v AS SELECT n FROM `{d}.events_*`", exceptions.MethodNotImplemented, "view over tables"),
        (
            "SELECT t FROM `{d}.events_*` t WHERE _TABLE_SUFFIX > ''",
            exceptions.MethodNotImplemented,
            "name its columns",
        ),
        (
            "SELECT n FROM (SELECT * FROM `{d}.events_*`) WHERE _TABLE_SUFFIX > ''",
            exceptions.BadRequest,
            "_TABLE_SUFFIX",
        ),
        (
            "SELECT n FROM `{d}.events_*` FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()",
            exceptions.MethodNotImplemented,
            "FOR SYSTEM_TIME",
        ),
    ],
)
def test_what_is_refused(client, query, kind, message):
    with pytest.raises(kind, match=message):
        rows_of(client, query.replace("{d}", DATASET))


def test_bytes_are_those_of_all_tables(client):
    """In a dry run and a run, and the limit of bytes holds."""
    query = f"SELECT n FROM `{DATASET}.events_*`"
    dry = run(client, query, job_config=bigquery.QueryJobConfig(dry_run=True))
    assert (dry.total_bytes_processed, run(client, query).total_bytes_processed) == (16, 16)


def test_what_a_policy_hides_stays_hidden(client):
    """Of each table, behind a wildcard too."""
    run(client, f"CREATE OR REPLACE TABLE {DATASET}.held_1 AS SELECT n FROM UNNEST([1, 2]) AS n").result()
    policy = f"CREATE ROW ACCESS POLICY few ON {DATASET}.held_1 GRANT TO ('allAuthenticatedUsers') FILTER USING (n > 1)"
    run(client, policy).result()
    assert rows_of(client, f"SELECT n FROM `{DATASET}.held_*`") == rows_of(client, f"SELECT n FROM {DATASET}.held_1")
