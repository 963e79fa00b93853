"""SQL with its parameters. Values are query parameters; only checked identifiers are rendered into a template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

import jinja2

from retraining.core.errors import SpecError
from retraining.core.settings import include_path
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
    """Render `include/templates/<template>`. An undefined value is an error.

    The filters `identifier`, `column`, `source_column` and `table` check names, all but the first quote them too;
    nothing else may place a name in SQL. `text` makes a literal, for a query that its user keeps.
    """
    environment = jinja2.Environment(  # noqa: S701 - SQL, not HTML: the filters below guard what goes in
        loader=jinja2.FileSystemLoader(include_path() / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["identifier"] = plain_identifier
    environment.filters["column"] = quote_column
    environment.filters["source_column"] = quote_source_column
    environment.filters["text"] = quote_text
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


def quote_text(value: str) -> str:
    """Return a text as a literal: https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical#escape_sequences."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in escaped) + "'"


def quote_table(name: str) -> str:
    """Return a `project.dataset.table` in backticks.

    Raises:
        SpecError: It is none.
    """
    if not _TABLE.fullmatch(name):
        raise SpecError("SQL", f"table name {name!r}", "project.dataset.table", "Look at the RETRAINING_ settings")
    return f"`{name}`"
