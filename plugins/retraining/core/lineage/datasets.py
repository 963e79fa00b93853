"""Datasets by the names of https://openlineage.io/docs/spec/naming: tables, folders and objects in buckets.

The standard has no names for Vertex AI: its resources are called by their full names in a namespace of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from retraining.core.documents.snapshot import Column
from retraining.core.naming.addresses import SCHEME, ObjectAddress

BIGQUERY = "bigquery"
VERTEX = "vertex_ai"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What a task reads or writes: its columns where they are known; of an output what was written by this task."""

    namespace: str
    name: str
    kind: Literal["TABLE", "FILE", "MODEL", "ENDPOINT"]
    columns: tuple[Column, ...] = ()
    rows: int | None = None
    bytes: int | None = None


def table(name: str, columns: Iterable[Column] = (), rows: int | None = None) -> Dataset:
    """Return a table of BigQuery by `project.dataset.table`."""
    return Dataset(namespace=BIGQUERY, name=name, kind="TABLE", columns=tuple(columns), rows=rows)


def objects(
    uri: str, columns: Iterable[Column] = (), rows: int | None = None, size_bytes: int | None = None
) -> Dataset:
    """Return an object or a folder in a bucket; of an address with a `*` the folder that it begins with."""
    address = ObjectAddress.parse(uri)
    return Dataset(
        namespace=f"{SCHEME}{address.bucket}",
        name=address.fixed_path or "/",
        kind="FILE",
        columns=tuple(columns),
        rows=rows,
        bytes=size_bytes,
    )


def table_or_objects(name: str) -> Dataset:
    """Return what a name stands for: an address in a bucket, or a table."""
    return objects(name) if name.startswith(SCHEME) else table(name)


def version(version_name: str) -> Dataset:
    """Return a version in the registry by its full name."""
    return Dataset(namespace=VERTEX, name=version_name, kind="MODEL")


def endpoint(endpoint_name: str) -> Dataset:
    """Return an endpoint by its full name."""
    return Dataset(namespace=VERTEX, name=endpoint_name, kind="ENDPOINT")
