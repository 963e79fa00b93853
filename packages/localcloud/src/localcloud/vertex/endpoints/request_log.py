"""Request-response logging: a sample of an endpoint's requests and answers on their way to BigQuery.

Comes in: what was asked and answered. Goes out: rows of the endpoint's log table in Vertex AI's schema. Rows wait in
the store, so that neither a stop nor a BigQuery that is away loses any; they are usually in the table within a second.
https://cloud.google.com/vertex-ai/docs/predictions/online-prediction-logging#request-response-logging
"""

from __future__ import annotations

import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from google.cloud.aiplatform_v1.types import Endpoint

from localcloud.vertex.resources.clients import Client, Clients
from localcloud.vertex.resources.store import Store, now
from localcloud.vertex.resources.validation import split_bigquery_uri
from localcloud.vertex.wire import names

LOGGER = logging.getLogger(__name__)
# A JSON value.
Json = Any
DEFAULT_TABLE = "request_response_logging"
SCHEMA: Sequence[Mapping[str, str]] = (
    {"name": "endpoint", "type": "STRING", "mode": "NULLABLE"},
    {"name": "deployed_model_id", "type": "STRING", "mode": "NULLABLE"},
    {"name": "logging_time", "type": "TIMESTAMP", "mode": "NULLABLE"},
    {"name": "request_id", "type": "NUMERIC", "mode": "NULLABLE"},
    {"name": "request_payload", "type": "STRING", "mode": "REPEATED"},
    {"name": "response_payload", "type": "STRING", "mode": "REPEATED"},
)
_COLLECTION = "request log"
_BATCH = 500
_BATCH_CHARACTERS = 8_000_000  # BigQuery takes 10 MB in one insert, and images are long
_GATHER_S = 0.2
_RETRY_S = 2.0


def complete_destination(endpoint: Endpoint) -> None:
    """Fill in the dataset and table that an enabled logging config leaves out, as the service names them."""
    config = endpoint.predict_request_response_logging_config
    parts = split_bigquery_uri(config.bigquery_destination.output_uri) if config.enabled else None
    if parts is not None:
        project, dataset, table = parts
        generated = re.sub(r"\W", "_", f"logging_{endpoint.display_name}_{names.last_part(endpoint.name)}")
        config.bigquery_destination.output_uri = f"bq://{project}.{dataset or generated}.{table or DEFAULT_TABLE}"


class RequestLog:
    """Takes rows and brings them to BigQuery.

    Args:
        store: Where rows wait.
        clients: Where the BigQuery client comes from.
        clock: Gives the time of a request.
    """

    def __init__(self, store: Store, clients: Clients, clock: Callable[[], datetime] = now) -> None:
        self._store = store
        self._clients = clients
        self._clock = clock
        self._chance = random.Random()
        self._ready: set[str] = set()
        self._pending = threading.Event()
        self._closed = threading.Event()
        self._flushing = threading.Lock()
        self._pending.set()  # rows may wait from before a restart
        self._thread = threading.Thread(target=self._ship_rows, name="request-log", daemon=True)
        self._thread.start()

    def record(
        self, endpoint: Endpoint, deployed_model_id: str, requests: Sequence[Json], responses: Sequence[Json]
    ) -> None:
        """Keep a request and its answer when the endpoint logs and the sample hits.

        Args:
            endpoint: Where it was asked.
            requests: Instances, JSON values.
            responses: Predictions, JSON values.
        """
        config = endpoint.predict_request_response_logging_config
        if not config.enabled or self._chance.random() >= config.sampling_rate:
            return
        row = {
            "endpoint": names.last_part(endpoint.name),
            "deployed_model_id": deployed_model_id,
            "logging_time": self._clock().isoformat(),
            "request_id": names.new_id(),
            "request_payload": [payload_text(value) for value in requests],
            "response_payload": [payload_text(value) for value in responses],
        }
        self._store.put_document(_COLLECTION, config.bigquery_destination.output_uri.removeprefix("bq://"), row)
        self._pending.set()

    def close(self, timeout_s: float = 3.0) -> None:
        """Bring over what waits, as far as BigQuery still answers; the rest waits for the next start."""
        self._closed.set()
        self._pending.set()
        self._thread.join(timeout_s)

    def _ship_rows(self) -> None:
        while True:
            self._pending.wait()
            self._pending.clear()
            if not self._closed.is_set():
                time.sleep(_GATHER_S)
            held: set[str] = set()
            while self._flush(held):
                pass
            if held and not self._closed.wait(_RETRY_S):
                self._pending.set()
            if self._closed.is_set():
                return

    def _flush(self, held: set[str]) -> int:
        """Bring a batch over, but for tables that are held; give how many rows were looked at.

        Args:
            held: Tables that took nothing in this round; those of this batch are added. They hold up no other.
        """
        with self._flushing:
            waiting = self._store.list_documents(_COLLECTION, _BATCH, _BATCH_CHARACTERS, but=held)
            for table in {key for _, key, _ in waiting}:
                batch = [(number, row) for number, key, row in waiting if key == table]
                try:
                    self._insert(table, [row for _, row in batch])
                except Exception as error:  # noqa: BLE001 - BigQuery may be away; nothing is lost, it is tried again
                    LOGGER.warning("request log: BigQuery does not take the rows yet: %s", error)
                    self._ready.discard(table)  # it may have been deleted
                    held.add(table)
                    continue
                self._store.delete_documents(_COLLECTION, *(number for number, _ in batch))
            return len(waiting)

    def _insert(self, table: str, rows: Sequence[Mapping[str, Json]]) -> None:
        client = self._clients.bigquery()
        if table not in self._ready:
            self._make_table(client, table)
        # The row id lets BigQuery drop what a repeated try brings twice.
        problems = client.insert_rows_json(table, rows, row_ids=[row["request_id"] for row in rows], timeout=30)
        if problems:
            raise RuntimeError(f"{table}: {problems}")

    def _make_table(self, client: Client, table: str) -> None:
        from google.api_core import exceptions
        from google.cloud import bigquery

        schema = [bigquery.SchemaField(field["name"], field["type"], field["mode"]) for field in SCHEMA]
        definition = bigquery.Table(table, schema)
        definition.time_partitioning = bigquery.TimePartitioning(field="logging_time")
        try:
            client.create_table(definition, exists_ok=True, timeout=30)
        except exceptions.NotFound:  # only then: who may write into a dataset need not be allowed to make one
            client.create_dataset(
                bigquery.Dataset(f"{definition.project}.{definition.dataset_id}"), exists_ok=True, timeout=30
            )
            client.create_table(definition, exists_ok=True, timeout=30)
        self._ready.add(table)


def payload_text(value: Json) -> str:
    """Return a JSON value as the log keeps it: numbers that JSON does not have are strings, for BigQuery."""
    return json.dumps(_speakable(value), separators=(",", ":"), ensure_ascii=False)


def _speakable(value: Json) -> Json:
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [_speakable(item) for item in value]
    if isinstance(value, dict):
        return {key: _speakable(item) for key, item in value.items()}
    return value
