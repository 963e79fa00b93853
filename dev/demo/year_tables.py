"""The source's table in the replay of a year: flights come to it when their label is known.

Comes in: the seeded tables of a running local cloud. Goes out: `flights.flights` as far as a moment knows it, and the
flights that customers ask about. What will come waits in `flights.coming`.
"""

from __future__ import annotations

import string
import time
from datetime import datetime, timedelta
from typing import Any

from demo.checkout import REPOSITORY_PATH
from demo.dag_run import MODEL
from demo.year_scenario import FOLDER, Scenario

LABEL_LAG = timedelta(days=1)
_FLIGHTS_PER_DAY = 900
_LOGGED_WITHIN_S = 60.0


class Tables:
    """What BigQuery has of the replay.

    Args:
        project: Of the tables.
        scenario: What happens.
    """

    def __init__(self, project: str, scenario: Scenario) -> None:
        from google.cloud import bigquery  # after the local cloud's variables are set

        self._client = bigquery.Client(project=project)
        self._scenario = scenario
        self._known_until = scenario.start - LABEL_LAG

    def prepare(self) -> None:
        """Lay what will come aside, as the scenario changes it."""
        self._run("coming", drift=self._scenario.drift_begins())
        self._run("forget", until=self._known_until)

    def arrive(self, as_of: datetime) -> None:
        """Let the flights come whose label is known at a moment."""
        until = as_of - LABEL_LAG
        self._run("arrive", since=self._known_until, until=until)
        self._known_until = until

    def read_flights(self, days: int) -> list[dict[str, Any]]:
        """Return the flights that are asked about, in order of their departure, by the model's own query."""
        examples = (REPOSITORY_PATH / "include" / "sql" / MODEL / "examples.sql").read_text()
        end = self._scenario.at(days)
        rows = self._run(
            "requests",
            {"examples": examples.replace("flights.flights", "flights.coming")},
            window_start=self._scenario.start,
            window_end=end,
            as_of=end,
            permille=min(1000, 1000 * self._scenario.requests_per_day // _FLIGHTS_PER_DAY),
        )
        return [dict(row.items()) for row in rows]

    def wait_logged(self, table: str, since: datetime, until: datetime, requests: int) -> None:
        """Wait until the request log has what was asked.

        Raises:
            TimeoutError: It does not.
        """
        deadline = time.monotonic() + _LOGGED_WITHIN_S
        while True:
            (row,) = self._run("logged", {"table": table}, since=since, until=until)
            if row["requests"] >= requests:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{table}: {row['requests']} of {requests} requests from {since} on are logged")
            time.sleep(0.5)

    def _run(self, name: str, texts: dict[str, str] | None = None, **values: datetime | int) -> list[Any]:
        from google.cloud import bigquery

        sql = string.Template((FOLDER / f"{name}.sql").read_text()).substitute(texts or {})
        types = {int: "INT64", datetime: "TIMESTAMP"}
        parameters = [bigquery.ScalarQueryParameter(key, types[type(value)], value) for key, value in values.items()]
        config = bigquery.QueryJobConfig(query_parameters=parameters)
        return list(self._client.query(sql, job_config=config).result())
