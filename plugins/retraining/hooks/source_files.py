"""A look at a user's files: that they are there, and have the columns of the spec; before a load, or any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from retraining.core.data import source_files
from retraining.core.data.span_store import StoredObject
from retraining.core.documents.snapshot import SourceFilesRead
from retraining.core.spec.source_files import SourceFiles


class Listing(Protocol):
    """Who knows which files there are."""

    def match(self, uri: str) -> list[StoredObject]:
        """Return the objects at an address; one `*` in it stands for any text."""


class Reading(Protocol):
    """Who reads what says a file's columns."""

    def read_ranges(self, ranges: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
        """Return parts of objects by address."""

    def parquet_columns(self, sizes: Mapping[str, int]) -> dict[str, list[str] | None]:
        """Return the names of the columns of Parquet files."""


def list_files(uris: Sequence[str], listing: Listing) -> tuple[SourceFilesRead, list[StoredObject]]:
    """Return the files at some addresses, described and one by one.

    Raises:
        DataError: An address has none, or they are more than a load takes.
    """
    found = {uri: listing.match(uri) for uri in uris}
    return source_files.require_files(found), source_files.distinct(found)


def look(files: SourceFiles, listing: Listing, reading: Reading) -> SourceFilesRead:
    """Return a description of the files, if each has the columns that the spec says.

    Of JSON lines each says its own fields, so nothing is read of them.

    Raises:
        DataError: A file has other columns, there is none, or they are of two kinds; names it.
    """
    described, objects = list_files(files.uris, listing)
    source_files.require_one_compression(objects)
    if files.format == "csv":
        beginnings = reading.read_ranges(source_files.headers_to_read(objects))
        names = {uri: source_files.parse_header(data, files.delimiter) for uri, data in beginnings.items()}
        source_files.require_columns(files, objects, names)
    elif files.format == "parquet":
        names = reading.parquet_columns({item.uri: item.bytes for item in objects})
        source_files.require_columns(files, objects, names)
    return described
