"""What the tasks of a scoring share: its record, the ids of its statements, and its right to write the destination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from retraining.core.documents import ScoringPlan
from retraining.core.naming import bigquery, storage
from retraining.core.scoring.answers import written_table
from retraining.core.scoring.claims import DestinationClaim
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import RunTask
from retraining.operators.record.ownership import own_scoring
from retraining.operators.record.run_record import Record

if TYPE_CHECKING:
    from retraining.core.lineage.steps import Steps


class ScoringTask(RunTask):
    """A task that works in a scoring's folder of documents."""

    def lineage_steps(self) -> Steps:
        """Return what the tasks of a scoring read and write."""
        from retraining.core.lineage.steps import SCORING_STEPS

        return SCORING_STEPS

    def open_record(self, cloud: CloudPort, context: Context) -> Record:
        """Look whose scoring it is."""
        return own_scoring(cloud, context, self.run_uri)


def statement_id(plan: ScoringPlan, purpose: str, context: Context) -> str:
    """Return the id of a statement's job: a retry joins it, a cleared task asks again."""
    ti: Any = context["ti"]
    attempt = f"{ti.dag_id}|{ti.run_id}|{ti.max_tries}"
    return bigquery.scoring_job_id(plan.environment, plan.model, plan.run_key, purpose, attempt)


def claim_destination(cloud: CloudPort, plan: ScoringPlan, context: Context) -> None:
    """Take the right to write the destination, until `release_destination`; the same run may take it again.

    Raises:
        ConflictError: Another run has it.
    """
    uri, mine = _claim(cloud, plan, context)
    while True:
        data, generation = cloud.artifacts.read_generation(uri)
        if data:
            mine.require_mine(DestinationClaim.parse(data), uri)
            return
        if cloud.artifacts.write_if(uri, mine.to_bytes(), generation) is not None:
            return


def release_destination(cloud: CloudPort, plan: ScoringPlan, context: Context) -> None:
    """Give the right back, where this run has it."""
    uri, mine = _claim(cloud, plan, context)
    found = cloud.objects.find_object(uri)
    data, generation = cloud.artifacts.read_generation(uri)
    if found and data and found.generation == generation and DestinationClaim.parse(data) == mine:
        list(cloud.objects.delete([found]))


def _claim(cloud: CloudPort, plan: ScoringPlan, context: Context) -> tuple[str, DestinationClaim]:
    ti: Any = context["ti"]
    table = written_table(plan)
    claim = DestinationClaim(dag_id=ti.dag_id, dag_run_id=ti.run_id, table=table)
    return storage.destination_claim_uri(cloud.settings.bucket, table), claim
