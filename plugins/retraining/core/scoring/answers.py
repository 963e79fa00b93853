"""The answers: whether every row has one, and the statement that puts them into the destination in one step.

Who may write a destination is told by claims: one scoring at a time, and no longer than it holds the claim.
The claim is an object that is changed by compare and set. A write happens elsewhere, and may come late: from a task
that was stopped between its look at the claim and its write. So who is about to write takes a number first: one more
than the highest that stands in the table of claims, and only while the claim is still its own. The statement that
writes looks at that table: a higher number, or the same of another holder, and nothing is written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, cast

from retraining.core.catalog.cost import Prices, job_cost
from retraining.core.column_types import API_NAMES, SQL_NAMES
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.document import format_time
from retraining.core.documents.json_text import read_json
from retraining.core.documents.plan import Machines, Pool
from retraining.core.documents.scoring import Predictions, ScoringInput, ScoringLog, ScoringPlan, ScoringResult
from retraining.core.errors import ConflictError, ContractError, DataError
from retraining.core.naming import bigquery, vertex
from retraining.core.scoring.source import KEEP_DAYS
from retraining.core.untyped import JsonObject

RELEASED = "released"
"""Holder that a number has once its run has ended."""


@dataclass(frozen=True, kw_only=True)
class DestinationClaim:
    """A scoring's right to write a table, or a day of it, until it ends.

    Attributes:
        dag_id: Of the run.
        dag_run_id: Of the run.
        table: The destination, or a day of it.
        number: What the write is known by; 0: nothing is written yet.
        attempt: Who took the number: which clearing of the task.
    """

    dag_id: str
    dag_run_id: str
    table: str
    number: int = 0
    attempt: str = ""

    @property
    def holder(self) -> str:
        """Who has the number."""
        return self.attempt if self.attempt == RELEASED else f"{self.dag_run_id} of {self.dag_id}, {self.attempt}"

    def to_bytes(self) -> bytes:
        """Return the claim as it is stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes, uri: str) -> DestinationClaim:
        """Read what `to_bytes` gave, in this release or an earlier one.

        Raises:
            ContractError: It is none.
        """
        try:
            return cls(**cast(JsonObject, read_json(data)))
        except (ValueError, TypeError) as error:
            way_out = "Delete it, once no run writes that destination"
            raise ContractError(uri, "no claim of a scoring", "dag_id, dag_run_id and table", way_out) from error

    def is_run(self, other: DestinationClaim) -> bool:
        """Return whether another claim is of the same run."""
        return (self.dag_id, self.dag_run_id) == (other.dag_id, other.dag_run_id)

    def numbered(self, number: int, attempt: str) -> DestinationClaim:
        """Return the claim with a number."""
        return replace(self, number=number, attempt=attempt)

    def require_mine(self, holder: DestinationClaim, uri: str) -> None:
        """Refuse to go on while another run has it.

        Raises:
            ConflictError: One does; names it.
        """
        if not self.is_run(holder):
            raise ConflictError(
                self.table,
                f"run {holder.dag_run_id} of {holder.dag_id} writes it",
                "one scoring at a time",
                f"Wait until that run has ended, then clear this task; if there is no such run, delete {uri}",
            )


SHOWN = 5
"""Missing keys, and failed rows, that a message names."""

_API_TYPES = {**API_NAMES, "ARRAY<FLOAT64>": "FLOAT REPEATED"}


def destination_columns(plan: ScoringPlan, key_type: str) -> dict[str, str]:
    """Return the destination's columns with their SQL types.

    Raises:
        DataError: The key or the output has the name of another one.
    """
    columns = [
        (plan.key, SQL_NAMES[key_type]),
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


def render_answers_sql(plan: ScoringPlan, predictions: Predictions, *, is_text: bool) -> Query:
    """Return the statement that makes the table of answers, as the destination will have them.

    It stays for some days after the destination has them: a destination that is dropped is made from it again.

    Args:
        plan: The scoring.
        predictions: Of the job.
        is_text: Whether the column `prediction` is JSON text.
    """
    sql = _answers(plan, predictions, is_text=is_text, check=False)
    version = Parameter(name="model_version", type="STRING", value=plan.version.version_id)
    return Query(sql=sql, parameters=(version, *_time(plan)))


def render_write_sql(plan: ScoringPlan, key_type: str, claim: DestinationClaim) -> Query:
    """Return the statement that replaces the destination, or its day: nothing, if newer answers or claims are there.

    Args:
        plan: The scoring.
        key_type: Of the key.
        claim: With its number.
    """
    sql = render(
        "scoring_write.sql.j2",
        table=plan.destination.table,
        answers=answers_table(plan),
        claims=claims_table(plan),
        columns=destination_columns(plan, key_type),
        by_day=plan.destination.day is not None,
    )
    return Query(sql=sql, parameters=(*_numbered(claim), *_time(plan)))


LOGGED_ROWS = 100_000
"""Of a scoring, about: enough for each distribution that is watched, and little to keep and to read."""

LOG_KEEP_DAYS = 400
"""Longer than any window that the monitor may look back."""


def render_log_table_sql(log: ScoringLog) -> Query:
    """Return the statement that makes the table of what was scored where there is none."""
    return Query(sql=render("scoring_log_table.sql.j2", table=log.table, keep_days=LOG_KEEP_DAYS))


def render_log_sql(plan: ScoringPlan, log: ScoringLog, rows: int, now: datetime) -> Query:
    """Return the statement that keeps a sample of the rows and their answers for the monitor.

    Args:
        plan: The scoring.
        log: Where.
        rows: Of the scoring.
        now: The time they count for: of the answer, as in an endpoint's log, and not that of the scoring.
    """
    sql = render(
        "scoring_log.sql.j2",
        log=log.table,
        instances=plan.input_table,
        answers=answers_table(plan),
        key=plan.key,
        features=[feature for feature in plan.features if feature.kind not in ("image", "sequence")],
    )
    share = min(log.share, LOGGED_ROWS / rows)
    return Query(
        sql=sql,
        parameters=(
            Parameter(name="answered_by", type="STRING", value=vertex.deployed_model_id(plan.version.run_key)),
            Parameter(name="logged", type="TIMESTAMP", value=format_time(now)),
            Parameter(name="scoring", type="STRING", value=plan.run_key),
            Parameter(name="kept", type="INT64", value=math.ceil(share * MILLIONTHS)),
            Parameter(name="as_of", type="TIMESTAMP", value=format_time(plan.as_of)),
        ),
    )


MILLIONTHS = 1_000_000


def render_claims_sql(plan: ScoringPlan) -> Query:
    """Return the statement that makes the table of claims where there is none."""
    return Query(sql=render("scoring_claims.sql.j2", table=claims_table(plan)))


def render_claim_number_sql(plan: ScoringPlan) -> Query:
    """Return the query of one row: the highest number that is taken for the destination."""
    sql = render("scoring_claim_number.sql.j2", table=claims_table(plan))
    return Query(sql=sql, parameters=(Parameter(name="destination", type="STRING", value=written_table(plan)),))


def render_claim_sql(plan: ScoringPlan, claim: DestinationClaim) -> Query:
    """Return the statement that takes a claim's number, for who holds it."""
    return Query(sql=render("scoring_claim.sql.j2", table=claims_table(plan)), parameters=_numbered(claim))


def render_taken_sql(plan: ScoringPlan, claim: DestinationClaim) -> Query:
    """Return the query of one row: whether a claim's number, or a higher one, is another's."""
    return Query(sql=render("scoring_claim_taken.sql.j2", table=claims_table(plan)), parameters=_numbered(claim))


def render_newest_sql(plan: ScoringPlan) -> Query:
    """Return the query of one row: of which time the newest answers of the destination, or of its day, are."""
    by_day = plan.destination.day is not None
    sql = render("scoring_newest.sql.j2", table=plan.destination.table, by_day=by_day)
    return Query(sql=sql, parameters=_time(plan)[1:])


def require_newest(plan: ScoringPlan, newest: datetime | None, where: str = "") -> None:
    """Refuse to replace newer answers.

    Args:
        plan: The scoring.
        newest: Of which time those of the destination are; None: there are none.
        where: What names them; by default the destination.

    Raises:
        DataError: They are newer.
    """
    if newest is not None and newest > plan.as_of:
        where = where or written_table(plan)
        found = f"answers as of {format_time(newest)}, and this scoring is as of {format_time(plan.as_of)}"
        way_out = f"{where} stays as it was. If it shall go back, delete what is there, then clear this task"
        raise DataError(where, found, "none that are newer", way_out)


def is_gone(plan: ScoringPlan, newest: datetime | None) -> bool:
    """Return whether a destination no longer has the answers of a scoring that is done, nor any newer ones."""
    return newest is None or newest < plan.as_of


def answers_table(plan: ScoringPlan) -> str:
    """Return the table that keeps the answers for some days."""
    return bigquery.scored_table(plan.project, plan.dataset, plan.model, plan.run_key)


def claims_table(plan: ScoringPlan) -> str:
    """Return the table of claims."""
    return bigquery.scoring_claims_table(plan.project, plan.dataset)


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
        message=f"{instances.rows} rows scored by version {plan.version.version_id} into {written_table(plan)}{price}",
    )


def _answers(plan: ScoringPlan, predictions: Predictions, *, is_text: bool, check: bool) -> str:
    return render(
        "scoring_answers.sql.j2",
        instances=plan.input_table,
        predictions=predictions.table,
        target=answers_table(plan),
        keep_days=KEEP_DAYS,
        key=plan.key,
        output=plan.output,
        size=plan.answer_size,
        is_text=is_text,
        check=check,
        shown=SHOWN,
        by_day=plan.destination.day is not None,
    )


def _time(plan: ScoringPlan) -> tuple[Parameter, ...]:
    day = plan.destination.day
    as_of = Parameter(name="as_of", type="TIMESTAMP", value=format_time(plan.as_of))
    return (as_of, Parameter(name="day", type="DATE", value=day.isoformat())) if day else (as_of,)


def _numbered(claim: DestinationClaim) -> tuple[Parameter, ...]:
    return (
        Parameter(name="destination", type="STRING", value=claim.table),
        Parameter(name="number", type="INT64", value=claim.number),
        Parameter(name="holder", type="STRING", value=claim.holder),
    )


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())
