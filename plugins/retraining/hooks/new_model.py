"""A first YAML and SQL file of a model, from a look at its table: two new files that `check-models` takes.

Three statements read the table: its columns, the days that have
rows, the label's values. Files are loaded into a table for it, which is deleted.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import date
from pathlib import Path

from retraining.core.catalog.model_check import warnings_of
from retraining.core.data.new_model import ModelFiles, write_model
from retraining.core.data.source_files import detecting_load, render_files_table_sql
from retraining.core.data.sql import Query
from retraining.core.data.table_profile import (
    NewModel,
    TableProfile,
    build_profile,
    render_classes_sql,
    render_days_sql,
    render_profile_sql,
    require_columns,
)
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, SpecError
from retraining.core.spec.files import load_query, load_spec
from retraining.core.spec.source_files import SourceFiles
from retraining.core.spec.teams import folder_of
from retraining.hooks import check_queries
from retraining.hooks.artifacts import Artifacts
from retraining.hooks.objects import Objects
from retraining.hooks.session import Session
from retraining.hooks.source_files import list_files, look
from retraining.hooks.warehouse import Warehouse

MAX_BYTES = 10**11
"""That the look may read: some 0.6 USD at BigQuery's list price."""


def make_model(model: NewModel, include: Path, session: Session, today: date, files: str = "") -> list[str]:
    """Write both files; return a line about each, BigQuery's word on the query, and what to ask next.

    Args:
        model: What its user says of it.
        include: Where its files go.
        session: Where its table is, or is made of files and deleted again.
        today: A table whose newest rows are far before it has ended.
        files: Their address; none: the table holds the examples.

    Raises:
        RetrainingError: A file is there already, the table or a column is not, or no model can be made of them.
    """
    paths = _paths(model, include)
    for path in (*paths, paths[0].with_suffix(".yml")):
        if path.exists():
            raise SpecError(str(path), "a file", "none: it is not written over", "Choose another NAME, or remove it")
    if not files:
        return _look_and_write(model, include, session, today)
    table = model.full_table(session.project)
    try:
        model = replace(model, files=_load_files(files, table, session))
        return _look_and_write(model, include, session, today)
    finally:
        Warehouse(session).delete_table(table)


def _load_files(uri: str, table: str, session: Session) -> SourceFiles:
    """Load files into a table that expires; return them with the columns that BigQuery finds in the first."""
    warehouse, objects = Warehouse(session), Objects(session)
    detecting = detecting_load(uri, list_files([uri], objects)[1], table)
    warehouse.load_files(detecting, _job_id(), uri)
    load = detecting.pinned(_columns_of(table, warehouse))
    look(load.files, objects, Artifacts(session))
    warehouse.run_query(render_files_table_sql(load), _job_id(), uri)
    warehouse.load_files(load, _job_id(), uri)
    return load.files


def _paths(model: NewModel, include: Path) -> tuple[Path, Path]:
    folder = folder_of(include, model.name)
    return folder / "models" / f"{model.name}.yaml", folder / "sql" / model.name / "examples.sql"


def _look_and_write(model: NewModel, include: Path, session: Session, today: date) -> list[str]:
    paths = _paths(model, include)
    profile, read = _look(model, Warehouse(session), session.project)
    files = write_model(model, profile, today)
    _write_files(files, *paths)
    spec = load_spec(paths[0])
    taken = check_queries.check(spec, include, session)
    warnings = [f"warning: {warning}" for warning in warnings_of(spec, load_query(spec, include))]
    written = [f"{path}: written" for path in paths]
    return [f"{model.source}: {read / 1e6:,.1f} MB read", *written, taken, *warnings, f"next: {files.preview}"]


def _look(model: NewModel, warehouse: Warehouse, project: str) -> tuple[TableProfile, int]:
    """Return what the table holds, and the bytes read for it."""
    table = model.full_table(project)
    columns = _columns_of(table, warehouse)
    require_columns(model, columns)
    queries: list[Query | None] = [
        render_profile_sql(model, table, columns),
        render_days_sql(model, table) if model.time else None,
        render_classes_sql(model, table, columns),
    ]
    read = sum(warehouse.dry_run(query, model.source).bytes_processed for query in queries if query)
    if read > MAX_BYTES:
        expected = f"at most {MAX_BYTES // 10**9} GB for a look"
        raise DataError(model.source, f"{read / 1e9:,.0f} GB to read", expected, "Make a view of some weeks, name that")
    rows, days, classes = (
        warehouse.run_query(query, _job_id(), model.source).rows if query else [] for query in queries
    )
    return build_profile(model, columns, rows[0], days, classes), read


def _job_id() -> str:
    return f"new_model_{uuid.uuid4().hex}"


def _columns_of(table: str, warehouse: Warehouse) -> list[Column]:
    schema = warehouse.table_schema(table)
    if schema is None:
        raise DataError("TABLE", f"no table {table}", "one that this account may read", "Correct its name")
    return [Column(name=item["name"], type=item["type"], mode=item["mode"] or "NULLABLE") for item in schema]


def _write_files(files: ModelFiles, yaml_path: Path, sql_path: Path) -> None:
    for path, text in ((sql_path, files.sql), (yaml_path, files.yaml)):  # a YAML without its SQL would be refused
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
