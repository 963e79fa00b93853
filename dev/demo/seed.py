"""`python -m demo.seed`: loads the demonstration's data into the BigQuery of a running local cloud.

In: flights and weather of 2013 (`seed_flights`), and handwritten digits (`seed_digits`). Out: tables
`flights.flights` (336,776 rows), `flights.weather` (26,115) and `digits.images` (1,797), and an empty dataset for run
tables. A second call finds them and does nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from demo.seed_digits import IMAGES, read_images
from demo.seed_flights import FLIGHTS, WEATHER, read_flights, read_weather
from localcloud.access.bearer import Bearers
from localcloud.access.credentials import ACCOUNT_EMAIL
from localcloud.environment.variables import client_environment
from localcloud.errors import LocalCloudError
from localcloud.state import Settings, State, state_path_from

if TYPE_CHECKING:
    import pyarrow as pa

_BIGQUERY_TYPES = {
    "int64": "INTEGER",
    "double": "FLOAT",
    "string": "STRING",
    "binary": "BYTES",
    "timestamp[us, tz=UTC]": "TIMESTAMP",
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the demo: where it goes, how many rows it has, and what reads them."""

    dataset: str
    name: str
    rows: int
    read: Callable[[], pa.Table]

    def full_name(self, project: str) -> str:
        """Return `project.dataset.table`."""
        return f"{project}.{self.dataset}.{self.name}"


TABLES = (
    Table(dataset="flights", name="flights", rows=FLIGHTS, read=read_flights),
    Table(dataset="flights", name="weather", rows=WEATHER, read=read_weather),
    Table(dataset="digits", name="images", rows=IMAGES, read=read_images),
)


def main(arguments: list[str] | None = None) -> int:
    """Load what is missing; return the exit code (2: refused)."""
    parser = argparse.ArgumentParser(prog="demo.seed", description="Load flights, weather and digits into BigQuery.")
    parser.add_argument("--state", type=Path, help="state directory (default: LOCALCLOUD_STATE or build/localcloud)")
    options = parser.parse_args(arguments)
    state = State((options.state or state_path_from(os.environ)).absolute())
    try:
        state.require_running()
        os.environ.update(client_environment(state.path))
        for line in seed(state.read_settings(), Bearers(state).issue(ACCOUNT_EMAIL)):
            print(line, flush=True)
    except LocalCloudError as error:
        print(f"demo: {error}", file=sys.stderr, flush=True)
        return 2
    return 0


def seed(settings: Settings, token: str) -> Iterator[str]:
    """Load what is missing; give one line per table.

    Args:
        settings: the project's name; this process's environment must lead to the local cloud.
        token: an access token.

    Raises:
        LocalCloudError: a package's data is not what it was when this was written.
    """
    missing = [table for table in TABLES if stored_rows(settings, table, token) != table.rows]
    for table in TABLES:
        if table not in missing:
            yield f"{table.full_name(settings.project)}: {table.rows} rows are there"
    if missing:
        yield from load(settings, missing)


def stored_rows(settings: Settings, table: Table, token: str) -> int:
    """Ask how many rows a table has (0: it does not exist), in milliseconds: no client is imported for it."""
    base = f"https://bigquery.googleapis.com/bigquery/v2/projects/{settings.project}"
    address = f"{base}/datasets/{table.dataset}/tables/{table.name}"
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - https, above
    try:
        with urllib.request.urlopen(asked, timeout=60) as response:  # noqa: S310
            return int(json.load(response)["numRows"])
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return 0


def load(settings: Settings, tables: Sequence[Table]) -> Iterator[str]:
    """Create the datasets and replace the rows of these tables, by load jobs of the real client."""
    from google.cloud import bigquery

    client = bigquery.Client(project=settings.project)
    datasets = {table.dataset for table in tables} | {os.environ.get("RETRAINING_DATASET", "")}
    for name in sorted(filter(None, datasets)):
        dataset = bigquery.Dataset(f"{settings.project}.{name}")
        dataset.location = os.environ.get("RETRAINING_REGION")  # where plan looks for it
        client.create_dataset(dataset, exists_ok=True)
    for table in tables:
        rows, table_name = table.read(), table.full_name(settings.project)
        if rows.num_rows != table.rows:
            raise LocalCloudError(
                f"seed: {table_name}",
                found=f"{rows.num_rows} rows in its package",
                expected=f"{table.rows}",
                way_out="Install the locked versions with `make setup`",
            )
        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_TRUNCATE,
            schema=[bigquery.SchemaField(field.name, _BIGQUERY_TYPES[str(field.type)]) for field in rows.schema],
        )
        client.load_table_from_file(_to_parquet(rows), table_name, job_config=config).result()
        yield f"{table_name}: {rows.num_rows} rows loaded"


def _to_parquet(table: pa.Table) -> io.BytesIO:
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    buffer.seek(0)
    return buffer


if __name__ == "__main__":
    sys.exit(main())
