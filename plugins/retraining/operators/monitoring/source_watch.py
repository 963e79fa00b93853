"""How old the champion is, and what it lives on: the tables that the query reads, or the source's files."""

from __future__ import annotations

from datetime import datetime

from retraining.core.data.snapshot import render_columns_sql
from retraining.core.errors import RetrainingError
from retraining.core.monitoring import signals
from retraining.core.monitoring.signals import not_judged
from retraining.core.naming.run_keys import RunKey
from retraining.core.settings import include_path
from retraining.core.spec.files import load_query
from retraining.operators.monitoring.watch import Seen, Watch


def watch_age(watch: Watch) -> Seen:
    """Return how old the champion's data is."""
    as_of = RunKey.parse(watch.champion.run_key).as_of if watch.champion else None
    return Seen(signals=(signals.judge_age(watch.spec, as_of, watch.as_of),))


def watch_sources(watch: Watch) -> Seen:
    """Return when the sources last changed."""
    try:
        changed = {**_tables(watch), **_files(watch)}
    except RetrainingError as error:  # a query that BigQuery refuses: the retraining says it too, and stops there
        return Seen(signals=(not_judged("source", "hours", "source_stopped", f"The sources cannot be read: {error}"),))
    return Seen(signals=signals.judge_sources(watch.spec, changed, watch.as_of, watch.cloud.settings.project))


def _tables(watch: Watch) -> dict[str, datetime | None]:
    data, warehouse = watch.spec.data, watch.cloud.warehouse
    query = render_columns_sql(watch.spec, load_query(watch.spec, include_path()))
    return {table: warehouse.table_changed(table) for table in warehouse.dry_run(query, data.source_name).tables}


def _files(watch: Watch) -> dict[str, datetime | None]:
    files, objects = watch.spec.data.files, watch.cloud.objects
    if files is None:
        return {}
    return {uri: max((found.created for found in objects.match(uri)), default=None) for uri in files.uris}
