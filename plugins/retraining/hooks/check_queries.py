"""`python -m retraining.hooks.check_queries --project my-project --region us-central1`: BigQuery about every query.

In: the models' files, a project, this machine's own credentials (`gcloud auth application-default login`). Out: unknown
tables and columns, columns whose type their role cannot take, and files of other columns than `data.files` says, in
words. Dry runs, and the beginnings or ends of files: no table is read, nothing costs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from retraining.core.data.column_roles import misfits, missing_columns
from retraining.core.data.columns import own_columns
from retraining.core.data.snapshot import render_columns_sql
from retraining.core.data.sql import Query
from retraining.core.documents.snapshot import Column
from retraining.core.errors import RetrainingError
from retraining.core.monitoring import request_log
from retraining.core.naming.environments import Environment
from retraining.core.planning.feature_patterns import resolve_patterns
from retraining.core.printable import printable
from retraining.core.settings import include_path
from retraining.core.spec.files import find_specs, load_frozen_set_query, load_labels_query, load_query, load_spec
from retraining.core.spec.messages import raise_findings
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import ApiJson
from retraining.hooks.artifacts import Artifacts
from retraining.hooks.objects import Objects
from retraining.hooks.session import SCOPES, Session
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
    frozen = load_frozen_set_query(spec, include)
    if frozen is not None:
        where = str(spec.data.golden_query)
        _require_columns(spec, where, _columns_of(where, Query(sql=frozen), warehouse))
    labels = load_labels_query(spec, include)
    if labels is not None:
        where = str(spec.monitoring.performance.labels_query)
        _require_labels(spec, where, warehouse.dry_run(render_columns_sql(spec, labels), where).schema)
    return f"{spec.name}: BigQuery takes its queries, and their columns fit{files}"


def _columns_of(where: str, query: Query, warehouse: Warehouse) -> tuple[Column, ...]:
    return own_columns(warehouse.dry_run(query, where).schema, where)


def _require_columns(spec: ModelSpec, where: str, columns: Sequence[Column]) -> None:
    missing = [(where, item.found, item.expected, item.message) for item in missing_columns(spec, columns)]
    wrong = [
        (where, f"column {item.column!r}: {item.found}", item.expected, item.message) for item in misfits(spec, columns)
    ]
    raise_findings(where, [*missing, *wrong])


def _require_labels(spec: ModelSpec, where: str, columns: Sequence[ApiJson]) -> None:
    """Refuse labels as the monitor would, which only then judges no answer."""
    missing = request_log.missing_label_columns(spec, [str(column["name"]) for column in columns])
    expected = f"the key {spec.data.key!r} and the label {spec.label.name!r}"
    way_out = "Give its columns these names"
    found = [(where, f"no column {name!r}", expected, way_out) for name in missing]
    raise_findings(where, found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per model, or what is wrong.

    Returns:
        0 when every query is as its spec needs it, 1 when not.
    """
    parser = argparse.ArgumentParser(prog="check_queries", description=__doc__)
    parser.add_argument("--project", required=True, help="project that the dry runs are asked in")
    parser.add_argument("--region", required=True, help="location of the tables")
    parser.add_argument("--include", type=Path, help="folder with models and sql (default: the one beside dags)")
    options = parser.parse_args(arguments)
    failed = False
    for line, wrong in _lines(options.include or include_path(), own_session(options.project, options.region)):
        print(printable(line, keep_lines=True), file=sys.stderr if wrong else sys.stdout)
        failed = failed or wrong
    return int(failed)


def _lines(include: Path, session: Session) -> Iterator[tuple[str, bool]]:
    for path in find_specs(include):
        try:
            yield check(load_spec(path), include, session), False
        except RetrainingError as error:
            yield str(error), True


def own_session(project: str, region: str, max_bytes_billed: int = 0) -> Session:
    """Return a project and region, asked with this machine's own credentials."""
    import google.auth

    credentials, _ = google.auth.default(scopes=list(SCOPES))
    return Session(
        project=project,
        region=region,
        environment=Environment(label="check-models", bucket=""),
        max_bytes_billed=max_bytes_billed,
        credentials=credentials,
    )


if __name__ == "__main__":
    sys.exit(main())
