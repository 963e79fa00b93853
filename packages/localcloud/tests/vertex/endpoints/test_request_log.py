"""What waits for BigQuery is brought over in pieces that one insert can hold."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import Forbidden, NotFound
from google.cloud import aiplatform_v1

from localcloud.vertex.endpoints import request_log
from localcloud.vertex.endpoints.request_log import RequestLog, payload_text
from localcloud.vertex.resources.store import Store

NOBODYS = "p.d.nobodys"


@pytest.fixture
def store(tmp_path: Path):
    """A collection with five rows of a hundred letters, another one beside it."""
    made = Store(tmp_path / "store.db")
    for index in range(5):
        made.put_document("log", "table", {"payload": str(index) * 100})
        made.put_document("other", "table", {})
    yield made
    made.close()


@pytest.mark.parametrize(
    ("limit", "characters", "rows"),
    [(-1, None, 5), (3, None, 3), (-1, 1, 1), (-1, 250, 3), (2, 250, 2), (-1, 10_000, 5)],
)
def test_long_rows_are_fewer_and_one_at_least(store, limit: int, characters: int | None, rows: int) -> None:
    found = store.list_documents("log", limit=limit, max_characters=characters)
    assert [body["payload"][0] for _, _, body in found] == [str(index) for index in range(rows)]


def test_images_are_logged_as_they_were_sent() -> None:
    assert payload_text({"image": {"b64": "iVBORw0KGgo="}}) == '{"image":{"b64":"iVBORw0KGgo="}}'
    assert payload_text([0.25, float("nan")]) == '[0.25,"NaN"]'


class _Tables:
    """A BigQuery client with tables; a row of one that is not there is refused, and of one that is nobody's."""

    def __init__(self) -> None:
        self.rows: dict[str, list[str]] = {}
        self.come = threading.Condition()

    def bigquery(self) -> _Tables:
        """As the source of clients."""
        return self

    def create_table(self, table: Any, *, exists_ok: bool, timeout: float) -> None:
        name = f"{table.project}.{table.dataset_id}.{table.table_id}"
        if name == NOBODYS:
            raise Forbidden(name)
        self.rows.setdefault(name, [])

    def insert_rows_json(self, table: str, rows: list[dict[str, Any]], **_: Any) -> list[Any]:
        with self.come:
            if table not in self.rows:
                raise NotFound(table)
            self.rows[table] += [row["endpoint"] for row in rows]
            self.come.notify_all()
        return []

    def wait_for(self, table: str, rows: list[str]) -> None:
        with self.come:
            assert self.come.wait_for(lambda: self.rows.get(table) == rows, timeout=60), self.rows


def test_a_table_that_takes_nothing_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that somebody deleted is made again; rows of one that may not be written wait, and others pass them."""
    monkeypatch.setattr(request_log, "_RETRY_S", 0.01)
    monkeypatch.setattr(request_log, "_BATCH", 2)
    store, client = Store(tmp_path / "store.db"), _Tables()
    log = RequestLog(store, client)

    def ask(table: str, endpoint: str) -> None:
        asked = aiplatform_v1.Endpoint(name=f"projects/p/locations/l/endpoints/{endpoint}")
        config = asked.predict_request_response_logging_config
        config.enabled, config.sampling_rate = True, 1
        config.bigquery_destination.output_uri = f"bq://{table}"
        log.record(asked, "1", [{}], [{}])

    ask("p.d.first", "a")
    client.wait_for("p.d.first", ["a"])
    for number in range(3):
        ask(NOBODYS, f"never{number}")
    with client.come:
        del client.rows["p.d.first"]
    ask("p.d.first", "b")
    ask("p.d.second", "c")
    client.wait_for("p.d.second", ["c"])
    client.wait_for("p.d.first", ["b"])
    log.close()
    assert [key for _, key, _ in store.list_documents("request log")] == [NOBODYS] * 3
    store.close()
