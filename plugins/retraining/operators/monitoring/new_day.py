"""The task `new_day`: whether the source has a complete new day, which starts a retraining once."""

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta
from typing import Any

from airflow.sdk import AssetAlias, Context

from retraining.core.documents import NewDay, Plan, Snapshot
from retraining.core.documents.document import format_time
from retraining.core.documents.monitoring import NewDayOutcome
from retraining.core.errors import ContractError
from retraining.core.monitoring import new_day
from retraining.core.monitoring.new_day import Counted, NewestRun
from retraining.core.naming import bigquery, dags, storage
from retraining.core.naming.run_keys import stamp
from retraining.core.planning import windows
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.triggers import DatedTable
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.schedules import retraining_asset
from retraining.operators.monitoring.watch import ByteLimit, load_spec
from retraining.operators.record.ownership import require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record

LOGGER = logging.getLogger(__name__)
RUNS_LOOKED_AT = 10
"""Newest runs among which one that may deploy is looked for."""


class FindNewDayOperator(CloudOperator):
    """Look for a complete new day of the source, write down what was found, and order a retraining by an asset event.

    Tables are counted only while the newest day that there could be was neither announced nor trained on.

    Args:
        model: Name of the spec, which has `triggers.new_day`.

    Returns:
        `{outcome, day, words, new_day_uri}`.
    """

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**{"outlets": [AssetAlias(dags.asset_name(model))], **kwargs})
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Resolve the time, look, write `new_day.json`; give the event when it says so."""
        dag_run, params = context["dag_run"], context["params"]
        require_own_bucket(cloud)
        require_own_model(cloud, self.model)
        as_of = windows.resolve_as_of(
            params["as_of"], None, dag_run.logical_date, dag_run.run_after, dag_run.start_date
        ).value
        record = Record(cloud.artifacts, storage.monitor_uri(cloud.settings.bucket, self.model, as_of, dag_run.run_id))
        found = record.find_document(NewDay)
        if found is None:
            asked_by = f"{dag_run.run_id}|{context['ti'].max_tries}"
            made = look_for_new_day(cloud, load_spec(self.model), as_of, asked_by)
            found = record.write_once(_asked_as_of(made, context))
        self.log.info(found.message)
        uri = record.uri(NewDay)
        if found.cause is not None and found.retrain_as_of is not None:
            extra: Any = {
                "as_of": format_time(found.retrain_as_of),
                "reason": found.message,
                "ledger_uri": uri,
                "cause": found.cause,
            }
            # Again for a retry, whose event did not go out: what was found is written before.
            context["outlet_events"][AssetAlias(dags.asset_name(self.model))].add(
                retraining_asset(self.model), extra=extra
            )
        return {
            "outcome": found.outcome,
            "day": found.day.isoformat() if found.day else None,
            "words": found.message,
            "new_day_uri": uri,
        }


def look_for_new_day(cloud: CloudPort, spec: ModelSpec, as_of: datetime, asked_by: str) -> NewDay:
    """Return what is found; `asked_by` tells a wanted repetition of a question from a retry."""
    asked = new_day.require_new_day(spec)
    looked_for = windows.window(spec.data, as_of - timedelta(hours=asked.after_hours)).end - timedelta(days=1)
    earlier, newest = _earlier(cloud, spec, as_of), _newest_run(cloud, spec.name)
    known = new_day.known_without_counting(spec, as_of, looked_for, earlier, newest)
    if known is not None:
        return known
    counted = _count(cloud, spec, as_of, looked_for, asked_by)
    return new_day.decide_new_day(spec, as_of, looked_for, counted, earlier=earlier, newest=newest)


def _asked_as_of(found: NewDay, context: Context) -> NewDay:
    """Return it with the time that a person gave for the retraining, if somebody did."""
    where, given = "Param retrain_as_of", context["params"]["retrain_as_of"]
    if not given or found.retrain_as_of is None:
        return found
    time = windows.require_past(windows.parse_time(given, where), context["dag_run"].start_date, where)
    return found.model_copy(update={"retrain_as_of": time})


def _earlier(cloud: CloudPort, spec: ModelSpec, as_of: datetime) -> list[NewDay]:
    """Return what earlier looks found while it still counts: an event is given again after hours."""
    folder = storage.monitors_uri(cloud.settings.bucket, spec.name)
    start = stamp(as_of - timedelta(days=new_day.COMPARED_DAYS))
    uris = cloud.artifacts.list_uris(folder, start=start, suffix=f"/{NewDay.kind_name()}.json")
    rows = [NewDay.parse(data) for data in cloud.artifacts.read_many(uris)]
    return [row for row in rows if row.as_of <= as_of]


def _newest_run(cloud: CloudPort, model: str) -> NewestRun | None:
    """Return the newest run that may deploy, by its time; None: among the newest there is none."""
    folders = cloud.artifacts.list_folders(storage.runs_uri(cloud.settings.bucket, model))
    for folder in reversed(folders[-RUNS_LOOKED_AT:]):
        record = Record(cloud.artifacts, folder)
        try:
            plan = record.find_document(Plan)
            if plan is not None and plan.mode == "live" and plan.deploy:
                return NewestRun(plan=plan, snapshot=record.find_document(Snapshot))
        except ContractError as error:  # of another release
            LOGGER.warning("passed over: %s", error)
    return None


def _count(cloud: CloudPort, spec: ModelSpec, as_of: datetime, looked_for: date, asked_by: str) -> Counted:
    """Count the rows of each table per day, once it is known that all of that stays within the limit."""
    asked, settings = new_day.require_new_day(spec), cloud.settings
    queries = {}
    for table in asked.tables:
        name = bigquery.full_table(table.name, settings.project)
        kind = _column_type(cloud, table, name)
        if not isinstance(kind, str):
            return Counted(rows={}, trouble=kind)
        queries[table.name] = new_day.rows_query(table, name, kind, looked_for)
    limit = ByteLimit(asked.max_gb, "triggers.new_day.max_gb")
    if reason := limit.reason_to_refuse(cloud.warehouse, {f"rows of {name}": query for name, query in queries.items()}):
        message = f"Waiting: {reason}. Partition the tables by their columns of time, or raise it."
        return Counted(rows={}, trouble=("too_expensive", message))
    rows, read = {}, 0
    for name, query in queries.items():
        job_id = bigquery.new_day_job_id(settings.environment, spec.name, as_of, f"{name}|{asked_by}")
        answer = limit.run(cloud.warehouse, query, job_id, f"rows of {name}")
        rows[name] = {date.fromisoformat(str(row["day"])): int(row["row_count"]) for row in answer.rows if row["day"]}
        read += answer.bytes_processed
    return Counted(rows=rows, bytes_read=read)


def _column_type(cloud: CloudPort, table: DatedTable, name: str) -> str | tuple[NewDayOutcome, str]:
    """Return the type of a table's column of time, or what is wrong with it."""
    schema = cloud.warehouse.table_schema(name)
    if schema is None:
        return "no_table", f"Waiting: there is no table {name}, which triggers.new_day names."
    types = {str(column["name"]).lower(): str(column["type"]) for column in schema}
    found = types.get(table.time.lower())
    if found not in new_day.TYPES:
        what = f"is {found}" if found else "is not there"
        expected = ", ".join(new_day.TYPES)
        return "no_column", f"Waiting: column {table.time} of {name} {what}; triggers.new_day needs one of {expected}."
    return found
