"""What a call of BigQuery's REST API is for the IAM table, and which tables a statement reads and writes.

In: a call's event, path and body. Out: its method as `service.json` names it, and the resources that it concerns. A
statement is read before it becomes a job: reading a table wants `bigquery.tables.getData` on it, and so on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.access.iam import DeniedError, Resources
from localcloud.untyped import Untyped

_PROJECT = re.compile(r"/projects/([^/]+)")
_DATASET = re.compile(r"/projects/[^/]+/datasets/([^/]+)")
_JOBS = re.compile(r"(^|[.])INFORMATION_SCHEMA[.]JOBS", re.IGNORECASE)
_OTHERS_JOBS = "The IAM table has no row for views of jobs, which show other people's statements."
_LIBRARIES = "The IAM table has no row for libraries of functions: an object that its reader may not read."
_ANONYMOUS = "_"  # datasets of results begin so: they are their query's caller's own


@dataclass
class Uses:
    """What a statement does with tables, by the kinds of `service.json`."""

    read: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    created_in: set[str] = field(default_factory=set)

    def resources(self) -> dict[str, list[str]]:
        """Return them as resources."""
        return {kind: sorted(names) for kind, names in vars(self).items()}


def asked(event: str, path: str, body: bytes) -> tuple[str, Resources]:
    """Name a call as the IAM table does, with the resources it concerns.

    Raises:
        DeniedError: It reads what nobody could say whether its caller may read.
    """
    project = match[1] if (match := _PROJECT.search(path)) else ""
    dataset = match[1] if (match := _DATASET.search(path)) else ""
    resources = {"project": [f"projects/{project}"], "dataset": [f"projects/{project}/datasets/{dataset}"]}
    if dataset.startswith(_ANONYMOUS):
        return f"{event}/anonymous", resources
    document = _read(body)
    if event not in ("bigquery.jobs.insert", "bigquery.jobs.query"):
        if event.startswith("bigquery.routines.") and isinstance(document, dict) and document.get("importedLibraries"):
            raise DeniedError(_LIBRARIES)
        return event, resources
    if not body:  # a part of a resumable upload, whose beginning said what is loaded
        return f"{event}/upload", resources
    if not isinstance(document, dict):
        return f"{event}/multipart", resources
    configuration = document if event == "bigquery.jobs.query" else document.get("configuration", {})
    kind = next((kind for kind in ("load", "extract", "copy") if kind in configuration), "query")
    if kind == "load":
        return f"{event}/load", {**resources, **_load_resources(configuration["load"], project)}
    if kind != "query":
        return f"{event}/{kind}", resources
    query = configuration if event == "bigquery.jobs.query" else configuration.get("query", {})
    uses = uses_of(
        str(query.get("query", "")),
        project,
        str(query.get("defaultDataset", {}).get("datasetId", "")),
    )
    if destination := query.get("destinationTable"):
        table = destination["tableId"].partition("$")[0]  # a day of it is written with the table's rights
        name = _resource(destination.get("projectId") or project, destination["datasetId"], table)
        uses.created.add(name)
        uses.written.add(name)
    method = event if event == "bigquery.jobs.query" else f"{event}/query"
    return method, {**resources, **uses.resources()}


def _read(body: bytes) -> Untyped:
    """Return the JSON of a body; None of what is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _load_resources(load: dict[str, Untyped], project: str) -> dict[str, list[str]]:
    """Return the table that a load writes, and the buckets that it reads as its caller."""
    table = load["destinationTable"]
    buckets = {urlsplit(uri).netloc for uri in load.get("sourceUris", ())}
    return {
        "written": [_resource(table.get("projectId") or project, table["datasetId"], table["tableId"])],
        "bucket": sorted(f"buckets/{bucket}" for bucket in buckets),
    }


def uses_of(statement: str, project: str, default_dataset: str = "") -> Uses:
    """Tell what a statement does with tables.

    Raises:
        DeniedError: It cannot be read, so nobody could say what it is allowed to do.
    """
    try:
        trees = [tree for tree in sqlglot.parse(statement, read="bigquery") if tree is not None]
    except sqlglot.errors.SqlglotError as error:
        raise DeniedError(f"The IAM table cannot be held against a statement that cannot be read: {error}.") from None
    uses = Uses()
    for tree in trees:
        _add(tree, uses, project, default_dataset)
    return uses


def _add(tree: Untyped, uses: Uses, project: str, default_dataset: str) -> None:
    def name(table: Untyped) -> str:
        return _resource(table.catalog or project, table.db or default_dataset, table.name)

    changing = exp.Create | exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.Drop
    if not isinstance(tree, exp.Query | changing):
        raise DeniedError(f"The IAM table has no row for statements like {tree.sql(dialect='bigquery')[:60]!r}.")
    if any(each.name.lower() == "library" for each in tree.find_all(exp.Property)):
        raise DeniedError(_LIBRARIES)
    if any(_JOBS.search(".".join(part.name for part in each.parts)) for each in tree.find_all(exp.Table)):
        raise DeniedError(_OTHERS_JOBS)
    target = tree.this.find(exp.Table) if isinstance(tree, changing) and tree.this is not None else None
    if isinstance(tree, exp.Create) and tree.args.get("kind") == "SCHEMA":
        uses.created_in.add(f"projects/{project}")
        return
    if isinstance(tree, exp.Drop):
        uses.dropped.add(name(target))
        return
    if isinstance(tree, exp.Create):
        uses.created.add(name(target))
    if target is not None:
        uses.written.add(name(target))
    named = {each.alias_or_name for each in tree.find_all(exp.CTE)}
    uses.read |= {
        name(each)
        for each in tree.find_all(exp.Table)
        if each is not target and each.name and _is_stored(each, default_dataset, named)
    }


def _is_stored(table: Untyped, default_dataset: str, named: set[str]) -> bool:
    """Return whether a table is of a dataset, or a view of INFORMATION_SCHEMA, which without one tells of them all."""
    is_view = str(table.name).upper().startswith("INFORMATION_SCHEMA.")
    return bool(table.db) or is_view or bool(default_dataset and table.name not in named)


def _resource(project: str, dataset: str, table: str) -> str:
    return f"projects/{project}/datasets/{dataset}/tables/{table}"
