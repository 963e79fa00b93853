"""The answers: whether every row has one, and the statement that puts them into the destination in one step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from retraining.core.catalog.cost import Prices, job_cost
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.document import format_time
from retraining.core.documents.plan import Machines, Pool
from retraining.core.documents.scoring import Predictions, ScoringInput, ScoringPlan, ScoringResult
from retraining.core.errors import DataError

SHOWN = 5
"""Missing keys, and failed rows, that a message names."""

_SQL_TYPES = {"INTEGER": "INT64", "STRING": "STRING"}
_API_TYPES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "ARRAY<FLOAT64>": "FLOAT REPEATED"}


def destination_columns(plan: ScoringPlan, key_type: str) -> dict[str, str]:
    """Return the destination's columns with their SQL types.

    Raises:
        DataError: The key or the output has the name of another one.
    """
    columns = [
        (plan.key, _SQL_TYPES[key_type]),
        (plan.output, "ARRAY<FLOAT64>" if plan.answer_size else "FLOAT64"),
        ("answer_json", "STRING"),
        ("model_version", "STRING"),
        ("scored_as_of", "TIMESTAMP"),
        *([("scored_on", "DATE")] if plan.destination.day else []),
    ]
    names = [name.lower() for name, _ in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(plan.destination.table, f"two columns {twice!r}", "distinct names", "Rename the model's key")
    return dict(columns)


def require_destination(plan: ScoringPlan, key_type: str, schema: Iterable[Mapping[str, Any]] | None) -> None:
    """Refuse a table that holds anything but answers of this form: it would be replaced.

    Args:
        plan: The scoring.
        key_type: Of the key.
        schema: Of the destination; None: there is no such table yet.

    Raises:
        DataError: It has other columns.
    """
    wanted = {name: _API_TYPES.get(type_, type_) for name, type_ in destination_columns(plan, key_type).items()}
    if schema is None:
        return
    found = {
        str(column["name"]): f"{column['type']}{' REPEATED' if column.get('mode') == 'REPEATED' else ''}"
        for column in schema
    }
    if found != wanted:
        raise DataError(
            plan.destination.table,
            f"a table with the columns {_listed(found)}",
            f"none, or one with {_listed(wanted)}",
            "Name another table as destination; or delete this one, if its rows may go",
        )


def render_destination_sql(plan: ScoringPlan, key_type: str) -> Query:
    """Return the statement that makes the destination where there is none."""
    columns = destination_columns(plan, key_type).items()
    table, by_day = plan.destination.table, plan.destination.day is not None
    return Query(sql=render("scoring_destination.sql.j2", table=table, columns=columns, by_day=by_day))


def render_check_sql(plan: ScoringPlan, predictions: Predictions, *, is_text: bool) -> Query:
    """Return the query of one row about the answers."""
    return Query(sql=_answers(plan, predictions, is_text=is_text, check=True))


def render_write_sql(plan: ScoringPlan, predictions: Predictions, *, is_text: bool) -> Query:
    """Return the query whose result replaces the destination, or its day.

    Args:
        plan: The scoring.
        predictions: Of the job.
        is_text: Whether the column `prediction` is JSON text.
    """
    day = plan.destination.day
    parameters = (
        Parameter(name="model_version", type="STRING", value=plan.version.version_id),
        Parameter(name="as_of", type="TIMESTAMP", value=format_time(plan.as_of)),
        *([Parameter(name="day", type="DATE", value=day.isoformat())] if day else []),
    )
    sql = _answers(plan, predictions, is_text=is_text, check=False)
    return Query(sql=sql, parameters=parameters, into=written_table(plan))


def written_table(plan: ScoringPlan) -> str:
    """Return what is replaced: the destination, or a day of it as `project.dataset.table$20131120`."""
    day = plan.destination.day
    return f"{plan.destination.table}${day:%Y%m%d}" if day else plan.destination.table


def render_errors_sql(predictions: Predictions) -> Query:
    """Return the query of one row about the rows that have no answer."""
    return Query(sql=render("scoring_errors.sql.j2", table=predictions.errors_table, shown=SHOWN))


def require_whole(
    plan: ScoringPlan,
    instances: ScoringInput,
    predictions: Predictions,
    row: Mapping[str, Any],
    errors: Mapping[str, Any] | None,
) -> None:
    """Refuse answers that are not one per instance, before anything of the destination goes.

    Args:
        plan: The scoring.
        instances: What was sent.
        predictions: Of the job.
        row: Result of `render_check_sql`.
        errors: Result of `render_errors_sql`; None: there is no such table.

    Raises:
        DataError: Rows have none, or several, or one of another form.
    """
    stays = f"{written_table(plan)} stays as it was"
    if missing := int(row["missing"]):
        keys = ", ".join(map(str, row["missing_keys"]))
        found = f"{missing} of {instances.rows} rows have no answer: {plan.key} {keys}"
        found += ", …" if missing > SHOWN else ""
        if errors and int(errors["errors"]):
            found += f"; {errors['errors']} are in {predictions.errors_table}: {'; '.join(errors['examples'])}"
        way_out = f"{stays}. Correct these rows or leave them out, then trigger the DAG again with Force"
        raise DataError(predictions.table, found, "an answer for each", way_out)
    if int(row["answers"]) != instances.rows:
        found = f"{row['answers']} answers for {instances.rows} rows"
        raise DataError(predictions.table, found, "one for each", f"{stays}. Trigger the DAG again with Force")
    if int(row["unreadable"]):
        form = f"{plan.answer_size} numbers" if plan.answer_size else "a number"
        found = f"{row['unreadable']} answers like {str(row['example'])[:200]}"
        way_out = f"{stays}. Compare the serving image with the version's signature"
        raise DataError(predictions.table, found, f"{form} as {plan.output!r}", way_out)


def build_result(
    plan: ScoringPlan, instances: ScoringInput, predictions: Predictions, prices: Prices | None
) -> ScoringResult:
    """Return what came of it."""
    cost = None
    if prices and predictions.seconds is not None:
        machines = Machines(
            pools=(Pool(machine=plan.machine, count=plan.replicas),), spot=False, timeout_s=plan.timeout_s
        )
        cost = job_cost(machines, predictions.seconds, 0, prices, plan.region)
    price = "" if cost is None else f", for {cost:.2f} USD of machines at list prices"
    return ScoringResult(
        model=plan.model,
        run_key=plan.run_key,
        as_of=plan.as_of,
        version=plan.version,
        destination=plan.destination,
        rows=instances.rows,
        job=predictions.job,
        seconds=predictions.seconds,
        cost_usd=cost,
        words=f"{instances.rows} rows scored by version {plan.version.version_id} into {written_table(plan)}{price}",
    )


def _answers(plan: ScoringPlan, predictions: Predictions, *, is_text: bool, check: bool) -> str:
    return render(
        "scoring_answers.sql.j2",
        instances=plan.input_table,
        predictions=predictions.table,
        key=plan.key,
        output=plan.output,
        size=plan.answer_size,
        is_text=is_text,
        check=check,
        shown=SHOWN,
        by_day=plan.destination.day is not None,
    )


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())
