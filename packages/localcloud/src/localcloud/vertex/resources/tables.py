"""BigQuery as the local Vertex AI needs it: columns and rows of tables, and new ones. Through Google's own clients.

Comes in: names such as `project.dataset.table`. Goes out: columns, record batches, loaded tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.api_core import exceptions

from localcloud.vertex.resources.clients import Clients
from localcloud.vertex.wire.errors import FailedPrecondition, NotFound, PermissionDenied, Unavailable

# A google.cloud.bigquery.SchemaField, and a pyarrow.RecordBatch: neither package publishes types.
Column = Any
RecordBatch = Any
_LOAD_TIMEOUT_S = 3600.0


class Tables:
    """Reads and writes tables of BigQuery.

    Args:
        clients: Where the clients come from.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def find_columns(self, table: str) -> list[Column] | None:
        """Return a table's columns, or None when there is no such table.

        Raises:
            ApiError: BigQuery does not tell.
        """
        with _translated(f"the table {table}"):
            try:
                return list(self._clients.bigquery().get_table(table, timeout=30).schema)
            except exceptions.NotFound:
                return None

    def has_dataset(self, dataset: str) -> bool:
        """Return whether there is such a dataset.

        Raises:
            ApiError: BigQuery does not tell.
        """
        with _translated(f"the dataset {dataset}"):
            try:
                return self._clients.bigquery().get_dataset(dataset, timeout=30) is not None
            except exceptions.NotFound:
                return False

    def make_dataset(self, dataset: str) -> None:
        """Make a dataset where there is none.

        Raises:
            ApiError: It cannot be made.
        """
        with _translated(f"the dataset {dataset}"):
            self._clients.bigquery().create_dataset(dataset, exists_ok=True, timeout=30)

    def read(self, table: str) -> Iterator[RecordBatch]:
        """Return a table's rows in one stream, so that their order is always the same.

        Raises:
            ApiError: They cannot be read.
        """
        from google.cloud.bigquery_storage_v1 import types

        project, dataset, name = table.split(".")
        path = f"projects/{project}/datasets/{dataset}/tables/{name}"
        with _translated(f"the table {table}"):
            client = self._clients.bigquery_read()
            requested = types.ReadSession(table=path, data_format=types.DataFormat.ARROW)
            session = client.create_read_session(
                parent=f"projects/{project}", read_session=requested, max_stream_count=1
            )
            for stream in session.streams:  # none of an empty table
                for page in client.read_rows(stream.name).rows(session).pages:
                    yield page.to_arrow()

    def write(self, path: Path | None, table: str, columns: list[Column]) -> None:
        """Make a table of a Parquet file by a load job, or an empty one where there is no file.

        Raises:
            ApiError: BigQuery does not take it.
        """
        from google.cloud import bigquery

        if path is None:
            with _translated(f"the table {table}"):
                self._clients.bigquery().create_table(bigquery.Table(table, columns), timeout=30)
            return
        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_EMPTY,
            schema=columns,
        )
        config.parquet_options = bigquery.ParquetOptions()
        config.parquet_options.enable_list_inference = True
        with _translated(f"the table {table}"), path.open("rb") as file:
            job = self._clients.bigquery().load_table_from_file(file, table, job_config=config, rewind=True)
            job.result(timeout=_LOAD_TIMEOUT_S)


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn refusals of BigQuery into those of Vertex AI."""
    try:
        yield
    except exceptions.Forbidden as error:
        raise PermissionDenied(f"Vertex AI Service Agent: {error.message}") from None
    except exceptions.NotFound as error:
        raise NotFound(f"BigQuery does not find {what}: {error.message}") from None
    except exceptions.ClientError as error:
        raise FailedPrecondition(f"BigQuery refuses {what}: {error.message}") from None
    except (exceptions.GoogleAPIError, OSError) as error:
        raise Unavailable(f"BigQuery does not answer for {what}: {error}. Is the local cloud's BigQuery up?") from error
