"""The ledger's table on the local cloud: what a row says is found by SQL, once, with what came of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core.data.sql import Query
from retraining.core.errors import DataError
from retraining.core.naming import bigquery, storage
from retraining.operators.monitoring.ledger import store_rows
from tests.support.refusals import refuses
from tests.support.scenes.ledger import AT_ONCE, decide, ledger_id, result, rules, signal, signals
from tests.support.small_model import AS_OF

SINCE = AS_OF - timedelta(days=7)


@pytest.fixture(scope="module")
def cloud(local_cloud: Any) -> Any:
    """The hooks, on the local cloud."""
    from google.cloud import bigquery as client

    from retraining.hooks.cloud import Cloud

    client.Client(project=local_cloud.project, location=local_cloud.region).create_dataset(
        local_cloud.dataset, exists_ok=True
    )
    return Cloud()


def ask(cloud: Any, select: str, unique: str) -> list[dict[str, Any]]:
    """Rows of a question to the table, `{table}` in it."""
    table = bigquery.ledger_table(cloud.settings.project, cloud.settings.dataset)
    rows: list[dict[str, Any]] = cloud.warehouse.run_query(
        Query(sql=select.replace("{table}", f"`{table}`")), unique, "test"
    ).rows
    return rows


def make_rows(cloud: Any, model: str, *hours: float, **known: Any) -> list[d.Ledger]:
    """Rows with their signals where they were measured."""
    rows: list[d.Ledger] = []
    for hour in hours:
        seen = signals(signal(value=0.4), signal("skew:it's", state="not_judged", because="feature_gone"), hours=hour)
        seen = seen.model_copy(update={"model": model})
        folder = f"{storage.monitors_uri(cloud.settings.bucket, model)}/{ledger_id(hour)}"
        uri = storage.document_uri(folder, "signals")
        cloud.artifacts.write_once(uri, seen.to_bytes())
        row = decide(seen, rows, rules(**AT_ONCE), **known)
        rows.append(row.model_copy(update={"signals_uri": uri}))
    return rows


def test_a_row_is_found_by_sql_once_with_its_signals(cloud: Any) -> None:
    """Stored again by another try, and by the next monitor run, it is still one."""
    rows = make_rows(cloud, "once", 0, 1)
    for attempt in range(3):
        store_rows(cloud, rows[: attempt + 1], SINCE, f"run|{attempt}")
    select = """
      SELECT ledger_id, outcome, cause, causes, named_states, champion_version, requests, ledger.words, one.kind,
        one.value, one.threshold, one.because, retrain_as_of, ARRAY_LENGTH(signals) AS seen, result
      FROM {table} AS ledger, UNNEST(signals) AS one WHERE model = 'once' AND one.subject = 'carrier' ORDER BY as_of
    """
    found = ask(cloud, select, "test_once")
    assert [row["ledger_id"] for row in found] == ["at-0", "at-1"]
    first = found[0]
    assert (first["outcome"], first["cause"], first["causes"]) == ("retrain", "skew:carrier", ["skew:carrier"])
    assert first["named_states"] == [{"cause": "skew:it's", "state": "feature_gone"}]
    assert (first["kind"], first["value"], first["threshold"], first["because"]) == ("skew", 0.4, 0.3, None)
    assert (first["champion_version"], first["requests"], first["seen"]) == ("1", 500, 2)
    assert first["words"] == rows[0].message
    assert first["retrain_as_of"] == AS_OF
    assert not any((first["result"] or {}).values())
    assert found[1]["retrain_as_of"] is None


def test_what_came_of_an_order_completes_its_row(cloud: Any) -> None:
    """Once it is known, and again when a failed run was cleared."""
    (ordered,) = make_rows(cloud, "completed", 0)
    store_rows(cloud, [ordered], SINCE, "run|0")
    for hour, state in ((1, "failed"), (2, "rejected")):
        came = result(0, state).model_copy(update={"run_key": "20131120t030000z-0123456789ab", "gain": -0.25})
        (row,) = make_rows(cloud, "completed", hour, results=(came,))
        store_rows(cloud, [ordered, row], SINCE, f"run|{hour}")
        select = "SELECT result.* FROM {table} WHERE model = 'completed' AND ledger_id = 'at-0'"
        (found,) = ask(cloud, select, f"test_completed_{hour}")
        assert found == {
            "dag_run_id": "x",
            "run_key": "20131120t030000z-0123456789ab",
            "state": state,
            "version_id": None,
            "gain": -0.25,
        }


def test_rows_that_could_not_be_stored_come_with_the_next(cloud: Any) -> None:
    """After an outage of BigQuery the table has no gap."""
    rows = make_rows(cloud, "outage", 0, 1, 2)
    store_rows(cloud, rows[:1], SINCE, "run|0")
    store_rows(cloud, rows, SINCE, "run|2")
    found = ask(cloud, "SELECT ledger_id FROM {table} WHERE model = 'outage' ORDER BY as_of", "test_outage")
    assert [row["ledger_id"] for row in found] == ["at-0", "at-1", "at-2"]


def test_a_dataset_that_is_not_there_is_named(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is a table that is another's."""
    rows = make_rows(cloud, "nowhere", 0)
    monkeypatch.setattr(bigquery, "ledger_table", lambda project, _: f"{project}.nowhere.retraining_ledger")
    with pytest.raises(DataError, match="nowhere"):
        store_rows(cloud, rows, SINCE, "nowhere|0")
    other = f"{cloud.settings.project}.{cloud.settings.dataset}.not_the_ledger"
    cloud.warehouse.run_query(Query(sql=f"CREATE TABLE IF NOT EXISTS `{other}` (n INT64)"), "test_other", "test")
    monkeypatch.setattr(bigquery, "ledger_table", lambda *_: other)
    with refuses(DataError, where="not_the_ledger", found="schema_version", way_out="Rename or delete"):
        store_rows(cloud, rows, SINCE, "other|0")


def test_the_table_has_the_columns_that_are_asked_for(cloud: Any) -> None:
    """By day, and the models apart."""
    from retraining.core.monitoring import ledger

    store_rows(cloud, make_rows(cloud, "columns", 0), SINCE, "columns|0")
    table = bigquery.ledger_table(cloud.settings.project, cloud.settings.dataset)
    assert [column["name"] for column in cloud.warehouse.table_schema(table)] == list(ledger.TABLE_COLUMNS)
