"""A user's files as a table: which there are, whether each has the columns of the spec, and the job that loads them.

BigQuery loads them into a table that expires, and the query sees it under the name `files`. A load is free and all or
nothing, and every statement of the run then reads the same rows. CSV columns go by their position, so a header line of
another order would put values under other names: each file's beginning is read and held to the spec first.
"""

from __future__ import annotations

import csv
import hashlib
import io
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import ValidationError

from retraining.core.column_types import SQL_NAMES
from retraining.core.data.span_store import StoredObject
from retraining.core.data.sql import Query, render
from retraining.core.documents.document import canonical_json
from retraining.core.documents.plan import Plan
from retraining.core.documents.snapshot import Column, SourceFilesRead
from retraining.core.errors import ContractError, DataError, JobError, SpecError
from retraining.core.naming import bigquery
from retraining.core.spec.data import Data
from retraining.core.spec.messages import shorten
from retraining.core.spec.source_files import NO_TFRECORDS, FileFormat, SourceFiles
from retraining.core.spec.sql_file import without_semicolon
from retraining.core.untyped import ApiJson

WHERE = "data.files"
MAX_FILES = 10_000  # of a load job: https://cloud.google.com/bigquery/quotas#load_jobs
HEADER_BYTES = 1_000_000
"""Of a file's beginning that are read for its header line."""

_NAMED = 5
"""Files and columns that a message names."""
_BY_ENDING: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_SOURCE_FORMATS = {"csv": "CSV", "json": "NEWLINE_DELIMITED_JSON", "parquet": "PARQUET"}
_NO_TEXT = {"\0", "\N{REPLACEMENT CHARACTER}"}
_GZIP = b"\x1f\x8b"
_WAY_OUT = (
    "Correct the file, or data.files.columns, which says what every file has; for a file of other columns, name "
    "another folder"
)


@dataclass(frozen=True, kw_only=True)
class Load:
    """Files, and the table that their rows are appended to (`project.dataset.table`), with its columns."""

    table: str
    files: SourceFiles

    def to_api(self) -> ApiJson:
        """Return the `load` part of a BigQuery job configuration."""
        files = self.files
        values = _load(self.table, files.uris, files.format, files.delimiter) | {
            "schema": {"fields": [_field(column.name, column.type) for column in files.columns]},
            "createDisposition": "CREATE_NEVER",
            "writeDisposition": "WRITE_APPEND",
        }
        if files.null_text:
            values["nullMarker"] = files.null_text
        return values


@dataclass(frozen=True, kw_only=True)
class DetectingLoad:
    """One of files that nobody has described yet, and the new table that BigQuery makes of what it finds in it.

    Attributes:
        table: As `Load` has it.
        files: Their address, which the description names.
        first: The one that is loaded.
        format: Of all of them.
        delimiter: Between values.
    """

    table: str
    files: str
    first: str
    format: FileFormat
    delimiter: str

    def to_api(self) -> ApiJson:
        """Return the `load` part of a BigQuery job configuration."""
        return _load(self.table, [self.first], self.format, self.delimiter) | {
            "autodetect": True,
            "createDisposition": "CREATE_IF_NEEDED",
            "writeDisposition": "WRITE_EMPTY",
        }

    def pinned(self, columns: Sequence[Column]) -> Load:
        """Return the load of all files as a spec has them, of the columns that the first one made.

        Raises:
            DataError: A column is none that a spec can have.
        """
        pinned = [{"name": column.name, "type": _pinned_type(column)} for column in columns]
        values = {"uris": self.files, "format": self.format, "columns": pinned, "delimiter": self.delimiter}
        try:
            return Load(table=self.table, files=SourceFiles.model_validate(values))
        except ValidationError as error:
            first = error.errors()[0]
            found, expected = (
                f"{shorten(first['input'])}: {first['msg']}",
                "an address, columns of plain values or arrays",
            )
            raise DataError(
                f"FILES, {self.first}", found, expected, "Write other files, or the YAML by hand"
            ) from error


def detecting_load(uri: str, found: Sequence[StoredObject], table: str) -> DetectingLoad:
    """Return the load of the first of the files at an address, whose ending says their format.

    Raises:
        SpecError: It is no ending of such files.
        DataError: All of them are empty.
    """
    ending = PurePosixPath(uri.removesuffix(".gz")).suffix
    if ending not in _BY_ENDING:
        way_out = NO_TFRECORDS if ".tfrecord" in uri else "For example FILES='gs://my-files/visits/*.csv'"
        raise SpecError("FILES", repr(uri), f"an address that ends in one of {', '.join(_BY_ENDING)}", way_out)
    first = next((item.uri for item in found if item.bytes), None)
    if first is None:
        raise DataError(f"FILES, {uri}", f"{len(found)} files, all empty", "rows", "Write them, or name others")
    delimiter = "\t" if ending == ".tsv" else ","
    return DetectingLoad(table=table, files=uri, first=first, format=_BY_ENDING[ending], delimiter=delimiter)


def _load(table: str, uris: Sequence[str], format_: FileFormat, delimiter: str) -> ApiJson:
    project, dataset, name = table.rsplit(".", 2)
    values: ApiJson = {
        "sourceUris": list(uris),
        "sourceFormat": _SOURCE_FORMATS[format_],
        "destinationTable": {"projectId": project, "datasetId": dataset, "tableId": name},
    }
    if format_ == "csv":
        values |= {"skipLeadingRows": 1, "allowQuotedNewlines": True, "fieldDelimiter": delimiter}
    if format_ == "parquet":
        values["parquetOptions"] = {"enableListInference": True}
    return values


def _pinned_type(column: Column) -> str:
    type_ = SQL_NAMES.get(column.type, column.type)
    return f"ARRAY<{type_}>" if column.mode == "REPEATED" else type_


def with_files(sql: str, data: Data, table: str | None) -> str:
    """Return the examples query as it can stand in parentheses, with `files` in it where the spec has some.

    Args:
        sql: Text of the query.
        data: Of the spec.
        table: The loaded rows; None: a table of no rows, for a dry run before any are.
    """
    query = without_semicolon(sql)
    if data.files is None:
        return query
    return render("files_query.sql.j2", query=query, table=table, columns=data.files.columns)


def render_files_table_sql(load: Load) -> Query:
    """Return the statement that makes the empty table of the files' rows, which expires after a day."""
    return Query(sql=render("files_table.sql.j2", table=load.table, columns=load.files.columns))


def build_load(plan: Plan) -> Load:
    """Return the job that loads a run's files into that table."""
    return Load(table=bigquery.files_table(plan), files=_files(plan))


def require_files(found: Mapping[str, Sequence[StoredObject]]) -> SourceFilesRead:
    """Refuse files of which an address has none, or which are more than a load job takes; describe them.

    Raises:
        DataError: It is so.
    """
    for uri, objects in found.items():
        if not objects:
            way_out = "Correct the address, or have the file written, and clear the task"
            raise DataError(WHERE, f"no file {uri}", "one or more", f"{way_out}. The account must be able to list it")
    listed = distinct(found)
    if len(listed) > MAX_FILES:
        raise DataError(
            WHERE, f"{len(listed):,} files", f"at most {MAX_FILES:,}, BigQuery's limit", "Put several into one"
        )
    names = canonical_json([[item.uri, item.generation] for item in listed])
    return SourceFilesRead(
        count=len(listed), bytes=sum(item.bytes for item in listed), sha256=hashlib.sha256(names).hexdigest()
    )


def distinct(found: Mapping[str, Sequence[StoredObject]]) -> list[StoredObject]:
    """Return the files in order of their names, each once."""
    return [item for _, item in sorted({item.uri: item for group in found.values() for item in group}.items())]


def require_one_compression(objects: Sequence[StoredObject]) -> None:
    """Refuse gzipped files beside plain ones: one load takes either.

    https://cloud.google.com/bigquery/docs/loading-data-cloud-storage-csv#limitations

    Raises:
        DataError: There are both.
    """
    gzipped = [item.uri for item in objects if item.uri.endswith(".gz")]
    plain = [item.uri for item in objects if not item.uri.endswith(".gz")]
    if gzipped and plain:
        found = f"gzipped files beside plain ones, {gzipped[0]} and {plain[0]}"
        raise DataError(WHERE, found, "one or the other: a load takes no mixture", "Gzip all of them, or none")


def require_unchanged(before: SourceFilesRead, after: SourceFilesRead) -> None:
    """Refuse rows of files that changed between the look at their columns and the end of the load.

    Raises:
        JobError: They did.
    """
    if before != after:
        raise JobError(
            WHERE,
            "files that were written while they were loaded",
            "files that stay as they are for as long as the snapshot takes",
            "The task's next try loads them anew; start the run when they are complete",
        )


def headers_to_read(objects: Sequence[StoredObject]) -> dict[str, tuple[int, int]]:
    """Return which bytes of CSV files say what columns they have: from, and up to (exclusive)."""
    return {item.uri: (0, min(item.bytes, HEADER_BYTES)) for item in objects if item.bytes}


def require_columns(files: SourceFiles, objects: Sequence[StoredObject], found: Mapping[str, list[str] | None]) -> None:
    """Refuse CSV and Parquet files whose columns are not the spec's.

    Of JSON lines each names its own fields, and a load refuses those that the table does not have.

    Args:
        files: Of the spec.
        objects: The files.
        found: Their columns, by address; None, or nothing: they have none.

    Raises:
        DataError: Some are not; names the files, and of the first one what is wrong.
    """
    problems = {}
    for item in objects:
        problem = _problem(files, found.get(item.uri))
        if problem:
            problems[item.uri] = problem
    if not problems:
        return
    uri, problem = next(iter(problems.items()))
    others = [name for name in problems if name != uri]
    more = f" (and {len(others)} more files: {_some(others)})" if others else ""
    raise DataError(f"{WHERE}, {uri}", f"{problem}{more}", f"the columns {', '.join(files.names)}", _WAY_OUT)


def parse_header(data: bytes, delimiter: str) -> list[str] | None:
    """Return the names in a CSV file's first line, from the file's beginning; None: there is no whole line of text.

    Gzipped files are read too, as BigQuery does; what is compressed otherwise, or in UTF-16, is no text to either.
    """
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, HEADER_BYTES)
        except zlib.error:
            return None
    text = data.decode("utf-8-sig", errors="replace")
    try:
        row = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), None)
    except csv.Error:
        return None
    is_text = row is not None and not set("".join(row)) & _NO_TEXT
    whole = len(data) < HEADER_BYTES or "\n" in text
    return [name.strip() for name in row] if row and is_text and whole else None


def _problem(files: SourceFiles, found: list[str] | None) -> str | None:
    if found is None:
        return "no header line of UTF-8 text, plain or gzipped" if files.format == "csv" else "no Parquet file"
    return column_problem(found, files.names, by_name=files.format == "parquet")


def column_problem(found: Sequence[str], expected: Sequence[str], *, by_name: bool = False) -> str | None:
    """Return what is wrong with a file's columns; None: nothing.

    Args:
        found: In the file, in its order.
        expected: In the spec, in its order.
        by_name: The order does not matter, as in Parquet.
    """
    there, known = [name.lower() for name in found], [name.lower() for name in expected]
    missing = [name for name in expected if name.lower() not in there]
    new = [name for name in found if name.lower() not in known]
    parts = [
        f"{what} {_some([repr(name) for name in names])}"
        for what, names in (("no column", missing), ("a new column", new))
        if names
    ]
    if not parts and len(there) != len(known):
        parts.append("a column that stands twice")
    if not parts and not by_name and there != known:
        parts.append(f"columns in another order: {_some(list(found))}")
    return " and ".join(parts) or None


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


def _field(name: str, type_: str) -> ApiJson:
    inner = type_.removeprefix("ARRAY<").removesuffix(">")
    return {"name": name, "type": inner, "mode": "NULLABLE" if inner == type_ else "REPEATED"}


def _files(plan: Plan) -> SourceFiles:
    files = plan.spec.data.files
    if files is None:
        raise ContractError("plan.json", "no data.files", "some")
    return files
