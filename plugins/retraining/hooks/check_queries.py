"""BigQuery about a model's queries: unknown tables and columns, and columns whose type their role cannot take.

Dry runs, and the beginnings or ends of files, which may have other columns than `data.files` says: no table is read,
nothing costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retraining.core.data.assertions import render_asked_columns_sql
from retraining.core.data.class_names import numbered_columns, require_texts
from retraining.core.data.column_roles import mismatches, missing_columns
from retraining.core.data.columns import own_columns
from retraining.core.data.snapshot import any_time_parameters, render_columns_sql
from retraining.core.data.sql import Query
from retraining.core.documents.snapshot import Column
from retraining.core.monitoring import request_log
from retraining.core.planning.plan import resolve_patterns
from retraining.core.spec.files import load_assertions, load_frozen_set_query, load_labels_query, load_query
from retraining.core.spec.messages import raise_findings
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import ApiJson
from retraining.hooks.artifacts import Artifacts
from retraining.hooks.objects import Objects
from retraining.hooks.session import Session
from retraining.hooks.source_files import look
from retraining.hooks.warehouse import Warehouse


def check(spec: ModelSpec, include: Path, session: Session) -> str:
    """Return one line about a model's queries, and its files.

    Raises:
        RetrainingError: BigQuery refuses one, or its columns are not what the spec needs; or a file has others than
            the spec says.
    """
    warehouse, files = Warehouse(session), ""
    if spec.data.files is not None:
        found = look(spec.data.files, Objects(session), Artifacts(session))
        fit = "are there" if spec.data.files.format == "json" else "have the columns of data.files"
        files = f"; {found.count} files of {found.bytes:,} bytes {fit}"
    columns = _columns_of(spec.data.source_name, render_columns_sql(spec, load_query(spec, include)), warehouse)
    spec, _ = resolve_patterns(spec, [column.name for column in columns])
    _require_columns(spec, spec.data.source_name, columns)
    _ask_assertions(spec, include, warehouse)
    frozen = load_frozen_set_query(spec, include)
    if frozen is not None:
        where = str(spec.data.golden_query)
        _require_columns(spec, where, _columns_of(where, Query(sql=frozen), warehouse))
    labels = load_labels_query(spec, include)
    if labels is not None:
        where = str(spec.monitoring.performance.labels_query)
        _require_labels(spec, where, warehouse.dry_run(render_columns_sql(spec, labels), where).schema)
    return f"{spec.name}: BigQuery takes its queries, and their columns fit{files}"


def _ask_assertions(spec: ModelSpec, include: Path, warehouse: Warehouse) -> None:
    """Ask the model's own checks, over what the examples query would give."""
    examples = load_query(spec, include)
    for name, sql in load_assertions(spec, include).items():
        asked = render_asked_columns_sql(spec, examples, sql, any_time_parameters())
        warehouse.dry_run(asked, f"{spec.name}.yaml, data.assertions, {name}")


def _columns_of(where: str, query: Query, warehouse: Warehouse) -> tuple[Column, ...]:
    return own_columns(warehouse.dry_run(query, where).schema, where)


def _require_columns(spec: ModelSpec, where: str, columns: Sequence[Column]) -> None:
    require_texts(spec, [column.model_dump() for column in columns], where)
    columns = numbered_columns(spec, columns)
    missing = [(where, item.found, item.expected, item.message) for item in missing_columns(spec, columns)]
    wrong = [
        (where, f"column {item.column!r}: {item.found}", item.expected, item.message)
        for item in mismatches(spec, columns)
    ]
    raise_findings(where, [*missing, *wrong])


def _require_labels(spec: ModelSpec, where: str, columns: Sequence[ApiJson]) -> None:
    """Refuse labels as the monitor would, which only then judges no answer."""
    missing = request_log.missing_label_columns(spec, [str(column["name"]) for column in columns])
    expected = f"the key {spec.data.key!r} and the label {spec.label.name!r}"
    way_out = "Give its columns these names"
    found = [(where, f"no column {name!r}", expected, way_out) for name in missing]
    raise_findings(where, found)
    require_texts(spec, columns, where)
