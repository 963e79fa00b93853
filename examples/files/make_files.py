"""`python examples/files/make_files.py gs://bucket/folder`: some days of the demonstration's flights as CSV files.

A file per day, as a department might send them: with a header line, an empty field for a delay that is not known.
"""

from __future__ import annotations

import csv
import io
import sys

from google.cloud import bigquery, storage

COLUMNS = ("flight_id", "scheduled_departure", "carrier", "hour", "minute", "arr_delay")
QUERY = """
SELECT flight_id, scheduled_departure, carrier, hour, minute, arr_delay FROM flights.flights
WHERE scheduled_departure >= '2013-11-01' AND scheduled_departure < '2013-11-20'
ORDER BY scheduled_departure, flight_id
"""


def make_files(folder_uri: str) -> int:
    """Write the files; return how many."""
    days: dict[str, io.StringIO] = {}
    for row in bigquery.Client().query_and_wait(QUERY):
        day = row["scheduled_departure"].date().isoformat()
        if day not in days:
            days[day] = io.StringIO()
            csv.writer(days[day]).writerow(COLUMNS)
        csv.writer(days[day]).writerow(row.values())
    bucket, _, folder = folder_uri.removeprefix("gs://").partition("/")
    for day, text in days.items():
        name = f"{folder.rstrip('/')}/{day}.csv"
        storage.Client().bucket(bucket).blob(name).upload_from_string(text.getvalue(), content_type="text/csv")
    return len(days)


if __name__ == "__main__":
    print(f"{make_files(sys.argv[1])} files")
