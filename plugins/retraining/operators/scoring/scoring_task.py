"""What the tasks of a scoring share: its record, the ids of its statements, and its right to write the destination."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import Context

from retraining.core.documents import ScoringPlan
from retraining.core.errors import ConflictError
from retraining.core.naming import bigquery, storage
from retraining.core.scoring import answers
from retraining.core.scoring.answers import RELEASED, DestinationClaim, written_table
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import RunTask
from retraining.operators.record.ownership import own_scoring
from retraining.operators.record.run_record import Record


class ScoringTask(RunTask):
    """A task that works in a scoring's folder of documents."""

    lineage_steps = "scoring"

    def open_record(self, cloud: CloudPort, context: Context) -> Record:
        """Look whose scoring it is."""
        return own_scoring(cloud, context, self.run_uri)


def statement_id(plan: ScoringPlan, purpose: str, context: Context) -> str:
    """Return the id of a statement's job: a retry joins it, a cleared task asks again."""
    ti: Any = context["ti"]
    attempt = f"{ti.dag_id}|{ti.run_id}|{ti.max_tries}"
    return bigquery.scoring_job_id(plan.environment, plan.model, plan.run_key, purpose, attempt)


def make_destination(cloud: CloudPort, plan: ScoringPlan, key_type: str, purpose: str, context: Context) -> None:
    """Make the destination where there is none.

    Raises:
        DataError: There is one that holds something else, or its dataset is missing.
    """
    table = plan.destination.table
    schema = cloud.warehouse.table_schema(table)
    answers.require_destination(plan, key_type, schema)
    if schema is None:
        query = answers.render_destination_sql(plan, key_type)
        cloud.warehouse.run_query(query, statement_id(plan, purpose, context), f"destination {table}")


def make_claims(cloud: CloudPort, plan: ScoringPlan, purpose: str, context: Context) -> None:
    """Make the table of claims where there is none: before anything is paid, and for a run of an earlier release."""
    if cloud.warehouse.table_schema(answers.claims_table(plan)) is None:
        cloud.warehouse.run_query(answers.render_claims_sql(plan), statement_id(plan, purpose, context), "claims")


def newest_answers(cloud: CloudPort, plan: ScoringPlan, purpose: str, context: Context) -> datetime | None:
    """Return of which time the newest answers of the destination, or of its day, are; None: it has none."""
    if cloud.warehouse.table_schema(plan.destination.table) is None:
        return None
    query = answers.render_newest_sql(plan)
    found: datetime | None = cloud.warehouse.run_query(query, statement_id(plan, purpose, context), "newest").rows[0][
        "newest"
    ]
    return found


def claim_destination(cloud: CloudPort, plan: ScoringPlan, context: Context) -> None:
    """Take the right to write the destination, until `release_destination`; the same run may take it again.

    Raises:
        ConflictError: Another run has it.
    """
    uri, mine = _claim(cloud, plan, context)
    while True:
        data, generation = cloud.artifacts.read_generation(uri)
        if data:
            mine.require_mine(DestinationClaim.parse(data, uri), uri)
            return
        if cloud.artifacts.write_if(uri, mine.to_bytes(), generation) is not None:
            return


def number_claim(
    cloud: CloudPort, plan: ScoringPlan, context: Context, refused: DestinationClaim | None = None
) -> DestinationClaim:
    """Take a number for a write: one that is higher than any that was taken while the claim was another's.

    It is asked for, then put into the claim by compare and set, then written down where the write looks: who loses the
    claim on the way has at most the number of who has it now, and the same number of two lets neither write.

    Args:
        cloud: The hooks.
        plan: The scoring.
        context: Airflow's, of a task that holds the claim.
        refused: A claim whose number let nothing be written: it takes another.

    Raises:
        ConflictError: Another run has the claim, or nobody any more.
    """
    uri, mine = _claim(cloud, plan, context)
    attempt = f"{context['ti'].max_tries}"
    while True:
        data, generation = cloud.artifacts.read_generation(uri)
        held = _held(mine, uri, data)
        if held.number and held.attempt == attempt and held != refused:
            break
        asked = cloud.warehouse.run_query(
            answers.render_claim_number_sql(plan), statement_id(plan, f"number_{generation}", context), "number"
        )
        held = held.numbered(int(asked.rows[0]["number"]) + 1, attempt)
        if cloud.artifacts.write_if(uri, held.to_bytes(), generation) is not None:
            break
    _note(cloud, plan, held, context)
    return held


def is_taken(cloud: CloudPort, plan: ScoringPlan, claim: DestinationClaim, context: Context) -> bool:
    """Return whether somebody else has taken a claim's number, or a higher one."""
    found = cloud.warehouse.run_query(
        answers.render_taken_sql(plan, claim), statement_id(plan, f"taken_{claim.number}", context), "taken"
    )
    return bool(found.rows[0]["taken"])


def require_claim(cloud: CloudPort, plan: ScoringPlan, context: Context) -> None:
    """Look whether the claim is still this run's.

    Raises:
        ConflictError: It is not.
    """
    uri, mine = _claim(cloud, plan, context)
    _held(mine, uri, cloud.artifacts.read_generation(uri)[0])


def release_destination(cloud: CloudPort, plan: ScoringPlan, context: Context) -> None:
    """Give the right back, where this run has it; a write that is still to come finds that it has no right."""
    uri, mine = _claim(cloud, plan, context)
    while True:
        found = cloud.objects.find_object(uri)
        data, generation = cloud.artifacts.read_generation(uri)
        if not found or not data or not mine.is_run(held := DestinationClaim.parse(data, uri)):
            return
        if found.generation != generation:
            continue
        if held.number and cloud.warehouse.table_schema(answers.claims_table(plan)) is not None:
            _note(cloud, plan, held.numbered(held.number, RELEASED), context)
        if all(deleted.gone for deleted in cloud.objects.delete([found])):
            return


def _held(mine: DestinationClaim, uri: str, data: bytes) -> DestinationClaim:
    if not data:
        raise ConflictError(uri, "the claim on the destination is gone", "this run's", "Clear this task")
    held = DestinationClaim.parse(data, uri)
    mine.require_mine(held, uri)
    return held


def _note(cloud: CloudPort, plan: ScoringPlan, claim: DestinationClaim, context: Context) -> None:
    """Write a claim's number down, where the statement that writes looks; once."""
    purpose = f"{'release' if claim.attempt == RELEASED else 'claim'}_{claim.number}"
    cloud.warehouse.run_query(answers.render_claim_sql(plan, claim), statement_id(plan, purpose, context), "claim")


def _claim(cloud: CloudPort, plan: ScoringPlan, context: Context) -> tuple[str, DestinationClaim]:
    ti: Any = context["ti"]
    table = written_table(plan)
    claim = DestinationClaim(dag_id=ti.dag_id, dag_run_id=ti.run_id, table=table)
    return storage.destination_claim_uri(cloud.settings.bucket, table), claim
