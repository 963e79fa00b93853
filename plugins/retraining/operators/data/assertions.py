"""A model's own checks in SQL, asked when a run is planned, and over its run table. No Airflow: `preview` asks too."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import date

from retraining.core.catalog.cost import Prices, query_cost
from retraining.core.data import assertions
from retraining.core.documents import AssertionResult, Plan
from retraining.core.errors import DataError, SettingsError
from retraining.core.naming import bigquery
from retraining.core.spec.data import Assertion
from retraining.hooks.ports import CloudPort

REFUSED = "BigQuery refuses it, and the log says why"
"""BigQuery's own message may have a value of the data, which stays out of documents."""
LOGGER = logging.getLogger(__name__)
_LASTING = (DataError, SettingsError)
"""What another try would meet again; an outage is tried again, whatever the severity."""


def price_assertions(cloud: CloudPort, plan: Plan, prices: Prices | None) -> Iterator[str]:
    """Yield what each check would read, by dry runs; of a warning that BigQuery refuses, why.

    Raises:
        RetrainingError: BigQuery refuses one that blocks.
    """
    for asked in plan.spec.data.assertions:
        where = assertions.where_of(plan, asked.name)
        try:
            read = cloud.warehouse.dry_run(assertions.render_planned_columns_sql(plan, asked.name), where)
        except _LASTING as error:
            if asked.severity == "block":
                raise
            yield f"it will be a warning: {error}"
            continue
        usd = query_cost(read.bytes_processed, prices, plan.region) if prices else None
        price = "price unknown" if usd is None else f"{usd:.4f} USD at list prices"
        yield f"{where} ({asked.severity}): about {read.bytes_processed / 1e6:,.1f} MB read, {price}"


def ask_assertions(cloud: CloudPort, plan: Plan, left_out: Sequence[date], attempt: str) -> tuple[AssertionResult, ...]:
    """Ask each check over the run table, in the file's order.

    Args:
        cloud: Who is asked.
        plan: The run.
        left_out: Days that it goes on without.
        attempt: What tells a wanted repetition of a query from a retry.

    Raises:
        RetrainingError: BigQuery refuses one that blocks, or is out of order.
    """
    return tuple(_ask(cloud, plan, asked, left_out, attempt) for asked in plan.spec.data.assertions)


def _ask(cloud: CloudPort, plan: Plan, asked: Assertion, left_out: Sequence[date], attempt: str) -> AssertionResult:
    where = assertions.where_of(plan, asked.name)
    try:
        schema = cloud.warehouse.dry_run(assertions.render_columns_sql(plan, asked.name, left_out), where).schema
        query = assertions.render_count_sql(plan, asked.name, left_out, keyed=assertions.has_key(plan, schema))
        job_id = bigquery.query_job_id(plan, f"assertion_{asked.name}", attempt)
        answer = cloud.warehouse.run_query(query, job_id, where)
    except _LASTING as error:
        if asked.severity == "block":
            raise
        LOGGER.warning("%s: %s", where, error)
        return assertions.not_asked(plan, asked, REFUSED)
    return assertions.result_of(plan, asked, answer.rows[0], answer.bytes_processed)
