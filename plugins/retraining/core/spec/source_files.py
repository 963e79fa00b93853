"""The part `data.files` of a model's YAML: files in Cloud Storage that examples come from, and their columns."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from retraining.core.column_types import COLUMN_TYPES, MAX_COLUMNS
from retraining.core.spec.section import ColumnName, Section

EVERY_ROW = "SELECT * FROM files"
"""What is asked of the files where the spec has no query."""

_TYPES = "|".join(row.sql for row in COLUMN_TYPES.values() if row.in_files)
ColumnType = Annotated[str, StringConstraints(pattern=rf"^({_TYPES}|ARRAY<({_TYPES})>)$")]
FileFormat = Literal["csv", "json", "parquet"]
FileUri = Annotated[
    str, StringConstraints(max_length=1024, pattern=r"^gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]/[^*]*\*?[^*]*$")
]
"""With one wildcard at most, which also stands for slashes, as BigQuery has it."""

_TFRECORDS = re.compile(r"\.tfrecords?([-.*][0-9of*-]*)?(\.gz)?$")
"""Also a part of several, `.tfrecord-00000-of-00010`."""
NO_TFRECORDS = (
    "BigQuery loads no TFRecord files. Make Parquet files of them, make tfrecords-to-parquet FROM=gs://… TO=gs://…, "
    "and write the files that it prints here"
)


class FileColumn(Section):
    """A column of the files, and the BigQuery type that it is loaded as."""

    name: ColumnName
    """As in the files."""
    type: ColumnType
    """BigQuery's: `STRING`, `BYTES`, `INT64`, `FLOAT64`, `NUMERIC`, `BIGNUMERIC`, `BOOL`, `DATE`, `DATETIME`, `TIME`,
    `TIMESTAMP`. In JSON and Parquet also `ARRAY<…>` of one."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


class SourceFiles(Section):
    """Files that BigQuery loads into a table of this run, which the query calls `files`."""

    uris: Annotated[tuple[FileUri, ...], BeforeValidator(_listed), Field(min_length=1, max_length=1000)]
    """`gs://` address or list of them, each with one `*` at most, which also stands for slashes."""
    format: FileFormat
    """Of all files; `json` is lines of it, each may be compressed by gzip."""
    columns: Annotated[tuple[FileColumn, ...], Field(min_length=1, max_length=MAX_COLUMNS)]
    """The files' columns; of CSV files in the order of the header line, which each file must have."""
    delimiter: Annotated[str, StringConstraints(min_length=1, max_length=1)] = ","
    """The one character between the values of a CSV file."""
    null_text: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    """What stands for NULL in a CSV file, such as `NA`; `null`: an empty field without quotes."""

    @field_validator("format", mode="before")
    @classmethod
    def _is_loaded(cls, value: object) -> object:
        if isinstance(value, str) and value.lower().startswith("tfrecord"):
            raise ValueError(NO_TFRECORDS)
        return value

    @field_validator("uris")
    @classmethod
    def _are_loaded(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for uri in value:
            if _TFRECORDS.search(uri):
                raise ValueError(f"{uri}: {NO_TFRECORDS}")
        return value

    @model_validator(mode="after")
    def _fits_its_format(self) -> Self:
        lowered = [name.lower() for name in self.names]
        if twice := [name for name in self.names if lowered.count(name.lower()) > 1]:
            raise ValueError(f"column {twice[0]!r} stands twice (BigQuery does not tell case apart)")
        if self.format == "csv":
            for column in self.columns:
                if column.type.startswith("ARRAY"):
                    raise ValueError(
                        f"column {column.name!r} is {column.type}, which no CSV file holds: use json or parquet"
                    )
            return self
        for name in ("delimiter", "null_text"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} is of CSV files, and format is {self.format}: remove it")
        return self

    @property
    def names(self) -> list[str]:
        """Names of the columns, in their order."""
        return [column.name for column in self.columns]
