"""SQL with its parameters, and why a statement failed.

Values are query parameters; only checked identifiers are rendered into a template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import jinja2

from retraining.core.errors import GRANT, DataError, JobError, RetrainingError, SettingsError, SpecError
from retraining.core.settings import data_path
from retraining.core.untyped import ApiJson

ScalarType = Literal["INT64", "FLOAT64", "STRING", "DATE", "TIMESTAMP"]
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")
_SOURCE_COLUMN = re.compile(r"[^`\\\x00-\x1f]{1,300}")
_TABLE = re.compile(r"[a-z][a-z0-9.:-]{4,100}\.[A-Za-z0-9_]{1,1024}\.[A-Za-z0-9_-]{1,1024}")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A named query parameter. `value` is a JSON scalar, or a tuple of them for an array of `type`.

    DATE is written `2013-11-20`, TIMESTAMP `2013-11-20T00:00:00Z`.
    """

    name: str
    type: ScalarType
    value: str | int | float | tuple[str | int | float, ...]

    def to_api(self) -> ApiJson:
        """Return it as BigQuery's REST interface (and so Airflow's job configuration) wants it."""
        if isinstance(self.value, tuple):
            return {
                "name": self.name,
                "parameterType": {"type": "ARRAY", "arrayType": {"type": self.type}},
                "parameterValue": {"arrayValues": [{"value": str(value)} for value in self.value]},
            }
        return {
            "name": self.name,
            "parameterType": {"type": self.type},
            "parameterValue": {"value": str(self.value)},
        }


@dataclass(frozen=True, kw_only=True)
class Query:
    """A statement and the parameters it names."""

    sql: str
    parameters: tuple[Parameter, ...] = ()

    def to_api(self) -> ApiJson:
        """Return the `query` part of a BigQuery job configuration."""
        return {
            "query": self.sql,
            "useLegacySql": False,
            "parameterMode": "NAMED",
            "queryParameters": [parameter.to_api() for parameter in self.parameters],
        }


def midnight(day: date) -> str:
    """Return a day's first second, as a BigQuery TIMESTAMP value."""
    return f"{day.isoformat()}T00:00:00Z"


def render(template: str, **values: object) -> str:
    """Render `package_data/templates/<template>`. An undefined value is an error.

    The filters `identifier`, `column`, `source_column` and `table` check names, all but the first quote them too;
    nothing else may place a name in SQL.
    """
    environment = jinja2.Environment(  # noqa: S701 - SQL, not HTML: the filters below guard what goes in
        loader=jinja2.FileSystemLoader(data_path("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["identifier"] = plain_identifier
    environment.filters["column"] = quote_column
    environment.filters["source_column"] = quote_source_column
    environment.filters["table"] = quote_table
    return environment.get_template(template).render(**values)


def plain_identifier(name: str) -> str:
    """Return the name itself when it has nothing to quote or escape in it.

    Raises:
        SpecError: It is no plain column name.
    """
    if not _COLUMN.fullmatch(name):
        raise SpecError("SQL", f"column name {name!r}", "letters, digits and _", "Rename the column in the query")
    return name


def quote_column(name: str) -> str:
    """Return a column name in backticks.

    Raises:
        SpecError: It is no plain column name.
    """
    return f"`{plain_identifier(name)}`"


def quote_source_column(name: str) -> str:
    """Return the name of a column of a user's own table in backticks where it needs them: BigQuery's may have spaces.

    https://cloud.google.com/bigquery/docs/schemas#flexible-column-names

    Raises:
        SpecError: It has what no quotes hold.
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    if not _SOURCE_COLUMN.fullmatch(name):
        raise SpecError("SQL", f"column name {name!r}", "a name without ` and \\", "Rename the column in a view")
    return f"`{name}`"


def quote_table(name: str) -> str:
    """Return a `project.dataset.table` in backticks.

    Raises:
        SpecError: It is none.
    """
    if not _TABLE.fullmatch(name):
        raise SpecError("SQL", f"table name {name!r}", "project.dataset.table", "Look at the RETRAINING_ settings")
    return f"`{name}`"


MAX_JOBS_PER_ID = 5
"""Jobs of one statement that may fail for BigQuery's own reasons."""

# https://cloud.google.com/bigquery/docs/error-messages: the others are the query's or its tables' own fault.
TRANSIENT_REASONS = frozenset(
    {
        "backendError",
        "internalError",
        "jobBackendError",
        "jobInternalError",
        "jobRateLimitExceeded",
        "quotaExceeded",
        "rateLimitExceeded",
        "stopped",
        "tableUnavailable",
        "timeout",
    }
)


_NOT_THERE = re.compile(r"was not found in location ([\w-]+)")
"""It may well be there, elsewhere: BigQuery looks in the statement's location alone."""


def is_lasting(result: Mapping[str, Any]) -> bool:
    """Return whether another job of the statement would fail the same way."""
    return result.get("reason") not in TRANSIENT_REASONS


def query_failure(where: str, result: Mapping[str, Any]) -> RetrainingError:
    """Return what BigQuery's error means.

    Args:
        where: Which statement.
        result: `reason` and `message`, as BigQuery has them.
    """
    message, reason = str(result.get("message")), str(result.get("reason"))
    if reason in TRANSIENT_REASONS:
        way_out = "The task's next try runs another job"
        if reason == "quotaExceeded":
            way_out += ": wait until the quota is there again, or have it raised"
        return JobError(where, f"BigQuery did not finish the statement ({reason}): {message}", "its result", way_out)
    if reason == "bytesBilledLimitExceeded":
        way_out = "Read less: a partitioned source, fewer columns, a shorter data.window_days; or raise that setting"
        expected = "at most RETRAINING_MAX_BYTES_BILLED bytes"
        return DataError(where, f"BigQuery refuses the statement: {message}", expected, way_out)
    if reason == "accessDenied":
        return SettingsError(where, f"BigQuery refuses the statement: {message}", "an account that may do it", GRANT)
    way_out = "Correct the SQL or the table it names"
    if reason == "notFound":  # of our own statements: the dataset of run tables
        way_out = "Correct the SQL, RETRAINING_DATASET or RETRAINING_REGION, and clear plan and what follows it; or "
        way_out += "create what is missing and clear the task"
    if elsewhere := _NOT_THERE.search(message):
        way_out += (
            f". If it is there, it is in another location than {elsewhere[1]}, and a statement runs in one: copy its "
        )
        way_out += "dataset, or change RETRAINING_REGION with the bucket and the dataset of run tables"
    return DataError(where, f"BigQuery refuses the statement: {message}", "one that it runs", way_out)


def load_failure(where: str, result: Mapping[str, Any]) -> RetrainingError:
    """Return what BigQuery's error about a load of files means; `where` and `result` as for `query_failure`."""
    message, reason = str(result.get("message")), str(result.get("reason"))
    if reason in TRANSIENT_REASONS or reason == "accessDenied":
        return query_failure(where, result)
    return DataError(
        where,
        f"BigQuery refuses the files: {message}",
        "rows of data.files.columns",
        "Correct the files or data.files and start the run anew; or, where a file was half written, clear the task",
    )
