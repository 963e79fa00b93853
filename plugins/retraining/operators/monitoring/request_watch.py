"""What the endpoint was asked, by its log in BigQuery."""

from __future__ import annotations

from retraining.core.documents import Drift, DriftChampion
from retraining.core.monitoring import drift
from retraining.core.naming import bigquery, vertex
from retraining.core.untyped import Row
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.monitoring.watch import Seen, Watch


def watch_requests(watch: Watch) -> Seen:
    """Return how far the window's requests are from the champion's training data."""
    measured = measure_drift(watch)
    return Seen(signals=drift.judge_skew(watch.spec, measured), requests=measured.rows if measured else 0)


def measure_drift(watch: Watch) -> Drift | None:
    """Return the drift of the requests; None: no champion serves."""
    champion, baseline, spec = watch.champion, watch.baseline, watch.spec
    if champion is None or baseline is None:
        return None
    settings = watch.cloud.settings
    answers = baseline.evaluation.challenger.answers if baseline.evaluation else None
    rows: list[Row] = []
    if watch.log_table is not None:
        rollout = RolloutState(watch.cloud, spec.name).read_rollout()
        smoke_requests = rollout.smoke_requests if rollout else ()
        query = drift.render_requests_sql(
            spec, watch.log_table, baseline.statistics, watch.as_of, smoke_requests, answers
        )
        rows = watch.cloud.warehouse.run_query(query, watch.job_id(), "requests").rows
    measured = drift.measure(
        spec,
        as_of=watch.as_of,
        endpoint_name=vertex.endpoint_name(settings.project, settings.region, spec.name),
        log_table=bigquery.request_log_table(settings.project, settings.dataset, spec.name),
        champion=DriftChampion(version_id=champion.version_id, run_key=champion.run_key),
        baseline_uri=baseline.statistics_uri,
        statistics=baseline.statistics,
        rows=rows,
    )
    return drift.add_answers(measured, spec, rows, answers)
