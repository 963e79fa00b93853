"""What the endpoint was asked and what it answered, by its log in BigQuery and by Cloud Monitoring."""

from __future__ import annotations

from collections.abc import Sequence

from retraining.core.data.sql import Query
from retraining.core.documents import Signal
from retraining.core.monitoring import drift, request_log, signals
from retraining.core.monitoring.distributions import AnswerBaseline, answer_baselines
from retraining.core.monitoring.drift import Obstacle
from retraining.core.monitoring.request_log import LogWindows, RequestLog
from retraining.core.monitoring.signals import Answered, ServedWindows, not_judged
from retraining.core.naming.vertex import deployed_model_id, version_id_of
from retraining.hooks import session
from retraining.hooks.endpoints import Endpoint
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.monitoring.byte_limit import ByteLimit
from retraining.operators.monitoring.watch import Baseline, Seen, Watch


def watch_requests(watch: Watch) -> Seen:
    """Return traffic, errors, latency, skew, drift and prediction drift."""
    if watch.endpoint is None:
        gone = f"{watch.spec.name} has no endpoint: it was deleted, or nothing was deployed yet."
        traffic = not_judged("traffic", "requests", "no_endpoint", gone)
        return Seen(signals=(traffic, *drift.judge_nothing(watch.spec, Obstacle(because="no_endpoint", words=gone))))
    windows = LogWindows.before(watch.spec, watch.as_of)
    served, signals = _watch_serving(watch, watch.endpoint, windows)
    if watch.champion is None or watch.baseline is None:
        nobody = f"No champion of {watch.spec.name} serves, so there is nothing to compare with."
        obstacle = Obstacle(because="no_champion", words=nobody)
        return Seen(signals=(*signals, *drift.judge_nothing(watch.spec, obstacle)))
    requests = None if served is None else sum(item.requests for item in served.values())
    seen = _watch_log(watch, watch.baseline, windows, deployed_model_id(watch.champion.run_key), requests)
    return Seen(signals=(*signals, *seen.signals), requests=seen.requests, bytes_read=seen.bytes_read)


def _watch_serving(
    watch: Watch, endpoint: Endpoint, windows: LogWindows
) -> tuple[dict[str, Answered] | None, tuple[Signal, ...]]:
    """Return what deployed models answered in the window (None: it is not told), and the signals of that."""
    metrics = watch.cloud.serving_metrics
    try:
        now = metrics.answered(endpoint.name, windows.start, windows.end)
        earlier = metrics.answered(endpoint.name, windows.earlier_start, windows.earlier_end)
    except Exception as error:  # Google's have no common class; what is not explained is raised again
        reason = session.explain(error)
        if reason is None:  # a retry may mend it
            raise
        return None, signals.judge_no_metrics(f"Cloud Monitoring does not answer: {reason}")
    names = {key: f"version {version_id_of(name)}" for key, name in endpoint.deployed.items()}
    return now, signals.judge_serving(watch.spec, ServedWindows(now=now, earlier=earlier, names=names))


def _watch_log(watch: Watch, baseline: Baseline, windows: LogWindows, deployed_id: str, requests: int | None) -> Seen:
    spec, train = watch.spec, baseline.statistics.splits["train"]
    answers = answer_baselines(spec, train, baseline.evaluation)
    rows, size = [], 0
    if watch.log_table is not None:
        query = _query(watch, watch.log_table, baseline, windows, answers)
        limit, warehouse = ByteLimit(spec.monitoring.max_gigabytes), watch.cloud.warehouse
        if reason := limit.reason_to_refuse(warehouse, {"requests": query}):
            words = f"{reason}: raise it, shorten window_hours, or partition the request log by logging_time."
            return Seen(signals=drift.judge_nothing(spec, Obstacle(because="too_expensive", words=words)))
        answer = limit.run(warehouse, query, watch.job_id(), "requests")
        rows, size = answer.rows, answer.bytes_processed
    log: RequestLog = request_log.read_requests(rows, [item.name for item in answers])
    return Seen(
        signals=(
            *drift.judge_log(spec, log, requests),
            *drift.judge_shifts(spec, train, log, answers, deployed_id),
        ),
        requests=log.now.all.instances,
        bytes_read=size,
    )


def _query(
    watch: Watch, table: str, baseline: Baseline, windows: LogWindows, answers: Sequence[AnswerBaseline]
) -> Query:
    rollout = RolloutState(watch.cloud, watch.spec.name).read_rollout()
    smoke_requests = rollout.smoke_requests if rollout else ()
    return request_log.render_requests_sql(
        watch.spec, table, baseline.statistics, windows, answers=answers, smoke_requests=smoke_requests
    )
