"""How good the champion's answers were, by the labels that are known by now, and how good they may be before."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from retraining.core.data.snapshot import render_columns_sql
from retraining.core.data.sql import Parameter, midnight
from retraining.core.documents import Signal
from retraining.core.documents.document import format_time
from retraining.core.documents.monitoring import NamedState, SignalKind
from retraining.core.errors import DataError
from retraining.core.monitoring.performance import WAY_OUT_WITHOUT_KEYS, Reference, judge_estimate, judge_performance
from retraining.core.monitoring.request_log import (
    AnswerWindow,
    KeyTable,
    Labels,
    VersionAnswers,
    missing_label_columns,
    read_labelled_answers,
    render_performance_sql,
)
from retraining.core.monitoring.signals import not_judged
from retraining.core.naming import bigquery, vertex
from retraining.core.planning import windows
from retraining.core.settings import include_path
from retraining.core.spec.files import load_labels_query, load_query
from retraining.core.spec.sql_file import without_semicolon
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.monitoring.byte_limit import ByteLimit
from retraining.operators.monitoring.watch import Baseline, Seen, Watch

KEY_COLUMNS = ("request_id", "key")


def watch_labels(watch: Watch) -> Seen:
    """Return the signals of performance, and of its estimate."""
    spec = watch.spec
    if watch.champion is None or watch.baseline is None:
        return _judge_nothing(watch, "no_champion", f"No champion of {spec.name} serves.")
    if watch.log_table is None:
        return _judge_nothing(watch, "no_traffic", "Nothing was logged yet.")
    keys = _find_keys(watch)
    labels = keys if isinstance(keys, Signal) else _find_labels(watch)
    evaluation, warehouse = watch.baseline.evaluation, watch.cloud.warehouse
    query = render_performance_sql(
        spec,
        _window(watch, watch.log_table),
        labels if isinstance(labels, Labels) else None,
        keys if isinstance(keys, KeyTable) else None,
        evaluation.challenger.answers if evaluation else None,
    )
    limit = ByteLimit(spec.monitoring.max_gigabytes)
    if reason := limit.reason_to_refuse(warehouse, {"performance": query}):
        words = f"{reason}: raise it, or shorten monitoring.performance.window_days."
        return _judge_nothing(watch, "too_expensive", words)
    found = limit.run(warehouse, query, watch.job_id("performance"), "performance")
    versions = {
        vertex.deployed_model_id(each.run_key): each.version_id
        for each in watch.cloud.registry.list_versions(spec.name)
        if each.run_key
    }
    champion = vertex.deployed_model_id(watch.champion.run_key)
    answered = read_labelled_answers(found.rows)
    if isinstance(labels, Labels):
        performance = judge_performance(spec, answered, versions, champion, _reference(watch, watch.baseline))
    else:
        performance = (labels,)
    estimated = judge_estimate(spec, answered.get(champion, VersionAnswers()), evaluation)
    return Seen(signals=(*performance, *estimated), bytes_read=found.bytes_processed)


def _judge_nothing(watch: Watch, because: NamedState, words: str) -> Seen:
    """Return that neither performance nor its estimate was judged."""
    kinds: tuple[SignalKind, ...] = ("performance", "estimate")
    metric = watch.spec.evaluation.metric
    return Seen(signals=tuple(not_judged(kind, metric, because, words) for kind in kinds))


def _find_keys(watch: Watch) -> KeyTable | Signal | None:
    """Return the caller's table of keys, None where they come with the requests, or why there are none."""
    spec, settings = watch.spec, watch.cloud.settings
    named = spec.monitoring.performance.request_keys
    if named is None:
        words = f"No answer finds its label: {WAY_OUT_WITHOUT_KEYS}."
        return (
            None if spec.deployment.key_input else not_judged("performance", spec.evaluation.metric, "no_keys", words)
        )
    table = bigquery.full_table(named, settings.project)
    columns = [str(column["name"]) for column in watch.cloud.warehouse.table_schema(table) or ()]
    if missing := [name for name in KEY_COLUMNS if name not in columns]:
        found = f"has no column {' and no '.join(missing)}" if columns else "is not there"
        words = f"monitoring.performance.request_keys: {table} {found}; expected request_id, key and, if any, instance."
        return not_judged("performance", spec.evaluation.metric, "no_keys", words)
    return KeyTable(table=table, has_instance="instance" in columns)


def _find_labels(watch: Watch) -> Labels | Signal:
    """Return the query of labels, or why it gives none."""
    spec, limits = watch.spec, watch.spec.monitoring.performance
    own, metric = load_labels_query(spec, include_path()), spec.evaluation.metric
    where = limits.labels_query or spec.data.source_name
    if own is None and spec.data.files is not None:
        words = "The monitor cannot ask the examples' files for labels: name monitoring.performance.labels_query."
        return not_judged("performance", metric, "no_labels", words)
    sql = own if own is not None else load_query(spec, include_path())
    try:
        asked = render_columns_sql(spec, sql)
        columns = [str(column["name"]) for column in watch.cloud.warehouse.dry_run(asked, where).schema]
    except DataError as error:
        words = f"The query of labels cannot be asked. {error}"
        return not_judged("performance", metric, "no_labels", words)
    if missing := missing_label_columns(spec, columns):
        words = f"{where} has no column {' and no '.join(missing)}: labels need both."
        return not_judged("performance", metric, "no_labels", words)
    lag = timedelta(days=spec.data.label_lag_days if spec.data.split == "time" else 0)
    first = (watch.as_of - timedelta(days=limits.window_days) - lag).astimezone(UTC).date()
    as_of = Parameter(name="as_of", type="TIMESTAMP", value=format_time(watch.as_of))
    if own is None and spec.data.split == "hash":
        return Labels(sql=without_semicolon(sql), parameters=(as_of,), columns=frozenset(columns), settled=watch.as_of)
    # The examples query may give labels that are not final until their lag is over; one of labels says itself.
    last = watch.as_of.astimezone(UTC).date() + timedelta(days=1) if own else windows.window(spec.data, watch.as_of).end
    settled = watch.as_of - lag if own else datetime.combine(last, time(), UTC)
    return Labels(
        sql=without_semicolon(sql),
        parameters=(
            Parameter(name="window_start", type="TIMESTAMP", value=midnight(first)),
            Parameter(name="window_end", type="TIMESTAMP", value=midnight(last)),
            as_of,
        ),
        columns=frozenset(columns),
        settled=settled,
    )


def _window(watch: Watch, log_table: str) -> AnswerWindow:
    rollout = RolloutState(watch.cloud, watch.spec.name).read_rollout()
    return AnswerWindow(
        log_table=log_table,
        start=watch.as_of - timedelta(days=watch.spec.monitoring.performance.window_days),
        end=watch.as_of,
        smoke_requests=tuple(rollout.smoke_requests) if rollout else (),
    )


def _reference(watch: Watch, baseline: Baseline) -> Reference:
    """Return the champion's deciding evaluation: where it was the challenger."""
    metrics = baseline.evaluation.challenger.metrics if baseline.evaluation else None
    weight = watch.spec.data.weight
    weighed = f"its evaluation weighs examples by {weight}, and answers have no weight" if weight else ""
    return Reference(metrics=metrics, because=weighed)
