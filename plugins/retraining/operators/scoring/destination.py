"""The tasks `write` and `clean_up`: the answers go into the destination in one step, then what was in between goes."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.catalog.cost import load_prices
from retraining.core.documents import Predictions, ScoringInput, ScoringLog, ScoringPlan, ScoringResult
from retraining.core.errors import ConflictError, DataError
from retraining.core.scoring import answers
from retraining.core.settings import include_path
from retraining.core.untyped import Row, XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.record.run_record import Record
from retraining.operators.record.spending import note_scoring
from retraining.operators.scoring.lines import newest_lines, write_lines
from retraining.operators.scoring.scoring_task import (
    ScoringTask,
    claim_destination,
    is_taken,
    make_claims,
    make_destination,
    newest_answers,
    number_claim,
    release_destination,
    require_claim,
    statement_id,
)

MOST_NUMBERS = 3
"""That a try takes one after the other; two runs that both hold a claim somebody deleted by hand can meet so."""


class WriteAnswersOperator(ScoringTask, CloudOperator):
    """Replace the destination, or its day, with the answers, when every row has one and no newer ones are there.

    Returns:
        `{scoring_uri, rows, words}`.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Check, write, conclude; each once. What is done is done again where the destination has lost it."""
        record = self.record(cloud, context)
        planned, found = record.read_document(ScoringPlan), record.find_document(ScoringResult)
        if found is None or self._is_gone(cloud, planned, context):
            claim_destination(cloud, planned, context)
            written = self._write(cloud, record, planned, context)
            found = record.write_once(written)
        note_scoring(cloud, found)
        self.log.info(found.message)
        return {"scoring_uri": record.uri(ScoringResult), "rows": found.rows, "words": found.message}

    @staticmethod
    def _is_gone(cloud: CloudPort, planned: ScoringPlan, context: Context) -> bool:
        if planned.source.files is not None:
            return newest_lines(cloud, planned) is None
        return answers.is_gone(planned, newest_answers(cloud, planned, "newest", context))

    def _write(self, cloud: CloudPort, record: Record, planned: ScoringPlan, context: Context) -> ScoringResult:
        instances, predictions = record.read_document(ScoringInput), record.read_document(Predictions)
        if planned.source.files is not None:
            return write_lines(cloud, planned, instances, predictions, lambda: require_claim(cloud, planned, context))
        if cloud.warehouse.table_schema(answers.answers_table(planned)) is None:
            self._keep_answers(cloud, planned, instances, predictions, context)
        make_claims(cloud, planned, "claims_again", context)
        self._replace(cloud, planned, str(instances.key_type), context)
        if planned.log is not None:
            self._keep_for_monitor(cloud, planned, planned.log, instances.rows, context)
        return answers.build_result(planned, instances, predictions, load_prices(include_path()))

    def _keep_answers(
        self,
        cloud: CloudPort,
        planned: ScoringPlan,
        instances: ScoringInput,
        predictions: Predictions,
        context: Context,
    ) -> None:
        """Check the answers of the job, and make the table of them."""
        warehouse = cloud.warehouse
        for table in (predictions.table, instances.table):
            if warehouse.table_schema(table) is None:
                way_out = "Trigger the DAG again with Force: another job is paid for"
                raise DataError(table, "no such table", f"what {predictions.job} left, or was sent", way_out)
        schema = warehouse.table_schema(predictions.table) or []
        is_text = any((column["name"], column["type"]) == ("prediction", "STRING") for column in schema)
        checked = warehouse.run_query(
            answers.render_check_sql(planned, predictions, is_text=is_text),
            statement_id(planned, "check", context),
            "answers",
        )
        errors = self._errors(cloud, planned, predictions, context)
        answers.require_whole(planned, instances, predictions, checked.rows[0], errors)
        warehouse.run_query(
            answers.render_answers_sql(planned, predictions, is_text=is_text),
            statement_id(planned, "answers", context),
            "table of answers",
        )

    @staticmethod
    def _keep_for_monitor(cloud: CloudPort, planned: ScoringPlan, log: ScoringLog, rows: int, context: Context) -> None:
        """Keep a sample of rows and answers; where the rows are gone a scoring that was done before has done it."""
        warehouse = cloud.warehouse
        if warehouse.table_schema(planned.input_table) is None:
            return
        if warehouse.table_schema(log.table) is None:
            made = answers.render_log_table_sql(log)
            warehouse.run_query(made, statement_id(planned, "log_table", context), f"log {log.table}")
        kept = answers.render_log_sql(planned, log, rows, cloud.clock.now().replace(microsecond=0))
        warehouse.run_query(kept, statement_id(planned, "log", context), f"log {log.table}")

    def _replace(self, cloud: CloudPort, planned: ScoringPlan, key_type: str, context: Context) -> None:
        """Write, as long as no newer answers and no newer claim are there."""
        refused = None
        for _ in range(MOST_NUMBERS):
            claim = number_claim(cloud, planned, context, refused)
            make_destination(cloud, planned, key_type, f"destination_{claim.number}", context)
            try:
                cloud.warehouse.run_query(
                    answers.render_write_sql(planned, key_type, claim),
                    statement_id(planned, f"write_{claim.number}", context),
                    f"destination {planned.destination.table}",
                )
                return
            except DataError:
                newest = newest_answers(cloud, planned, f"newest_{claim.number}", context)
                answers.require_newest(planned, newest)
                if not is_taken(cloud, planned, claim, context):
                    raise
                self.log.warning("number %d of %s is another's too: the next one", claim.number, claim.table)
                refused = claim
        way_out = "Clear this task once the other run has ended"
        raise ConflictError(planned.destination.table, "others write it meanwhile", "one scoring at a time", way_out)

    @staticmethod
    def _errors(cloud: CloudPort, planned: ScoringPlan, predictions: Predictions, context: Context) -> Row | None:
        if cloud.warehouse.table_schema(predictions.errors_table) is None:
            return None
        query = answers.render_errors_sql(predictions)
        found: Row = cloud.warehouse.run_query(query, statement_id(planned, "errors", context), "errors").rows[0]
        return found


class CleanUpScoringOperator(ScoringTask, CloudOperator):
    """Delete the tables in between of a scoring that is done, and let others write the destination. To be a teardown.

    Those of one that failed stay: its cleared tasks go on with them, and pay no job a second time.

    Returns:
        The deleted tables.
    """

    def act(self, cloud: CloudPort, context: Context) -> list[str]:
        """Look what there is; delete; release."""
        if not self.run_uri.startswith("gs://"):  # there is no plan
            return []
        record = self.record(cloud, context)
        planned = record.find_document(ScoringPlan)
        if planned is None:
            return []
        predictions = record.find_document(Predictions)
        if planned.source.files is not None:  # the answers are the destination's own
            release_destination(cloud, planned, context)
            return []
        tables = [planned.input_table, *([predictions.table, predictions.errors_table] if predictions else [])]
        done = record.find_document(ScoringResult) is not None
        for table in tables if done else ():
            cloud.warehouse.delete_table(table)
            self.log.info("%s is deleted", table)
        if not done:
            self.log.warning("the scoring is not done: %s stay for its cleared tasks", ", ".join(tables))
        release_destination(cloud, planned, context)
        return tables if done else []
