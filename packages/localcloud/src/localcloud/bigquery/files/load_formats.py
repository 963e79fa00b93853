"""Files of a load job as relations of DuckDB: what columns they have, and how their values become stored ones.

In: a local file and the job's options (REST's JobConfigurationLoad). Out: the types of the file's own columns, and a
SELECT of a table's values from it. One format is one class; what is read as an option stands in `_Csv._options`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from localcloud.bigquery.types.columns import (
    JSON_AS_TEXT,
    ColumnType,
    column_types,
    load_expression,
    load_type,
    quoted,
    text,
)
from localcloud.statements import statement
from localcloud.untyped import Untyped

_GZIP = b"\x1f\x8b"
_ENCODINGS = {"UTF-8": "utf-8", "UTF8": "utf-8", "ISO-8859-1": "latin-1"}
_LETTERS = {"INTEGER": "int64", "FLOAT": "double", "BOOLEAN": "bool"}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to insert.

    Attributes:
        columns: Of the table, those that the file has.
        values: Their values, in DuckDB's SQL.
        source: What stands behind FROM.
        unknown: Fields of the file that the table does not have.
    """

    columns: list[ColumnType]
    values: list[str]
    source: str
    unknown: list[str]


class Format(Protocol):
    """A format of files."""

    def detect(self, path: Path, connection: Untyped) -> list[ColumnType]:
        """Return the columns that a file describes, or seems to have."""

    @contextmanager
    def open(self, path: Path, columns: list[ColumnType], connection: Untyped) -> Iterator[Selection]:
        """Return the values of a table's columns."""


class _Csv:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def detect(self, path: Path, connection: Untyped) -> list[ColumnType]:
        columns = column_types(connection, f"read_csv({text(str(path))}, {self._sniffing(path, connection)})")
        if self._has_header(path, connection):
            return [_detected(column) for column in columns]
        kinds = [_LETTERS.get(column.kind, column.kind.lower()) for column in map(_detected, columns)]
        return [
            _detected(column, f"{kind}_field_{index}")
            for index, (column, kind) in enumerate(zip(columns, kinds, strict=True))
        ]

    @contextmanager
    def open(self, path: Path, columns: list[ColumnType], connection: Untyped) -> Iterator[Selection]:
        kinds = ", ".join(f"{quoted(column.name)}: '{load_type(column)}'" for column in columns)
        skip = int(self._config.get("skipLeadingRows") or 0)
        if self._has_header(path, connection):
            skip = max(skip, 1)
        options = [*self._options(path), f"columns = {{{kinds}}}", "auto_detect = false", f"skip = {skip}"]
        if self._config.get("ignoreUnknownValues"):
            options.append("strict_mode = false")
        if int(self._config.get("maxBadRecords") or 0):
            options.append("store_rejects = true, rejects_limit = 0")
        yield Selection(
            columns=columns,
            values=[load_expression(column, quoted(column.name)) for column in columns],
            source=f"read_csv({text(str(path))}, header = false, {', '.join(options)})",
            unknown=[],
        )

    def _options(self, path: Path) -> list[str]:
        from bqemulator.domain.errors import UnsupportedFeatureError

        config = self._config
        encoding = str(config.get("encoding") or "UTF-8").upper()
        if encoding not in _ENCODINGS:
            raise UnsupportedFeatureError(f"Encoding {encoding} is not offered by the local cloud: load UTF-8")
        delimiter = str(config.get("fieldDelimiter") or ",")
        delimiter = "\t" if delimiter in ("tab", "\\t") else delimiter
        quote = str(config.get("quote", '"'))
        nulls = [str(each) for each in config.get("nullMarkers") or [config.get("nullMarker") or ""]]
        return [
            f"delim = {text(delimiter)}",
            f"quote = {text(quote)}",
            f"escape = {text(quote)}",
            f"nullstr = [{', '.join(map(text, nulls))}]",
            "allow_quoted_nulls = false",
            f"null_padding = {'true' if config.get('allowJaggedRows') else 'false'}",
            f"encoding = '{_ENCODINGS[encoding]}'",
            f"compression = '{compression_of(path)}'",
        ]

    def _sniffing(self, path: Path, connection: Untyped) -> str:
        skip = int(self._config.get("skipLeadingRows") or 0)
        header = self._has_header(path, connection)
        return f"{', '.join(self._options(path))}, header = {str(header).lower()}, skip = {max(skip - header, 0)}"

    def _has_header(self, path: Path, connection: Untyped) -> bool:
        """Return whether autodetect takes a row for column names: the last one to skip, or the first when none is."""
        if not self._config.get("autodetect"):
            return False
        skip = self._config.get("skipLeadingRows")
        if skip is not None:
            return int(skip) > 0
        sniffed = connection.execute("SELECT HasHeader FROM sniff_csv(?)", [str(path)]).fetchone()
        return bool(sniffed and sniffed[0])


class _Json:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def detect(self, path: Path, connection: Untyped) -> list[ColumnType]:
        relation = f"read_json({text(str(path))}, {_json_options(path)})"
        return [_detected(column) for column in column_types(connection, relation)]

    @contextmanager
    def open(self, path: Path, columns: list[ColumnType], connection: Untyped) -> Iterator[Selection]:
        kinds = ", ".join(f"{quoted(column.name)}: '{load_type(column, JSON_AS_TEXT)}'" for column in columns)
        options = _json_options(path)
        keys = connection.execute(
            statement(
                "SELECT DISTINCT unnest(json_keys(json)) FROM read_json_objects({path}, {options})",
                path=text(str(path)),
                options=options,
            )
        ).fetchall()
        known = {column.name.lower() for column in columns}
        yield Selection(
            columns=columns,
            values=[load_expression(column, quoted(column.name), as_text=JSON_AS_TEXT) for column in columns],
            source=f"read_json({text(str(path))}, {options}, columns = {{{kinds}}})",
            unknown=sorted(key for (key,) in keys if key.lower() not in known),
        )


class _Parquet:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._lists = bool((config.get("parquetOptions") or {}).get("enableListInference"))

    def detect(self, path: Path, connection: Untyped) -> list[ColumnType]:
        from bqemulator.domain.errors import UnsupportedFeatureError

        columns = column_types(connection, f"read_parquet({text(str(path))})")
        lists = [column.name for column in columns if column.repeated]
        if lists and not self._lists:
            raise UnsupportedFeatureError(
                f"Field {lists[0]} is a LIST, and the local cloud does not offer the RECORDs of list and element"
                " that it becomes by default. Set parquetOptions.enableListInference."
            )
        return columns

    @contextmanager
    def open(self, path: Path, columns: list[ColumnType], connection: Untyped) -> Iterator[Selection]:
        relation = f"read_parquet({text(str(path))})"
        yield _by_name(relation, column_types(connection, relation), columns)


class _Avro:
    def __init__(self, config: Mapping[str, Any]) -> None:
        del config  # logical types are always used

    def detect(self, path: Path, connection: Untyped) -> list[ColumnType]:
        with self._registered(path, connection) as name:
            return column_types(connection, name)

    @contextmanager
    def open(self, path: Path, columns: list[ColumnType], connection: Untyped) -> Iterator[Selection]:
        with self._registered(path, connection) as name:
            yield _by_name(name, column_types(connection, name), columns)

    @contextmanager
    def _registered(self, path: Path, connection: Untyped) -> Iterator[str]:
        from bqemulator.jobs.avro_reader import read_avro_to_arrow

        name = f"localcloud_avro_{uuid.uuid4().hex}"
        connection.register(name, read_avro_to_arrow(str(path)))
        try:
            yield name
        finally:
            connection.unregister(name)


FORMATS: dict[str, Callable[[Mapping[str, Any]], Format]] = {
    "CSV": _Csv,
    "NEWLINE_DELIMITED_JSON": _Json,
    "JSON": _Json,
    "PARQUET": _Parquet,
    "AVRO": _Avro,
}
"""Formats by their names in REST; each is made from the job's options."""


def _by_name(relation: str, in_file: list[ColumnType], columns: list[ColumnType]) -> Selection:
    there = {column.name.lower(): column for column in in_file}
    known = {column.name.lower() for column in columns}
    chosen = [column for column in columns if column.name.lower() in there]
    return Selection(
        columns=chosen,
        values=[_typed_value(column, there[column.name.lower()]) for column in chosen],
        source=relation,
        unknown=[column.name for column in in_file if column.name.lower() not in known],
    )


def _typed_value(column: ColumnType, in_file: ColumnType) -> str:
    """Parquet and Avro hold BYTES as they are, GEOGRAPHY as WKT or as bytes of WKB, and a missing array as NULL."""
    if column.repeated:
        return f"coalesce({quoted(column.name)}, [])"
    if column.kind == "GEOGRAPHY":
        read = "ST_GeomFromWKB" if in_file.kind == "BYTES" else "ST_GeomFromText"
        return f"{read}({quoted(column.name)})"
    return quoted(column.name)


def _detected(column: ColumnType, name: str = "") -> ColumnType:
    """Return a column of a text file as autodetect calls it: a time of day and date without a zone is a TIMESTAMP."""
    kind = "TIMESTAMP" if column.kind == "DATETIME" else column.kind
    return ColumnType(
        name=name or column.name,
        kind=kind,
        repeated=column.repeated,
        fields=column.fields,
        arrow=column.arrow,
        stored=column.stored,
    )


def _json_options(path: Path) -> str:
    return f"format = 'newline_delimited', compression = '{compression_of(path, 'uncompressed')}'"


def compression_of(path: Path, plain: str = "none") -> str:
    """Return a file's compression as DuckDB names it; JSON's reader has a name of its own for none."""
    with path.open("rb") as file:
        return "gzip" if file.read(len(_GZIP)) == _GZIP else plain
