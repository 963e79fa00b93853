"""The tasks `write` and `clean_up`: the answers go into the destination in one step, then what was in between goes."""

from __future__ import annotations

from airflow.sdk import Context

from retraining.core.catalog.cost import load_prices
from retraining.core.documents import Predictions, ScoringInput, ScoringPlan, ScoringResult
from retraining.core.errors import DataError
from retraining.core.scoring import answers
from retraining.core.settings import include_path
from retraining.core.untyped import Row, XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.record.run_record import Record
from retraining.operators.scoring.lines import write_lines
from retraining.operators.scoring.scoring_task import (
    ScoringTask,
    claim_destination,
    release_destination,
    statement_id,
)


class WriteAnswersOperator(ScoringTask, CloudOperator):
    """Replace the destination, or its day, with the answers, when every row has one.

    Returns:
        `{scoring_uri, rows, words}`.
    """

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Check, write, conclude; each once."""
        record = self.record(cloud, context)
        found = record.find_document(ScoringResult)
        if found is None:
            claim_destination(cloud, record.read_document(ScoringPlan), context)
            found = record.write_once(self._write(cloud, record, context))
        self.log.info(found.words)
        return {"scoring_uri": record.uri(ScoringResult), "rows": found.rows, "words": found.words}

    def _write(self, cloud: CloudPort, record: Record, context: Context) -> ScoringResult:
        planned, instances = record.read_document(ScoringPlan), record.read_document(ScoringInput)
        predictions, warehouse = record.read_document(Predictions), cloud.warehouse
        if planned.source.files is not None:
            return write_lines(cloud, planned, instances, predictions)
        schema = warehouse.table_schema(predictions.table)
        if schema is None:
            way_out = "Trigger the DAG again with Force"
            raise DataError(predictions.table, "no such table", f"what {predictions.job} left", way_out)
        is_text = any((column["name"], column["type"]) == ("prediction", "STRING") for column in schema)
        checked = warehouse.run_query(
            answers.render_check_sql(planned, predictions, is_text=is_text),
            statement_id(planned, "check", context),
            "answers",
        )
        errors = self._errors(cloud, planned, predictions, context)
        answers.require_whole(planned, instances, predictions, checked.rows[0], errors)
        warehouse.run_query(
            answers.render_write_sql(planned, predictions, is_text=is_text),
            statement_id(planned, "write", context),
            f"destination {planned.destination.table}",
        )
        return answers.build_result(planned, instances, predictions, load_prices(include_path()))

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
